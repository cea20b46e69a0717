# %% [markdown]
# # Boosted trees
#
# Trees move in steps and have no slope. The cheapest point that an ensemble accepts is found exactly, by branch and
# bound over the cells between its thresholds; and a promise about deletions is kept by refitting the ensemble, many
# times. XGBoost, LightGBM and CatBoost work the same way ([networks and trees](../networks.md)).

# %%
from sklearn.ensemble import GradientBoostingClassifier

import rocerf

data = rocerf.load_dataset("german")
boosted = GradientBoostingClassifier(n_estimators=12, max_depth=2, subsample=0.6, random_state=0)
model = rocerf.EstimatorModel.fit(boosted, data.train)
people = data.test.frame()
refused = people[model.predict(people) == 0].head(3)
print(f"{(model.predict(people) == 0).sum()} of {len(people)} refused; the first {len(refused)} ask")

# %% [markdown]
# ## No promise: the cheapest point, and what one refit makes of it

# %%
plain = rocerf.Rocerf(model, promise="plain", schema=data.schema, cost="l1").explain(refused)
print("gaps:", plain.gaps)  # 0: proven to be the cheapest allowed point of this ensemble
plain

# %% [markdown]
# A point that stands right behind a step falls when the step moves. Here the ensemble is refitted without four rows
# drawn at random, twenty times:

# %%
import numpy as np

rng = np.random.default_rng(0)
draws = [rng.choice(data.train.ids, 4, replace=False) for _ in range(20)]
refits = model.refitted(draws, seed=1)
print(f"plain answers accepted by refits: {(refits.scores(plain.matrix) >= 0).mean():.0%}")

# %% [markdown]
# ## `simulated`: accepted by most refits after random deletions
#
# Some refits shape the margin, others choose it, and the last group only checks it: what they say is reported with a
# lower bound.

# %%
promise = rocerf.promises.Simulated(validity=0.9, shaping=10, choosing=10, checking=20)
explainer = rocerf.Rocerf(model, k=4, promise=promise, schema=data.schema, cost="l1")
answers = explainer.explain(refused)
print(answers.held_out)
answers

# %%
answers[0].plot(model.train)

# %% [markdown]
# ## What it does not say
#
# `simulated` is about rows deleted *at random*. An adversary that picks rows to harm each answer breaks some of them;
# `promise="retrained"` is made against that, and takes longer. How each fares is measured in
# [benchmarks](../benchmarks.md).

# %%
attacks = rocerf.Adversary(model, 4, effort="quick", seed=2).attack(answers.points[answers.answered])
attacks.plot()
