"""When two ids, or two names, are the same though they were written otherwise.

Forms, tables and programs write one id in several ways: 17 as text, with blanks around it, an umlaut as one sign or as
two. That somebody's row stays because of that must not happen. Case counts: "A1" and "a1" may be two people.
"""

from __future__ import annotations

import unicodedata
from typing import Any


def as_written(name: Any) -> str:
    r"""The text by which ids and names are compared.

    >>> as_written(17), as_written(" 17 "), as_written(17.0), as_written("Mu\u0308ller") == as_written("Müller")
    ('17', '17', '17', True)
    """
    if isinstance(name, float) and name.is_integer():
        name = int(name)
    text = str(name)
    return text if text.isascii() and text == text.strip() else unicodedata.normalize("NFC", text).strip()
