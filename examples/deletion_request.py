# %% [markdown]
# # A deletion request in the ledger
#
# Letters are outstanding, and a customer asks to be forgotten. What does that do to letters that other people hold?
# The ledger shows it *before* anything is touched, then carries it out to the end. Needs the extra `service`.

# %%
import tempfile
from datetime import date

import rocerf
from rocerf.ledger import Ledger
from rocerf.ledger.worker import Worker

data = rocerf.load_dataset("german")
model = rocerf.LogisticModel.fit(data.train, C=1.0)
people = data.test.frame()[model.predict(data.test.frame()) == 0].head(12)

# %% [markdown]
# ## Letters with a promise about four deletions, and letters with none
#
# `plain` letters say nothing about deletions. Both kinds are issued to the same people, in two ledgers.

# %%
folder, ledgers = tempfile.TemporaryDirectory(), {}
for promise in ("plain", "retrained"):
    ledger = Ledger.open(f"sqlite:///{folder.name}/{promise}.db")
    ledger.models.register(rocerf.Rocerf(model, k=4, promise=promise), actor="admin")
    ledger.letters.issue(people, valid_until=date(2100, 1, 1), actor="officer")
    ledgers[promise] = ledger

# %% [markdown]
# ## Somebody asks to be forgotten
#
# Four rows belong to customer 17. To see what a promise is worth, they are the four that harm the first letter most,
# as far as a search can find them.

# %%
answers = rocerf.Rocerf(model, k=4, promise="plain").explain(people)
worst = rocerf.Adversary(model, k=4, seed=1).attack(answers[0].point).deleted_ids.tolist()
numbers = {}
for promise, ledger in ledgers.items():
    ledger.people.assign_rows({"customer-17": worst}, actor="admin")
    number = numbers[promise] = ledger.requests.receive("customer-17", actor="desk").id
    ledger.requests.verify_identity(number, actor="desk")
    preview = ledger.requests.preview(number, actor="dpo")  # really retrained; nothing is touched
    print(f"{promise:10} {len(preview.broken)} of {preview.letters} letters would break")

# %% [markdown]
# ## Carried out
#
# Approved, unlearned, every letter held against the new model, broken ones made anew, keys destroyed, the database
# written anew, certified.

# %%
ledger, number = ledgers["plain"], numbers["plain"]
ledger.requests.approve(number, actor="dpo")
ledger.deletions.carry_out(number, actor="dpo")
Worker(ledger).run_once()
certificate = ledger.deletions.certificate(number)
text = certificate.to_text()
print(text[text.index("What was removed") : text.index("Hashes of what")])

# %% [markdown]
# The audit chain holds every step, and finds any edit of it:

# %%
report = ledger.audit.verify()
print("whole:", report.whole, "| events:", report.events)
assert report.whole
for ledger in ledgers.values():
    ledger.close()
folder.cleanup()

# %% [markdown]
# ## How the promise counts down
#
# Scores of both kinds of answers after the worst deletions found for each; no database is needed for this.

# %%
robust = rocerf.Rocerf(model, k=4, promise="retrained").explain(people)
rocerf.evaluation.worst_deletions(model, {"plain": answers, "retrained": robust}, 6, seed=2).plot()
