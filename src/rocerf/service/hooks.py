"""Intake in the shapes that privacy tools send: a plain notice, and hooks before and after a policy is carried out.

``/hooks/deletion`` takes subject, operation and time. ``/hooks/policy/pre`` and ``/hooks/policy/post`` take what Fides
sends to policy webhooks and answer as it expects (``derived_identity``, ``halt``), with the preview beside that. The
answer is the whole answer: no address in a request is ever called back. Nothing is approved by a hook.
"""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from rocerf.errors import NotInLedgerError
from rocerf.ledger import DeletionRequest, Ledger, RequestState
from rocerf.service.fields import IdempotencyKey, Moment, Person, Whole, not_later
from rocerf.service.guard import Caller, guarded_router
from rocerf.service.ledgers import TheLedger, own_key
from rocerf.service.problems import documented
from rocerf.service.resolving import Resolved, Resolver
from rocerf.service.views import DeletionView, JobView, PreviewView

router = guarded_router(prefix="/api/v1/hooks", tags=["hooks"])

_PROBLEMS = documented(401, 403, 404, 409, 413, 422, 429, 503)
Kind = Annotated[str, StringConstraints(min_length=1, max_length=50, pattern=r"^[A-Za-z0-9_.-]+$")]


class Notice(BaseModel):
    """Somebody is to be deleted."""

    model_config = ConfigDict(
        extra="ignore",
        json_schema_extra={
            "examples": [{"subject": "customer-17", "operation": "delete", "time": "2026-11-18T09:30:00Z"}]
        },
    )

    subject: Person | dict[Kind, Person] = Field(description="An identifier, or several by their kind.")
    operation: Literal["delete", "deletion", "erase", "erasure"]
    time: Moment | None = None

    @property
    def identity(self) -> dict[str, str]:
        """By kind."""
        return {"subject": self.subject} if isinstance(self.subject, str) else dict(self.subject)


#: What tools call a deletion.
DELETING = frozenset({"delete", "deletion", "erase", "erasure"})

Identifier = Person | Whole


class Labelled(BaseModel):
    """An identifier of a kind of the organisation's own, with how its form calls it."""

    model_config = ConfigDict(extra="ignore")

    value: Identifier | Annotated[list[Identifier], Field(max_length=50)]


class PolicyCall(BaseModel):
    """What a policy webhook sends; other fields are ignored."""

    model_config = ConfigDict(
        extra="ignore",
        json_schema_extra={
            "examples": [
                {
                    "privacy_request_id": "pri_2f6c1a",
                    "direction": "two_way",
                    "callback_type": "pre",
                    "identity": {"email": "customer-17"},
                    "policy_action": "erasure",
                }
            ]
        },
    )

    privacy_request_id: Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9_.:-]+$")]
    identity: dict[Kind, Identifier | Labelled | None] = Field(max_length=50)
    direction: Literal["one_way", "two_way"] = "two_way"
    callback_type: Literal["pre_approval", "pre", "post"] | None = None
    policy_action: Annotated[str, StringConstraints(max_length=50)] | None = Field(
        default=None, description="Policies of another kind (access, consent) go through here too: they delete nobody."
    )

    @property
    def deletes(self) -> bool:
        """Whether the policy is about a deletion; where the tool does not say, it is."""
        return self.policy_action is None or self.policy_action.lower() in DELETING

    @property
    def known_as(self) -> dict[str, str]:
        """The identifiers by kind, without those that are missing and without labels; of several of a kind the
        first."""
        plain = {kind: one.value if isinstance(one, Labelled) else one for kind, one in self.identity.items()}
        firsts = {kind: next(iter(one), None) if isinstance(one, list) else one for kind, one in plain.items()}
        return {kind: str(one) for kind, one in firsts.items() if one is not None}


