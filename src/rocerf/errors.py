"""Every error that rocerf raises on purpose.

Each message says what was expected, what came, and what to do about it. A person for whom no
recourse exists is *not* an error: that is a result with a reason
(:class:`rocerf.recourse.result.Status`).

The tree::

    RocerfError
    ├── DataError                rows, labels, ids or columns that cannot be used
    │   ├── LabelError             labels are not two classes, or the favourable one is absent
    │   ├── IdError                duplicate or unknown row ids
    │   └── ColumnError            unknown, missing or non-numeric columns; wrong width
    ├── SchemaError              a rule of a feature schema that contradicts itself or the data
    ├── DatasetUnavailableError  a named data set that is neither here nor can be fetched
    ├── ModelError               a model that cannot be used for promises
    │   ├── UnsupportedModelError  a penalty, solver or option we cannot retrain faithfully
    │   ├── NotAtOptimumError      the model does not minimise its objective on these rows
    │   ├── SingularCurvatureError the Hessian cannot be inverted
    │   ├── NoOptimumError         retraining has no minimiser (separable, or one class is left)
    │   ├── NotConvergedError      the iteration limit was reached first
    │   └── DidNotTrainError       a network that diverged, or decides the same for everybody
    ├── OptionError              an option of ours with an impossible value (k, delta, cost, ...)
    ├── FileFormatError          a file that is not what it should be
    ├── RunnerError              a cluster that did not finish its work
    ├── NotRemovedError          old files that stay though they were replaced
    ├── AccessError              a service that does not let somebody in
    │   ├── NotSignedInError       no token, or one that is unknown, expired or revoked
    │   ├── ForbiddenError         a role that may not do this, or a form that did not come from our page
    │   ├── TooOftenError          more requests than a token may make
    │   └── UnknownTokenError      a token that is to be ended and never was
    ├── LedgerError              what the ledger of letters and deletions cannot do
    │   ├── TransitionError        a step that is not open from where a letter, request or job stands
    │   ├── KeyReusedError         an idempotency key that came before, with something else
    │   ├── NotInLedgerError       a number or reference that the ledger does not know
    │   ├── ErasedError            what was asked for was erased, for good
    │   ├── LeaseLostError         another worker took the job over; nothing of this one's step was kept
    │   ├── RowSourceError         training rows that stay with the user are not there as they were
    │   ├── PostponedError         a job that waits for somebody outside
    │   └── LedgerUnavailableError the database or key file cannot be reached or written to now
    └── MissingExtraError        an optional dependency is not installed
"""

from __future__ import annotations


class RocerfError(Exception):
    """Base of all errors raised on purpose by rocerf."""


class DataError(RocerfError, ValueError):
    """Rows that cannot be used as given."""


class LabelError(DataError):
    """Labels are not two classes, or the favourable label is not one of them."""


class IdError(DataError):
    """Row ids that are repeated or unknown."""


class ColumnError(DataError):
    """Columns that are unknown, missing, not numeric, or too many or too few."""


class SchemaError(RocerfError, ValueError):
    """A rule of a feature schema that contradicts itself or the data."""


class DatasetUnavailableError(RocerfError):
    """A named data set that is neither on this machine nor could be fetched."""


class ModelError(RocerfError):
    """A model that cannot carry a promise."""


class UnsupportedModelError(ModelError, ValueError):
    """A penalty, solver or option whose retraining cannot be reproduced faithfully."""


class NotAtOptimumError(ModelError):
    """The model handed over does not minimise its objective on the rows handed over."""


class SingularCurvatureError(ModelError):
    """The Hessian of the objective cannot be inverted."""


class NoOptimumError(ModelError):
    """The objective has no minimiser: unpenalised separable data, or only one class is left."""


class NotConvergedError(ModelError):
    """An iteration limit was reached before the tolerance."""


class DidNotTrainError(ModelError):
    """A network whose training diverged, or that decides the same for everybody."""


class OptionError(RocerfError, ValueError):
    """An option with an impossible value."""


class FileFormatError(RocerfError, ValueError):
    """A file whose content is not what was expected."""


class RunnerError(RocerfError, RuntimeError):
    """A cluster that was lost before a pass over the rows was finished."""


class NotRemovedError(RocerfError, OSError):
    """What was written is in place, but what it replaced could not be removed, and may hold training rows."""


class AccessError(RocerfError):
    """Somebody whom a service does not let in, or not this far."""


class NotSignedInError(AccessError):
    """No token, or one that is unknown, expired or revoked."""


class ForbiddenError(AccessError):
    """A role that may not do what was asked, or a form that did not come from our page."""


class TooOftenError(AccessError):
    """More requests than a token or an address may make; ``seconds`` until the next one."""

    def __init__(self, message: str, seconds: int = 1) -> None:
        super().__init__(message)
        self.seconds = seconds


class UnknownTokenError(AccessError, LookupError):
    """A token that is to be ended and never was."""


class LedgerError(RocerfError):
    """What the ledger of letters and deletion requests cannot do."""


class TransitionError(LedgerError, ValueError):
    """A step that is not open from where a letter, a deletion request or a job stands."""


class KeyReusedError(LedgerError, ValueError):
    """An idempotency key that came before, with something else."""


class NotInLedgerError(LedgerError, LookupError):
    """A number or reference that the ledger does not know."""


class ErasedError(LedgerError, LookupError):
    """What was asked for was erased, and there is no way to bring it back."""


class LeaseLostError(LedgerError, RuntimeError):
    """Another worker took the job over meanwhile; nothing of this one's step was kept."""


class RowSourceError(LedgerError, ValueError):
    """Training rows that stay with the user are not there as they were, or nobody says where they are."""


class PostponedError(LedgerError, RuntimeError):
    """A job waits for something that somebody has to do outside; it is tried again by itself."""


class LedgerUnavailableError(LedgerError, OSError):
    """The database or the key file cannot be reached or written to now; nothing of the step was kept."""


#: What spares some people a large download.
_SMALLER = {
    "nn": (
        "; where there is no GPU, install torch's CPU build first, which spares you gigabytes of CUDA: "
        "https://pytorch.org/get-started/locally/ has the command"
    )
}


class MissingExtraError(RocerfError, ImportError):
    """An optional dependency is missing; the message names the install command."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package '{package}', which is not installed; "
            f'install it with: pip install "rocerf[{extra}]"{_SMALLER.get(extra, "")}'
        )
