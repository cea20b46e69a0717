"""What a data-protection officer does with a request: the buttons, and the routes behind them.

Which buttons there are follows from the ledger's own table of ways and from the four-eyes rule; the ledger decides
again when one is pressed. Every form answers by sending the browser back to the request's page.
"""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Form
from fastapi.responses import RedirectResponse

from rocerf.errors import TransitionError
from rocerf.ledger import DeletionRequest, Job, JobState, Ledger, LetterRecord, LetterState, RequestState
from rocerf.ledger.deadlines import deadline
from rocerf.ledger.overview import Overview
from rocerf.ledger.requests import same_colleague
from rocerf.ledger.states import LETTER_WAYS, REQUEST_WAYS
from rocerf.service.fields import Number, Person, Reason
from rocerf.service.guard import Caller, Who, guarded_router
from rocerf.service.ledgers import TheLedger
from rocerf.service.pages.rendering import place
from rocerf.service.pages.views import Act
from rocerf.service.permissions import ADMIN, OFFICER, PEOPLE, PROTECTION, declare

_DECIDES = frozenset({PROTECTION})
_ACTS = ("verify", "preview", "approve", "refuse", "hold", "resume", "extend", "carry_out")
_WRITES, _RETRIES = frozenset({OFFICER}), frozenset({PROTECTION, ADMIN})
declare({("POST", "/requests"): PEOPLE, ("POST", "/requests/{number}/retry"): _RETRIES})
declare({("POST", place): _WRITES for place in ("/letters/{number}/withdraw", "/letters/{number}/renew")})
declare({("POST", "/letters/renew"): _WRITES})
declare({("POST", f"/requests/{{number}}/{act}"): _DECIDES for act in _ACTS})

router = guarded_router(include_in_schema=False)

#: How an identity was verified: ways, not words of one's own, which might name somebody in the audit trail.
Evidence = Literal["signed_in", "document", "in_person", "representative"]


def may_receive(who: Who) -> bool:
    """Whether this reader may take requests in."""
    return who.role in PEOPLE


def may_write(who: Who) -> bool:
    """Whether this reader may have letters written."""
    return who.role in _WRITES


def acts(ledger: Ledger, request: DeletionRequest, who: Who, job: Job | None = None) -> tuple[Act, ...]:
    """What this reader can do with a request now, what leads on first; ``job`` is what carries it out."""
    if job is not None and job.state is JobState.FAILED and who.role in _RETRIES:
        return (_act(request, "retry"),)
    if who.role not in _DECIDES or not request.open or request.batch is not None:
        return ()
    ways = REQUEST_WAYS[request.state]
    found = []
    if request.state is RequestState.ON_HOLD:
        found.append(_act(request, "resume"))
    elif request.state is RequestState.RECEIVED:
        found.append(_act(request, "verify", "evidence"))
    elif request.state in (RequestState.IDENTITY_VERIFIED, RequestState.PREVIEWED):
        if ledger.core.policy.four_eyes and not request.verified_person:  # from before people were noted
            found.append(_act(request, "verify", "evidence"))
        elif RequestState.APPROVED in ways and not waits_for_other(ledger, request, who):
            found.append(_act(request, "approve"))
        found.append(_act(request, "preview"))
    elif RequestState.UNLEARNED in ways:
        found.append(_act(request, "carry_out", "policy", grave=True))
    if RequestState.ON_HOLD in ways:
        found.append(_act(request, "hold", "reason"))
    if not request.extended and ledger.core.today() <= deadline(request.received, zone=ledger.core.zone):
        found.append(_act(request, "extend", "reason"))
    if RequestState.REFUSED in ways:
        found.append(_act(request, "refuse", "reason", grave=True))
    return tuple(found)


def letter_acts(letter: LetterRecord, who: Who) -> tuple[Act, ...]:
    """What this reader can do with a letter now: have it replaced, or take it back."""
    if who.role not in _WRITES:
        return ()
    here, found = place("letter", id=letter.id), list[Act]()
    if LetterState.REISSUED in LETTER_WAYS[letter.state]:
        found.append(Act("renew", f"{here}/renew"))
    if LetterState.WITHDRAWN in LETTER_WAYS[letter.state] and (letter.outstanding or letter.state in _STILL_HELD):
        found.append(Act("withdraw", f"{here}/withdraw", ("reason",), grave=True))
    return tuple(found)


#: States in which the person may still act on a letter that no deletion is checked against.
_STILL_HELD = (LetterState.BROKEN, LetterState.HONOURED)


def _act(request: DeletionRequest, key: str, *asks: str, grave: bool = False) -> Act:
    return Act(key, f"{place('request', id=request.id)}/{key}", asks, grave)


def waits_for_other(ledger: Ledger, request: DeletionRequest, who: Who) -> bool:
    """Whether the four-eyes rule wants somebody else to approve."""
    previewed = request.state is RequestState.PREVIEWED
    same = request.verified_by == who.actor or same_colleague(request.verified_person, who.colleague)
    return previewed and ledger.core.policy.four_eyes and same


