"""What the paper reports (``paper.yaml``), and how data sets, models and methods are called in tables and figures."""

from __future__ import annotations

from importlib.resources import files
from typing import Any, NamedTuple


class PaperValue(NamedTuple):
    """A mean and its standard error, as printed."""

    mean: float
    standard_error: float


def shipped(name: str) -> Any:
    """A YAML file that lies beside this one."""
    import yaml

    return yaml.safe_load((files("rocerf.reproduction") / name).read_text("utf-8"))


#: Data sets, models and methods in the order in which every table and figure shows them, with their names.
DATASETS = {"german": "German Credit", "compas": "COMPAS", "adult": "Adult"}
MODELS = {"lr": "logistic regression", "nn": "neural network"}
METHODS = {
    "scfe": "SCFE",
    "cchvae": "C-CHVAE",
    "roar": "ROAR",
    "rocerf": "ROCERF (the paper's)",
    "first_order": "first_order, all parameters",
    "retrained": "retrained (ours)",
    "simulated": "simulated (ours)",
}
SETTINGS = {"published": "as published", "corrected": "corrected"}
BASELINES = ("scfe", "cchvae", "roar")
#: The method of this package that the baselines are held against.
OURS = {"lr": "retrained", "nn": "simulated"}

PAPER = shipped("paper.yaml")
#: ``COSTS[norm][model][method][dataset]``.
COSTS: dict[str, dict[str, dict[str, dict[str, PaperValue]]]] = {
    norm: {
        model: {method: {key: PaperValue(*pair) for key, pair in row.items()} for method, row in table.items()}
        for model, table in tables.items()
    }
    for norm, tables in PAPER["costs"].items()
}
#: ``ACCURACY[model][dataset]``, a share.
ACCURACY: dict[str, dict[str, float]] = PAPER["accuracy"]

#: Columns of each table. No mean of L1 norms exceeds sqrt(columns) times the mean of the L2 norms of the same points.
WIDTHS = {"german": 60, "compas": 7, "adult": 13}

#: The paper's network costs seem to be printed under each other's names: what stands under Adult exceeds that limit
#: for 13 columns with every method (:func:`rocerf.reproduction.costs.exchange_sentence` gives the ratios).
EXCHANGED = {"german": "adult", "adult": "german"}
