# %% [markdown]
# # Bail: COMPAS
#
# Risk scores are used in decisions about bail. The table is ProPublica's COMPAS, as prepared by OpenXAI. It may not be
# shipped: set `ROCERF_COMPAS` to your own file or folder (`compas-train.csv`, `compas-test.csv`). "Accepted" means
# scored as low risk. Whether such a model should decide at all is not a question that recourse answers; that its
# letters break is one that it does.

# %%
import rocerf

data = rocerf.load_dataset("compas")
model = rocerf.LogisticModel.fit(data.train, C=1.0)
people = data.test.frame()
refused = people[model.predict(people) == 0].head(20)
k = round(0.005 * len(data.train))
print(f"{len(data.train):,} training rows, k = {k}; {(model.predict(people) == 0).sum()} refused, {len(refused)} shown")

# %% [markdown]
# ## What a person could change: next to nothing
#
# Age, sex, race and what has been cannot be changed. With those held fixed most of these people have no recourse at
# all, and they are told so: that is a finding about the model.

# %%
for feature in data.schema:
    print(f"{feature.name:28} {feature.direction.value}")
held = rocerf.Rocerf(model, k=k, promise="first_order", schema=data.schema).explain(refused)
print(
    f"\nwith the rules: {held.answered.sum()} of {len(held)} answered; {held.reasons[0] or held.statuses[0].sentence}"
)

# %% [markdown]
# ## As in the paper: nothing held fixed
#
# The paper and its baselines let every column move, so that methods can be compared. Three of them, and the worst
# deletions of up to 0.5 % of the rows.

# %%
ways = {
    name: rocerf.Rocerf(model, k=k, promise=name).explain(refused) for name in ("plain", "first_order", "retrained")
}
seen = {
    name: rocerf.Adversary(model, k, effort="quick", seed=5).attack(way.points[way.answered])
    for name, way in ways.items()
}
for name, attacks in seen.items():
    kept = int((attacks.scores >= 0).sum())
    print(f"{name:12} mean cost {ways[name].costs.mean():.3f}; {kept} of {len(attacks)} survive the worst {k} found")
assert (seen["retrained"].scores >= 0).all()

# %%
seen["first_order"].plot()

# %%
seen["retrained"].plot()

# %% [markdown]
# ## Rows that go at random
#
# Random deletions are gentle: here the paper's constraint holds.

# %%
points = {name: way.matrix for name, way in ways.items()}
curves = rocerf.evaluation.validity_curves(model, points, [0.005, 0.05], 30, 1)
for name, values in curves.items():
    print(f"{name:12}", ", ".join(f"{v.fraction:.1%} of the rows: {v.mean:.1%} accepted" for v in values))
