"""From an identity, as a privacy tool sends it, to a person of the ledger and the ids of their training rows.

Tools know people by addresses or numbers of their own; the ledger knows them by what the lender calls them. A resolver
stands between: any callable that takes the identity and the ledger and gives a :class:`Resolved`, or None for somebody
who is not here. ``rocerf serve --resolver package.module:name`` uses one of the lender's own.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from rocerf.errors import NotInLedgerError, OptionError
from rocerf.ledger import Ledger


@dataclass(frozen=True)
class Resolved:
    """A person as the ledger calls them; ``rows`` beside those that are assigned to them already."""

    person: str
    rows: tuple[Any, ...] | None = None


#: An identity (kind of identifier -> value) and the ledger -> who it is, or None.
Resolver: TypeAlias = Callable[[Mapping[str, str], Ledger], Resolved | None]


def known_by_name(identity: Mapping[str, str], ledger: Ledger) -> Resolved | None:
    """The first of the identifiers, by name of their kind, that the ledger itself knows somebody by."""
    for kind in sorted(identity):
        try:
            ledger.people.number_of(identity[kind])
        except NotInLedgerError:
            continue
        return Resolved(identity[kind])
    return None


def resolver_at(place: str) -> Resolver:
    """The callable at ``package.module:name``."""
    module, _, name = place.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise OptionError(
            f"Expected a resolver as package.module:name, got {place!r} ({error}); check the spelling and PYTHONPATH."
        ) from error
    if not callable(found):
        raise OptionError(f"Expected something to call at {place!r}, got a {type(found).__name__}; name a function.")
    resolver: Resolver = found
    return resolver
