"""Extension of griffe for the documentation site: docstrings as Markdown.

Docstrings here mostly show an example without a section of its own, whose output Markdown would take for links, and
name things by roles such as ``:class:``, which Markdown does not know.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

#: A name by its role; a paragraph that begins with a prompt, with its indentation.
ROLE = re.compile(r":[a-z]+:`~?([^`]+)`")
EXAMPLE = re.compile(r"(?:^|\n)( *)>>> .*?(?=\n\s*\n|\Z)", re.DOTALL)


def fenced(text: str) -> str:
    """The text with its examples in fences.

    >>> print(fenced("Adds.\\n\\n>>> 1 + 1\\n2"))
    Adds.
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    """
    return EXAMPLE.sub(lambda found: f"\n{found[1]}```pycon\n{found[0].strip(chr(10))}\n{found[1]}```", text)


class Doctests(griffe.Extension):
    """Names without roles, and fences around examples where a docstring has no section for them."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Called for each object that was read."""
        if obj.docstring is None:
            return
        text = ROLE.sub(r"`\1`", obj.docstring.value)
        obj.docstring.value = text if "Examples\n---" in text else fenced(text)
