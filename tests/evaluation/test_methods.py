"""Methods by name: ours, the baselines, and whatever is registered as a baseline."""

from __future__ import annotations

import pytest

import rocerf
from rocerf.errors import OptionError
from rocerf.evaluation.methods import (
    METHODS,
    MethodOptions,
    explainer_named,
    method_names,
    methods_for,
)


def test_every_method_of_the_tables_is_known_by_name() -> None:
    assert set(method_names()) >= {name for names in METHODS.values() for name in names}
    data = rocerf.load_dataset("german")
    model = rocerf.LogisticModel.fit(data.train)
    assert methods_for(model) == METHODS["corrected", "lr"]
    promises = {name: explainer_named(name, model, MethodOptions(k=1)) for name in ("rocerf", "retrained")}
    assert [made.promise.name for made in promises.values()] == ["first_order", "retrained"]  # type: ignore[attr-defined]
    with pytest.raises(OptionError, match="'lime'"):
        explainer_named("lime", model, MethodOptions(k=1))
