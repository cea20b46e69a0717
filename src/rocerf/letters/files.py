"""What the files of letters are called: after the person, short, the same every time, and nobody else's.

A name that says the id exactly is the id. Wherever it cannot (a slash, a newline, three hundred characters), and
wherever a file system would take two names for one (upper and lower case), a few digits of the id's checksum follow.
So the name depends on the id alone, and two people never write into one file, not even in two runs.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

#: Characters of an id that a name keeps; so many letters of any script fit into the 255 bytes of a file's name.
LONGEST = 48

#: Digits of the checksum, where one is needed; a name that looks as if it ended in one gets its own.
DIGITS = 16

_UNSAFE = re.compile(r"[^\w.-]+")
_LIKE_OURS = re.compile(r"-[0-9a-f]{16}$")


def letter_file_names(people: Sequence[Any], ending: str, taken: Iterable[str] = ()) -> list[str]:
    """A name for each person's letter, such as ``letter-A-17.txt``; ``taken`` are names that the folder has already.

    >>> letter_file_names(["A-17", "a/b", "a_b", 4], "txt")
    ['letter-A-17.txt', 'letter-a_b-c14cddc033f64b9d.txt', 'letter-a_b.txt', 'letter-4.txt']
    """
    texts = _once_each(people)
    exact = [f"letter-{_sanitised(text)}.{ending}" if _says_itself(text) else "" for text in texts]
    counts, own = Counter(map(_seen, exact)), set(taken)
    others = set(map(_seen, own))

    def clear(name: str) -> bool:  # a file of exactly this name can only be this person's own
        return name in own or (counts[_seen(name)] == 1 and _seen(name) not in others)

    return [
        name if name and clear(name) else f"letter-{_sanitised(text)}-{_checksum(text)}.{ending}"
        for name, text in zip(exact, texts, strict=True)
    ]


def _once_each(people: Sequence[Any]) -> list[str]:
    """The ids as texts; where one comes again its number follows, behind a sign that no name keeps."""
    counts: Counter[str] = Counter()
    texts = []
    for text in map(str, people):
        counts[text] += 1
        texts.append(text if counts[text] == 1 else f"{text}\0{counts[text]}")
    return texts


def _sanitised(text: str) -> str:
    plain = _UNSAFE.sub("_", unicodedata.normalize("NFC", text))[:LONGEST].strip("._")
    return plain or "person"


def _says_itself(text: str) -> bool:
    return _sanitised(text) == text and _LIKE_OURS.search(text) is None


def _seen(name: str) -> str:
    """The name as file systems compare it that do not tell upper from lower case."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def _checksum(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]
