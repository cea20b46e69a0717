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
DATASETS = {
    "german": "German Credit",
    "compas": "COMPAS",
    "compas-30": "COMPAS, read in 30 parts",
    "compas-whole": "COMPAS, read whole",
    "compas-risk": "COMPAS, label risk",
    "adult": "Adult",
}
MODELS = {"lr": "logistic regression", "nn": "neural network"}
METHODS = {
    "scfe": "SCFE",
    "margin": "constant margin",
    "cchvae": "C-CHVAE",
    "cchvae_trained": "C-CHVAE, trained anew",
    "roar": "ROAR",
    "rocerf": "ROCERF (the paper's)",
    "rocerf_exact": "ROCERF, solved exactly",
    "first_order": "first_order, all parameters",
    "simulated": "simulated (ours)",
    "retrained": "retrained (ours)",
}
SETTINGS = {"published": "as published", "corrected": "corrected"}
BASELINES = ("scfe", "cchvae", "roar")
#: Methods that know nothing of deletions: what a curve of the paper's or ours is held against.
SIMPLE = ("scfe", "margin", "roar", "cchvae")
#: The methods of this package that the paper does not have.
OURS = {"lr": ("retrained",), "nn": ("simulated", "retrained")}
#: Named variants of a data set or a method of the paper: the same printed value is held against each.
VARIANT_OF = {name: "compas" for name in DATASETS if name.startswith("compas-")}
VARIANT_OF |= {"rocerf_exact": "rocerf", "cchvae_trained": "cchvae"}
#: What is not run of a variant: the authors ship no autoencoder for the other label; in how many parts test people are
#: read is looked at for logistic models and the autoencoder that the authors ship.
_OTHERWISE_READ = ("cchvae_trained", "nn")
NOT_RUN = {"compas-risk": ("cchvae",), "compas-30": _OTHERWISE_READ, "compas-whole": _OTHERWISE_READ}
#: The three tables of the paper, without variants.
TABLES = tuple(name for name in DATASETS if name not in VARIANT_OF)


def is_run(setting: str, dataset: str, model: str, method: str = "") -> bool:
    """Whether a full run has a case, or a method of it: of a variant only what it is about.

    >>> is_run("published", "compas-whole", "lr", "cchvae"), is_run("corrected", "compas-whole", "lr")
    (True, False)
    """
    if dataset not in VARIANT_OF:
        return True
    return setting == "published" and not {model, method} & {*NOT_RUN[dataset]}


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


def printed(norm: str, model: str, method: str, dataset: str) -> PaperValue | None:
    """The paper's cost that a method on a data set, or a variant of either, is held against; None if it has none.

    >>> printed("l2", "lr", "rocerf_exact", "compas-risk")
    PaperValue(mean=0.87, standard_error=0.02)
    """
    named = COSTS[norm][model].get(VARIANT_OF.get(method, method), {})
    return named.get(VARIANT_OF.get(dataset, dataset))


#: Columns of each table. No mean of L1 norms exceeds sqrt(columns) times the mean of the L2 norms of the same points.
WIDTHS = {"german": 60, "compas": 7, "adult": 13}

#: The paper's network costs seem to be printed under each other's names: what stands under Adult exceeds that limit
#: for 13 columns with every method (:func:`rocerf.reproduction.costs.exchange_sentence` gives the ratios).
EXCHANGED = {"german": "adult", "adult": "german"}
