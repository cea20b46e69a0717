# %% [markdown]
# # A torch network
#
# A network has no single optimum: trained again, from a new start, it scores a person differently even where no row
# was deleted. So a promise about deletions is made by really training many networks again, all at once. Needs torch:
# the extra `nn`.

# %%
import numpy as np

import rocerf

data = rocerf.load_dataset("german")
model = rocerf.NeuralModel.fit(data.train, seed=0, width=6, epochs=20, learning_rate=0.1)
people = data.test.frame()
refused = people[model.predict(people) == 0].head(2)
print(f"accuracy {(model.predict(people) == data.test.y).mean():.2f}")

# %% [markdown]
# ## A plain counterfactual, and forty networks trained again
#
# Each without four rows drawn at random. A plain answer stands on the border of one network; the others have their
# border elsewhere.

# %%
plain = rocerf.Rocerf(model, promise="plain", schema=data.schema).explain(refused)
rng = np.random.default_rng(0)
again = model.refitted([rng.choice(data.train.ids, 4, replace=False) for _ in range(40)], seed=1)
for name, share in zip(refused.index, (again.scores(plain.matrix) >= 0).mean(axis=0), strict=True):
    print(f"{name}: accepted by {share:.0%} of the networks")

# %% [markdown]
# ## `retrained`
#
# Rows are picked to harm each point, networks are really trained again without them from several starts, and the point
# moves on until enough of them accept. Tested, not proven.

# %%
explainer = rocerf.Rocerf(model, k="0.5%", promise="retrained", schema=data.schema)
answers = explainer.explain(refused)
print(answers)
print(answers[0].promise)

# %%
answers[1].plot(model.train)

# %% [markdown]
# The same forty networks as above; they had no part in choosing these points:

# %%
shares = (again.scores(answers.matrix) >= 0).mean(axis=0)
for name, share in zip(refused.index, shares, strict=True):
    print(f"{name}: accepted by {share:.0%} of the networks")
assert shares.mean() > 0.9

# %% [markdown]
# ## An adversary of its own
#
# With another seed. A network's score after a deletion is a mean over networks retrained without the rows; the line is
# one standard deviation of them.

# %%
attacks = rocerf.Adversary(model, k=4, effort="quick", seed=9).attack(answers.points)
for name, attack in zip(refused.index, attacks, strict=True):
    print(f"{name}: accepted by {attack.share:.0%} of {attack.models} networks retrained without the worst rows found")
attacks.plot()

# %% [markdown]
# If rows only leave at random, `simulated` is the promise to take: it reports how many networks accept, with a bound
# from networks kept for checking. Your own module comes in with `NeuralModel.from_torch(module, train, refit=...)`: a
# function of yours trains it again ([networks and trees](../networks.md)).
