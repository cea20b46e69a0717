# %% [markdown]
# # A scorecard: bins and weight of evidence
#
# Lenders often cut every number into bins and give each bin a weight. To a search by gradients such a model is flat
# everywhere and then jumps; here each column is one choice among its pieces, and the cheapest answer is exact. Weight
# of evidence is fitted with scikit-learn alone; optbinning's `BinningProcess` and `Scorecard` are taken over too
# ([models](../models.md)).

# %%
from datetime import date

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import rocerf


class WeightOfEvidence(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Each column's value becomes the log of (share of the good / share of the bad) in its bin."""

    def __init__(self, bins=5):
        self.bins = bins

    def fit(self, X, y):
        X, y = np.asarray(X, float), np.asarray(y)
        self.n_features_in_ = X.shape[1]
        self.edges_ = [np.unique(np.quantile(column, np.linspace(0, 1, self.bins + 1)[1:-1])) for column in X.T]
        self.weights_ = []
        for column, edges in zip(X.T, self.edges_, strict=True):
            place = np.searchsorted(edges, column, side="right")
            good = np.bincount(place[y == 1], minlength=len(edges) + 1) + 0.5
            bad = np.bincount(place[y == 0], minlength=len(edges) + 1) + 0.5
            self.weights_.append(np.log(good / good.sum()) - np.log(bad / bad.sum()))
        return self

    def transform(self, X):
        pairs = zip(np.asarray(X, float).T, self.edges_, self.weights_, strict=True)
        return np.column_stack([w[np.searchsorted(e, column, side="right")] for column, e, w in pairs])


data = rocerf.load_raw("german")
columns = ["duration", "amount", "installment-rate", "present-residence", "age", "number-credits"]
applicants, y = data.train[columns], data.y_train
scorecard = make_pipeline(WeightOfEvidence(), LogisticRegression()).fit(applicants, y)
people = data.test[columns]
refused = people[scorecard.predict(people) == 0].head(6)
print(f"{len(refused)} people; accuracy {scorecard.score(people, data.y_test):.2f}")

# %% [markdown]
# ## The bins of a column
#
# What a transformer does is asked, not read: each column is moved by itself, and that the columns add up is checked on
# all training rows.

# %%
edges, weights = scorecard[0].edges_[0], scorecard[0].weights_[0] * scorecard[1].coef_[0, 0]
for low, high, weight in zip([4, *edges], [*edges, 73], weights, strict=True):
    print(f"duration from {low:2.0f} to below {high:2.0f} months: {weight:+.2f}")

# %%
schema = rocerf.FeatureSchema.from_frame(
    applicants,
    immutable=["age", "present-residence"],
    decrease_only=["number-credits"],
    bounds={"amount": (250, 15_000), "duration": (4, 60)},
    units={"amount": "DM", "duration": "months"},
)
model = rocerf.from_pipeline(scorecard, applicants, y, schema=schema)
explainer = rocerf.Rocerf(model, k=4, cost="l1")
answers = explainer.explain(refused)
assert (scorecard.predict(answers.points[answers.answered]) == 1).all()  # your own pipeline accepts them
answers

# %% [markdown]
# `gaps` says by which share of the cost a cheaper answer is not excluded.

# %%
print(answers.gaps[answers.answered].max())
answers[0].plot(model.train)

# %% [markdown]
# ## A letter says the bin
#
# Every value in a bin scores the same, so the letter names the range instead of a number to hit.

# %%
letter = explainer.letters(answers, valid_until=date(2027, 6, 30), issued=date(2026, 11, 15))[0]
for change in letter.options[0].changes:
    print(f"{change.label}: now {change.before_text}; change to: {change.after_text}")

# %% [markdown]
# ## The worst deletions
#
# Bins and weights stay as they were fitted when rows go (`preprocessing="frozen"`, said with every answer); the
# regression on top is retrained.

# %%
attacks = rocerf.Adversary(model, k=4, seed=3).attack(answers.points[answers.answered])
assert (attacks.scores >= 0).all()
attacks.plot()
