# %% [markdown]
# # A comparison on your own data
#
# Which method would serve *your* applicants? Every method answers the same people, and all answers are judged by the
# same retrained models. Put your own CSV in the first cell; here a file of invented loans is written, so that the
# example runs as it is.

# %%
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rocerf

rng = np.random.default_rng(4)
loans = pd.DataFrame(
    {
        "income": rng.gamma(5.0, 500.0, 600).round(),
        "months": rng.integers(6, 72, 600),
        "amount": rng.gamma(3.0, 1500.0, 600).round(),
        "open_loans": rng.poisson(1.2, 600),
    }
)
able = loans["income"] / 900 - loans["amount"] / 2500 - loans["open_loans"] / 2 + rng.logistic(size=600) > 0.4
loans.assign(paid=able.astype(int)).to_csv("loans.csv", index=False)

# %%
table = pd.read_csv("loans.csv")  # your file
paid = table.pop("paid")  # your label: 1 is the good one
past, new = table.iloc[:450], table.iloc[450:480]
pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(past, paid.iloc[:450])
model = rocerf.from_pipeline(pipeline, past, paid.iloc[:450])

# %% [markdown]
# ## One call
#
# `validity` is over random deletions of k rows, `worst_case_validity` under the worst deletion that an adversary
# finds. `scfe` is the plain counterfactual, `margin` one with the same safety margin for everybody: if it does as well
# on your table, take it.

# %%
methods = ["scfe", "margin", "first_order", "retrained"]
result = rocerf.evaluation.compare(model, new, "1%", methods=methods, trials=30)
columns = ["method", "answered", "l2", "changed", "validity", "worst_case_validity"]
pd.DataFrame(result.rows)[columns].round(3)

# %%
by = {row["method"]: row for row in result.rows}
assert by["retrained"]["worst_case_validity"] == 1.0
print(f"k = {result.k} of {result.training_rows} rows; {result.people} people refused, {result.accepted} accepted")

# %%
seen = rocerf.evaluation.worst_deletions(model, dict(result.recourses), 8, seed=9)
seen.plot()

# %% [markdown]
# ## Everybody at once
#
# The answers of one promise as a portfolio: who has a recourse, what breaks it, what is asked for.

# %%
schema = rocerf.FeatureSchema.from_frame(past, decrease_only=["open_loans"], units={"months": "months"})
explainer = rocerf.Rocerf(rocerf.from_pipeline(pipeline, past, paid.iloc[:450], schema=schema), k="1%", cost="l1")
portfolio = rocerf.portfolio(explainer, new[pipeline.predict(new) == 0], groups=["open_loans"])
portfolio.plot()
