"""Methods by name: ours, the baselines, and whatever somebody adds from outside."""

from __future__ import annotations

from typing import Any

import pytest

import rocerf
from rocerf.baselines import Scfe
from rocerf.errors import OptionError
from rocerf.evaluation import compare
from rocerf.evaluation.methods import (
    _FACTORIES,
    METHODS,
    MethodOptions,
    explainer_named,
    method_names,
    methods_for,
    register_method,
)


def test_every_method_of_the_tables_is_known_by_name() -> None:
    assert set(method_names()) >= {name for names in METHODS.values() for name in names}
    data = rocerf.load_dataset("german")
    model = rocerf.LogisticModel.fit(data.train)
    assert methods_for(model) == METHODS["corrected", "lr"]
    promises = {name: explainer_named(name, model, MethodOptions(k=1)) for name in ("rocerf", "retrained")}
    assert [made.promise.wording.name for made in promises.values()] == ["first_order", "retrained"]  # type: ignore[attr-defined]
    with pytest.raises(OptionError, match="'lime'"):
        explainer_named("lime", model, MethodOptions(k=1))


def test_a_method_from_outside_is_compared_like_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rocerf.evaluation.methods._FACTORIES", dict(_FACTORIES))
    asked: list[MethodOptions] = []

    def mine(model: Any, options: MethodOptions) -> Scfe:
        asked.append(options)
        return Scfe(model)

    register_method("mine", mine)
    assert method_names()[-1] == "mine"
    data = rocerf.load_dataset("german")
    model = rocerf.LogisticModel.fit(data.train)
    found = compare(model, data.test.X[:20], 2, methods=["mine", "scfe"], trials=2, effort="quick", seed=3)
    mine_row, scfe_row = found.rows
    assert (asked[0].k, asked[0].seed) == (2, 3)
    assert (mine_row["l2"], mine_row["validity"]) == (scfe_row["l2"], scfe_row["validity"])
    assert mine_row["cost_over_plain"] == 1.0
