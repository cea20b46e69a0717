# %% [markdown]
# # The paper in one page
#
# Krishna, Ma and Lakkaraju (ICML 2023) ask: if others' rows are deleted and the model is retrained, is an answer given
# before still good? They require of an answer `x` that its score stays above zero under a first-order estimate of the
# worst deletion of `k` rows. This page walks through the claim on German credit, small enough to run in seconds; the
# full study, with its settings and intervals, is [the paper, reproduced](../reproduction.md).

# %%
import rocerf

data = rocerf.load_dataset("german")
model = rocerf.LogisticModel.fit(data.train, C=1.0)
people = data.test.frame()
refused = people[model.predict(people) == 0].head(10)
k = 4  # 0.5 % of the rows
answers = {name: rocerf.Rocerf(model, k=k, promise=name).explain(refused) for name in ("plain", "first_order")}

# %% [markdown]
# ## 1. A plain counterfactual is a coin toss
#
# It stands on the border. Rows that leave at random move the border either way.

# %%
points = {name: way.matrix for name, way in answers.items()}
shares = [0.005, 0.02, 0.05]
for name, values in rocerf.evaluation.validity_curves(model, points, shares, 60, 1).items():
    told = ", ".join(f"{value.fraction:.1%}: {value.mean:.1%}" for value in values)
    print(f"{name:12} accepted, by share of rows deleted at random: {told}")

# %% [markdown]
# ## 2. The paper's constraint holds against chance
#
# So does a margin that knows nothing of deletions: the same for everybody, here as large as the mean margin of
# `first_order`.

# %%
margin = float(model.score(answers["first_order"].matrix).mean())
constant = rocerf.baselines.Margin(model, margin=margin).explain(refused)
(value,) = rocerf.evaluation.validity_curves(model, {"margin": constant.matrix}, [0.05], 60, 1)["margin"]
print(f"margin {margin:.2f}: accepted after 5 % at random {value.mean:.1%}")
print(f"mean cost: constant margin {constant.costs.mean():.3f}, first_order {answers['first_order'].costs.mean():.3f}")

# %% [markdown]
# ## 3. It does not hold against the worst rows
#
# The estimate is of first order; retrained models lie below it. An adversary picks rows and really retrains.

# %%
answers["retrained"] = rocerf.Rocerf(model, k=k, promise="retrained").explain(refused)
seen = rocerf.evaluation.worst_deletions(model, answers, 8, seed=3)
for name, way in answers.items():
    print(
        f"{name:12} mean cost {way.costs.mean():.3f}; accepted after the worst {k} found: {seen.accepted(name)[k]:.0%}"
    )
assert seen.accepted("first_order")[k] == 0.0
assert seen.accepted("retrained")[k] == 1.0
seen.plot()

# %% [markdown]
# ## 4. Tested or proven
#
# `retrained` survived what was tried. `certified` holds for *every* deletion of at most k rows, or abstains and says
# why; here for one row.

# %%
proven = rocerf.Rocerf(model, k=1, promise="certified").explain(refused)
print(proven)
print(proven[0].promise)
print(f"proven lower bound of the score after any covered deletion: {proven[0].certificate.bound:.4f}")
