"""Routes about tokens: an administrator makes and ends them, an auditor sees which there are."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Request
from pydantic import BaseModel, ConfigDict, Field

from rocerf.ledger.access import LONGEST_DAYS, Access, Role, Token
from rocerf.service.guard import Caller, guarded_router
from rocerf.service.ledgers import TheLedger
from rocerf.service.problems import documented

router = guarded_router(prefix="/api/v1", tags=["tokens"])


class TokenView(BaseModel):
    """A token without its secret; times are seconds since 1970."""

    id: str = Field(examples=["9f86d081884c"])
    name: str = Field(examples=["the desk in Ulm"])
    role: Role
    made_at: int = Field(examples=[1794994200])
    expires_at: int = Field(examples=[1802770200])
    revoked_at: int | None = Field(default=None, examples=[None])
    person: str = Field(default="", description="Whose it is.", examples=["Ada Lovelace"])

    @classmethod
    def of(cls, token: Token) -> TokenView:
        """What is shown of a token."""
        return cls(**vars(token))


class NewToken(BaseModel):
    """A token to be made."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=100, examples=["the desk in Ulm"])
    person: str = Field(
        min_length=1,
        max_length=100,
        description="The human being whose it is; two tokens of one person are one pair of eyes.",
        examples=["Ada Lovelace"],
    )
    role: Role = Field(examples=["officer"])
    days: int = Field(default=90, ge=1, le=LONGEST_DAYS)


class TokenWithSecret(TokenView):
    """A token just made, with its secret, which is never shown again."""

    secret: str = Field(examples=["rocerf_9f86d081884c_..."])


class Tokens(BaseModel):
    """All tokens, the newest first."""

    tokens: list[TokenView]


@router.get("/me", responses=documented(401, 429))
def me(caller: Caller) -> TokenView:
    """The token that this request came with."""
    return TokenView.of(caller.token)


@router.get("/tokens", responses=documented(401, 403, 429))
def tokens(request: Request) -> Tokens:
    """Every token ever made, without secrets."""
    access: Access = request.app.state.access
    return Tokens(tokens=[TokenView.of(token) for token in access.tokens()])


@router.post("/tokens", status_code=201, responses=documented(401, 403, 413, 422, 429))
def make_token(request: Request, ledger: TheLedger, caller: Caller, wanted: NewToken) -> TokenWithSecret:
    """Make a token; its secret is in this answer and nowhere else."""
    access: Access = request.app.state.access
    issued = access.issue(wanted.name, wanted.role, days=wanted.days, person=wanted.person)
    token = issued.token
    facts = {"token": token.id, "role": token.role.value, "days": wanted.days}
    ledger.audit.note("token made", actor=caller.actor, facts={**facts})
    return TokenWithSecret(**vars(issued.token), secret=issued.secret)


@router.delete("/tokens/{token_id}", responses=documented(401, 403, 404, 422, 429))
def revoke_token(
    request: Request, ledger: TheLedger, caller: Caller, token_id: Annotated[str, Path(max_length=16)]
) -> TokenView:
    """End a token and its sessions now."""
    access: Access = request.app.state.access
    ended = access.revoke(token_id)
    ledger.audit.note("token ended", actor=caller.actor, facts={"token": ended.id})
    return TokenView.of(ended)