def _back(request: DeletionRequest, done: str) -> RedirectResponse:
    return RedirectResponse(f"{place('request', id=request.id)}?done={done}", status_code=303)


@router.post("/requests")
def receive(ledger: TheLedger, caller: Caller, subject: Annotated[Person, Form()]) -> RedirectResponse:
    """Take a request in; its deadline runs from now."""
    return _back(ledger.requests.receive(subject.strip(), actor=caller.actor, source="page"), "receive")


@router.post("/requests/{number}/verify")
def verify(
    ledger: TheLedger, caller: Caller, number: Number, evidence: Annotated[Evidence, Form()]
) -> RedirectResponse:
    """The person is who they say they are."""
    who = {"actor": caller.actor, "colleague": caller.colleague}
    return _back(ledger.requests.verify_identity(number, **who, how=evidence), "verify")


@router.post("/requests/{number}/preview")
def preview(ledger: TheLedger, caller: Caller, number: Number) -> RedirectResponse:
    """Find out what it does to letters; nothing is touched but the request's state."""
    ledger.requests.preview(number, actor=caller.actor)
    return _back(ledger.requests.get(number), "preview")


@router.post("/requests/{number}/approve")
def approve(ledger: TheLedger, caller: Caller, number: Number) -> RedirectResponse:
    """It may be carried out."""
    return _back(ledger.requests.approve(number, actor=caller.actor, colleague=caller.colleague), "approve")


@router.post("/requests/{number}/refuse")
def refuse(ledger: TheLedger, caller: Caller, number: Number, reason: Annotated[Reason, Form()]) -> RedirectResponse:
    """Refuse it, with the reason that the person is told."""
    return _back(ledger.requests.refuse(number, reason=reason, actor=caller.actor), "refuse")


@router.post("/requests/{number}/hold")
def hold(ledger: TheLedger, caller: Caller, number: Number, reason: Annotated[Reason, Form()]) -> RedirectResponse:
    """Put it on hold; its deadline runs on."""
    return _back(ledger.requests.hold(number, reason=reason, actor=caller.actor), "hold")


@router.post("/requests/{number}/resume")
def resume(ledger: TheLedger, caller: Caller, number: Number) -> RedirectResponse:
    """Take it up again where it was."""
    return _back(ledger.requests.resume(number, actor=caller.actor), "resume")


@router.post("/requests/{number}/extend")
def extend(ledger: TheLedger, caller: Caller, number: Number, reason: Annotated[Reason, Form()]) -> RedirectResponse:
    """Two months more, with notice in the first."""
    return _back(ledger.requests.extend(number, reason=reason, actor=caller.actor), "extend")


@router.post("/requests/{number}/carry_out")
def carry_out(
    ledger: TheLedger, caller: Caller, number: Number, policy: Annotated[Literal["reissue", "honour"], Form()]
) -> RedirectResponse:
    """Have it carried out by a worker; the same form sent twice orders it once."""
    ledger.deletions.carry_out(number, actor=caller.actor, broken=policy)
    return _back(ledger.requests.get(number), "carry_out")


@router.post("/requests/{number}/retry")
def retry(ledger: TheLedger, caller: Caller, number: Number) -> RedirectResponse:
    """Have a worker try the deletion again that failed; it goes on where it stopped."""
    request = ledger.requests.get(number)
    job = None if request.batch is None else Overview(ledger.core).job_of_batch(request.batch)
    if job is None:
        raise TransitionError("Expected a request whose deletion was ordered, got one that is not; carry it out first.")
    ledger.jobs.retry(job.id, actor=caller.actor)
    return _back(request, "retry")


@router.post("/letters/renew")
def renew_due(ledger: TheLedger, caller: Caller) -> RedirectResponse:
    """Have new letters written in place of all that are due."""
    pending = ledger.requests.pending_rows()
    if ledger.letters.count_due(pending=pending):
        ledger.letters.renew(None, actor=caller.actor, pending=pending)
    return RedirectResponse(f"{place('portfolio')}?done=renew_due", status_code=303)


@router.post("/letters/{number}/renew")
def renew(ledger: TheLedger, caller: Caller, number: Number) -> RedirectResponse:
    """Have a new letter written in place of this one."""
    ledger.letters.renew([number], actor=caller.actor)
    return RedirectResponse(f"{place('letter', id=number)}?done=renew", status_code=303)


@router.post("/letters/{number}/withdraw")
def withdraw(ledger: TheLedger, caller: Caller, number: Number, reason: Annotated[Reason, Form()]) -> RedirectResponse:
    """Take a letter back."""
    ledger.letters.withdraw(number, reason=reason, actor=caller.actor)
    return RedirectResponse(f"{place('letter', id=number)}?done=withdraw", status_code=303)