class PolicyAnswer(BaseModel):
    """What the tool reads (``derived_identity``, ``halt``), and what we know."""

    derived_identity: dict[str, str] = {}
    halt: bool = Field(description="Whether somebody should look first: outstanding letters would break.")
    known: bool = Field(
        description="Whether this is about a deletion, and the person is in the ledger.", examples=[True]
    )
    deletion: DeletionView | None = None
    preview: PreviewView | None = None
    job: JobView | None = Field(default=None, examples=[None])


@router.post("/deletion", status_code=202, responses=_PROBLEMS)
def notice(
    request: Request, ledger: TheLedger, caller: Caller, given: Notice, key: IdempotencyKey = None
) -> DeletionView:
    """Take a deletion in from a privacy tool; poll ``/api/v1/deletions/{id}`` for how it stands."""
    resolved = _resolved(request, ledger, given.identity)
    if resolved is None:
        raise NotInLedgerError("Expected somebody whom the ledger or its resolver knows, got another; nothing is here.")
    made = ledger.requests.receive(
        resolved.person,
        actor=caller.actor,
        rows=resolved.rows,
        received=not_later(given.time, ledger.core.now()),
        source="hook",
        idempotency_key=own_key(caller, key),
    )
    return DeletionView.of(made, caller)


@router.post("/policy/pre", responses=_PROBLEMS)
def before(request: Request, ledger: TheLedger, caller: Caller, call: PolicyCall) -> PolicyAnswer:
    """Before a policy is carried out: take the request in, and say what it would do to outstanding letters.

    Of a policy that is about no deletion nothing is taken in.
    """
    made = _received(request, ledger, caller, call)
    if made is None:
        return PolicyAnswer(halt=False, known=False)
    return _answered(ledger, caller, made)


@router.post("/policy/post", responses=_PROBLEMS)
def after(request: Request, ledger: TheLedger, caller: Caller, call: PolicyCall) -> PolicyAnswer:
    """After it was carried out elsewhere: every outstanding letter is checked against the model without the rows.

    A request that is approved here is carried out at once, by the job in the answer; one that is not waits for its
    approval.
    """
    made = _received(request, ledger, caller, call)
    if made is None:
        return PolicyAnswer(halt=False, known=False)
    answer = _answered(ledger, caller, made)
    if made.state is RequestState.APPROVED and made.batch is None:
        job = ledger.deletions.carry_out(
            made.id, actor=caller.actor, idempotency_key=own_key(caller, f"policy:{call.privacy_request_id}")
        )
        answer.job = JobView.of(job)
    return answer


def _resolved(request: Request, ledger: Ledger, identity: dict[str, str]) -> Resolved | None:
    resolver: Resolver = request.app.state.resolver
    return resolver(identity, ledger)


def _received(request: Request, ledger: Ledger, caller: Caller, call: PolicyCall) -> DeletionRequest | None:
    """The request of this call, taken in once however often the tool calls; None for somebody who is not here, and
    where nobody is to be deleted."""
    resolved = _resolved(request, ledger, call.known_as) if call.deletes else None
    if resolved is None:
        return None
    return ledger.requests.receive(
        resolved.person,
        actor=caller.actor,
        rows=resolved.rows,
        source=f"policy {call.privacy_request_id}",
        idempotency_key=own_key(caller, f"policy:{call.privacy_request_id}"),
        fingerprint="policy",  # the same person: which rows are theirs may have changed since the tool's first call
    )


def _answered(ledger: Ledger, caller: Caller, made: DeletionRequest) -> PolicyAnswer:
    """How a request stands, with its preview while there is something to preview."""
    before = (RequestState.RECEIVED, RequestState.IDENTITY_VERIFIED, RequestState.PREVIEWED, RequestState.APPROVED)
    preview = ledger.requests.preview(made.id, actor=caller.actor) if made.state in before else None
    return PolicyAnswer(
        halt=preview is not None and bool(preview.broken),
        known=True,
        deletion=DeletionView.of(ledger.requests.get(made.id), caller),
        preview=None if preview is None else PreviewView.of(preview),
    )
