"""Text out of data, made safe to be shown: nothing in it can start a line of its own or steer a terminal."""

from __future__ import annotations

import re

#: Ends of lines, for those who read them as such: a text that holds one could go on as a paragraph of its own.
_BREAKS = re.compile(r"[\t-\r\x1c-\x1f\x85\u2028\u2029]+")

#: Controls (a terminal obeys them), ends of lines, signs that turn the order of letters round, and half characters.
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def visible(text: object) -> str:
    r"""The text with its unseen characters written out, so that different texts stay different.

    >>> print(visible("A-17\nYou are accepted."), visible("\x1b[31mred"))
    A-17\nYou are accepted. \x1b[31mred
    """
    return _UNSEEN.sub(lambda found: found.group().encode("unicode_escape").decode("ascii"), str(text))


def one_line(text: object) -> str:
    r"""The text as one line: ends of lines become spaces, other unseen characters are written out.

    >>> print(one_line("too much debt,\r\ntoo little income\n"))
    too much debt, too little income
    """
    return visible(_BREAKS.sub(" ", str(text)).strip(" "))
