"""YAML and JSON that somebody else wrote: read without being led astray, or refused with the reason.

Half a kilobyte of YAML can stand for a billion values, ten thousand brackets for an hour of work, and of a name that is
given twice one of the two is silently lost. All of that is refused here, as a ``ValueError`` that says why.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Hashable
from functools import cache
from pathlib import Path
from typing import Any

#: Lists and mappings inside each other; our own files need five.
DEEPEST = 50

#: Whole numbers beyond the largest of the other numbers are of no use.
LARGEST = int(sys.float_info.max)


def read_text(path: Path) -> str:
    """The text of a file in UTF-8; a mark of the byte order, as spreadsheets write it, is no part of it."""
    return path.read_text("utf-8-sig")


def yaml_document(text: str) -> Any:
    """The plain values of a text in YAML.

    >>> yaml_document("income: 2")
    {'income': 2}
    >>> yaml_document("a: 1\\na: 2")
    Traceback (most recent call last):
    ValueError: 'a' is given twice in one place; keep one of them
    """
    import yaml

    try:
        return yaml.load(text, _careful_loader())  # a SafeLoader that refuses more
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error
    except (OverflowError, LookupError, TypeError, AttributeError) as error:  # values that the library does not survive
        raise ValueError(f"a value that cannot be read ({error})") from error


def json_document(text: str) -> Any:
    """The plain values of a text in JSON.

    >>> json_document('{"k": 1, "k": 3}')
    Traceback (most recent call last):
    ValueError: 'k' is given twice in one place; keep one of them
    """
    try:
        return json.loads(text, object_pairs_hook=_once, parse_int=lambda digits: _usable(int(digits)))
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


_TOO_DEEP = "lists or mappings too deep inside each other"


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError(_twice([name for name, _ in pairs]))
    return made


def _twice(names: list[Any]) -> str:
    return f"{Counter(names).most_common(1)[0][0]!r} is given twice in one place; keep one of them"


def _usable(number: int) -> int:
    if abs(number) > LARGEST:  # it could not even be said in a message
        raise ValueError("a whole number beyond those that can be calculated with")
    return number


@cache
def _careful_loader() -> Any:
    """A loader of plain values that knows no aliases, no name twice, and no bottomless nesting."""
    import yaml

    class Careful(yaml.SafeLoader):  # type: ignore[misc]
        depth = 0

        def fetch_flow_collection_start(self, token_class: Any) -> None:
            if self.flow_level >= DEEPEST:  # already here: the library's own bookkeeping grows with the depth squared
                raise ValueError(_TOO_DEEP)
            super().fetch_flow_collection_start(token_class)

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                mark = self.peek_event()
                raise ValueError(
                    f"the alias *{mark.anchor} in line {mark.start_mark.line + 1}, and a few of these can stand for "
                    "billions of values; write the values out"
                )
            self.depth += 1
            if self.depth > DEEPEST:
                raise ValueError(_TOO_DEEP)
            node = super().compose_node(parent, index)
            self.depth -= 1
            return node

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
            made: dict[Hashable, Any] = super().construct_mapping(node, deep)
            if len(made) < len(node.value):
                raise ValueError(_twice([self.construct_object(key, deep=True) for key, _ in node.value]))
            return made

        def construct_yaml_int(self, node: Any) -> int:
            return _usable(super().construct_yaml_int(node))

    Careful.add_constructor("tag:yaml.org,2002:int", Careful.construct_yaml_int)

    return Careful
