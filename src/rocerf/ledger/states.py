"""The states of letters, deletion requests, jobs and model versions, and the only ways from one to another.

A way that is not in the table is a mistake of ours or of a caller, and ends in an error: nothing is ever set to a state
by hand.

>>> check_letter(LetterState.ISSUED, LetterState.BROKEN)
>>> check_letter(LetterState.REISSUED, LetterState.ISSUED)
Traceback (most recent call last):
rocerf.errors.TransitionError: Expected a letter that may become 'issued', got one that is 'reissued', from which ...
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

from rocerf.errors import TransitionError
from rocerf.words import Said


class _State(Enum):
    """A state by its code, with what it means in a sentence."""

    @property
    def code(self) -> str:
        """Short name, as it is kept and sent."""
        return str(self.value)

    @property
    def sentence(self) -> Said:
        """What the state means, for people."""
        return Said.of(f"ledger.{type(self).__name__[: -len('State')].lower()}_{self.value}")


class LetterState(_State):
    """How a letter stands."""

    ISSUED = "issued"
    RECHECKED = "rechecked"
    BROKEN = "broken"
    REISSUED = "reissued"
    HONOURED = "honoured"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


class RequestState(_State):
    """How far a deletion request has come."""

    RECEIVED = "received"
    IDENTITY_VERIFIED = "identity_verified"
    PREVIEWED = "previewed"
    APPROVED = "approved"
    REFUSED = "refused"
    ON_HOLD = "on_hold"
    UNLEARNED = "unlearned"
    RECHECKED = "rechecked"
    PURGED = "purged"
    CERTIFIED = "certified"


class JobState(_State):
    """How far a job has come."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class VersionState(_State):
    """Whether a model version judges people, has been replaced, or is erased but for a hash."""

    CURRENT = "current"
    RETIRED = "retired"
    ERASED = "erased"


_L, _R, _J = LetterState, RequestState, JobState

#: Letters that somebody may still act on, and that every deletion is checked against.
OUTSTANDING = (LetterState.ISSUED, LetterState.RECHECKED)

#: From each state of a letter, where it may go.
LETTER_WAYS: Mapping[LetterState, tuple[LetterState, ...]] = {
    _L.ISSUED: (_L.RECHECKED, _L.BROKEN, _L.REISSUED, _L.EXPIRED, _L.WITHDRAWN),
    _L.RECHECKED: (_L.RECHECKED, _L.BROKEN, _L.REISSUED, _L.EXPIRED, _L.WITHDRAWN),
    _L.BROKEN: (_L.REISSUED, _L.HONOURED, _L.EXPIRED, _L.WITHDRAWN),
    _L.HONOURED: (_L.REISSUED, _L.EXPIRED, _L.WITHDRAWN),
    _L.REISSUED: (_L.WITHDRAWN,),  # the person's own data are erased
    # Back to where it was, where the clock that said so was wrong.
    _L.EXPIRED: (_L.ISSUED, _L.RECHECKED, _L.BROKEN, _L.HONOURED, _L.WITHDRAWN),
    _L.WITHDRAWN: (),
}

#: From each state of a request, where it may go. A request on hold goes back to where it was; an identity may be
#: verified again until the deletion is approved, and then it is previewed again.
REQUEST_WAYS: Mapping[RequestState, tuple[RequestState, ...]] = {
    _R.RECEIVED: (_R.IDENTITY_VERIFIED, _R.REFUSED, _R.ON_HOLD),
    _R.IDENTITY_VERIFIED: (_R.IDENTITY_VERIFIED, _R.PREVIEWED, _R.REFUSED, _R.ON_HOLD),
    _R.PREVIEWED: (_R.IDENTITY_VERIFIED, _R.PREVIEWED, _R.APPROVED, _R.REFUSED, _R.ON_HOLD),
    _R.APPROVED: (_R.UNLEARNED, _R.REFUSED, _R.ON_HOLD),
    _R.ON_HOLD: (_R.RECEIVED, _R.IDENTITY_VERIFIED, _R.PREVIEWED, _R.APPROVED, _R.REFUSED),
    _R.UNLEARNED: (_R.RECHECKED,),
    _R.RECHECKED: (_R.PURGED,),
    _R.PURGED: (_R.CERTIFIED,),
    _R.REFUSED: (),
    _R.CERTIFIED: (),
}

#: From each state of a job, where it may go. One whose worker died is taken up again; one that failed may be retried.
JOB_WAYS: Mapping[JobState, tuple[JobState, ...]] = {
    _J.WAITING: (_J.RUNNING,),
    _J.RUNNING: (_J.RUNNING, _J.WAITING, _J.DONE, _J.FAILED),
    _J.FAILED: (_J.WAITING,),
    _J.DONE: (),
}

AnyState = TypeVar("AnyState", bound=_State)


def check_letter(now: LetterState, then: LetterState) -> None:
    """Refuse a way of a letter that is not in the table."""
    _check("letter", now, then, LETTER_WAYS)


def check_request(now: RequestState, then: RequestState) -> None:
    """Refuse a way of a deletion request that is not in the table."""
    _check("deletion request", now, then, REQUEST_WAYS)


def check_job(now: JobState, then: JobState) -> None:
    """Refuse a way of a job that is not in the table."""
    _check("job", now, then, JOB_WAYS)


def _check(what: str, now: AnyState, then: AnyState, ways: Mapping[AnyState, tuple[AnyState, ...]]) -> None:
    if then not in ways[now]:
        onwards = " or ".join(repr(state.code) for state in ways[now]) or "nowhere"
        raise TransitionError(
            f"Expected a {what} that may become {then.code!r}, got one that is {now.code!r}, from which it goes to "
            f"{onwards}; see how it stands now, and take one of these steps."
        )
