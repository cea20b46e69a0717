"""A ledger to look at: German Credit with a model, letters to people whom it refuses, and a few deletion requests."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from rocerf.ledger import Ledger

if TYPE_CHECKING:
    from rocerf.explainer.explainer import Rocerf

#: How many people have a letter, and who asks to be deleted (places among the training rows).
LETTERS = 24
ASKING = (3, 17, 101)
ACTOR = "demo"


def demo_explainer() -> Rocerf:
    """German Credit with a logistic model and the default promise about 4 deletions."""
    from rocerf.data.datasets import load_dataset
    from rocerf.explainer.explainer import Rocerf
    from rocerf.models.logistic.model import LogisticModel

    data = load_dataset("german")
    return Rocerf(LogisticModel.fit(data.train, C=1.0), k="0.5%", schema=data.schema)


def fill(ledger: Ledger, *, letters: int = LETTERS) -> None:
    """Put the demonstration into an empty ledger; every training row is one customer's."""
    from rocerf.data.datasets import load_dataset

    explainer = demo_explainer()
    people = load_dataset("german").test.frame()
    refused = people[explainer.model.predict(people) == 0].head(letters)
    refused.index = [f"applicant-{name}" for name in refused.index]
    ledger.models.register(explainer, actor=ACTOR, label="German Credit")
    ids = explainer.model.train.ids.tolist()
    ledger.people.assign_rows({f"customer-{name}": [name] for name in ids}, actor=ACTOR)
    until = ledger.core.today() + timedelta(days=180)
    ledger.letters.issue(refused, valid_until=until, actor=ACTOR)
    numbers = [ledger.requests.receive(f"customer-{ids[place]}", actor=ACTOR, source="demo").id for place in ASKING]
    for number in numbers[1:]:
        ledger.requests.verify_identity(number, actor=ACTOR, how="demo")
    ledger.requests.preview(numbers[2], actor=ACTOR)
