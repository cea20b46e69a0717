"""What `rocerf reproduce` runs: a readable settings file, with three presets.

``quick`` shows every table and figure in minutes; ``full`` is the paper's size: 100 removals at every share, 100
epochs, all denied people; ``cpu`` is for machines without a GPU: all removals but at most 560 people for logistic
regression (so that only Adult is a sample), few of both for networks, five seeds of each. A file names a preset and
says what differs from it::

    preset: quick
    datasets: [german]
    trials: 10
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from os import PathLike
from pathlib import Path
from typing import Any

from rocerf.data.columns import is_number
from rocerf.data.documents import read_text, yaml_document
from rocerf.deletion.efforts import EFFORTS
from rocerf.errors import FileFormatError, OptionError
from rocerf.evaluation.methods import METHODS, method_names
from rocerf.models.options import checked_seed, one_of, positive, positive_whole
from rocerf.reproduction.sweeps import KNOB_OF, VALUES

DATASETS = ("german", "compas", "compas-30", "compas-whole", "compas-risk", "adult")
#: The tables that networks are trained on, under the names they are loaded by.
TABLES = ("german", "german-as-published", "compas", "compas-as-published", "adult")
MODELS = ("lr", "nn")
ALL_METHODS = method_names()
SETTINGS = ("published", "corrected")

#: Epochs of the network on German's published, scrambled labels. After the paper's 100 ours refuse 0, 1 and 4 of the
#: 200 test people (seeds 0 to 2), too few to compare anything; after 300 they refuse 18. The paper's refused 27.
LONGER = 300

#: Epochs of the network on Adult where time is short: after 20 its test accuracy is 83.9 and 84.0 % (seeds 0 and 1),
#: after 10 83.7 and 84.0 %, after the paper's 100 84.5 %.
SHORTER = 20


@dataclass(frozen=True)
class ExperimentSettings:
    """Everything that decides what is computed; ``device`` decides only where.

    Parameters
    ----------
    datasets, models, settings, methods : tuples of names
        What is crossed; a method is run where it exists.
    alphas : tuple of float
        Shares of the training rows removed at random.
    trials : int
        Removals at each share (M); the same ones for all methods.
    chunk : int
        Removals of one job: what an interruption can lose.
    people : int or None
        At most so many denied people, drawn at random; None is all of them.
    epochs : int, or a number for each table (data sets, and those as published)
        Of every network, retrained ones included.
    k : float
        Share of the rows that the robust methods are to withstand.
    sensitivity_k : tuple of float
        Shares k of the sensitivity figure.
    worst_effort, worst_people :
        How hard the adversary looks (also that of `retrained` for networks), and at how many people at most.
    simulated : three ints
        Networks that shape, choose and check the promise `simulated`.
    theorem_sizes, theorem_k :
        Training rows and deletions of the check of Theorems 4.1 and 4.2.
    judge_starts : int
        Networks retrained without the rows picked for each point, from fresh starts.
    retrained_people : int
        At most so many people are answered by `retrained` for networks, which trains networks by the hundred.
    fresh_starts : three ints
        Starts, rounds and checking networks of `retrained` for networks (:class:`rocerf.promises.FreshStarts`).
    sweeps : a list of numbers for each method
        Values of its knob (:mod:`rocerf.reproduction.sweeps`) beside the one of the tables.
    sweep_people, sweep_seeds : int
        At most so many people at each value, not more than ``worst_people`` (0: no sweeps), also in the worst case of
        networks; and the seeds of networks for which every value is run, other seeds having that of the tables.
    seeds : int
        Networks, and autoencoders, trained with so many seeds, from ``seed`` on.
    seed_people, seed_worst_people : int
        At most so many people for the seeds after the first: in all, and judged by picked deletions (and answered by
        `retrained` for networks).
    networks : mapping
        What is different for networks: names and values of :data:`OF_NETWORKS`.
    seed, evaluation_seed : int
        For what is fitted, and for the removals and fresh networks that judge it.

    Examples
    --------
    >>> settings = ExperimentSettings.preset_named("quick").changed(datasets=["german"])
    >>> settings.datasets, settings.trials
    (('german',), 5)
    """

    preset: str = "full"
    datasets: tuple[str, ...] = DATASETS
    models: tuple[str, ...] = MODELS
    settings: tuple[str, ...] = SETTINGS
    methods: tuple[str, ...] = ALL_METHODS
    alphas: tuple[float, ...] = (0.0, 0.005, 0.01, 0.02, 0.03, 0.05)
    trials: int = 100
    chunk: int = 100
    people: int | None = None
    epochs: Any = field(default_factory=lambda: {"german-as-published": LONGER})
    k: float = 0.005
    sensitivity_k: tuple[float, ...] = (0.005, 0.01, 0.02, 0.03, 0.05)
    worst_effort: str = "normal"
    worst_people: int = 100
    judge_starts: int = 5
    retrained_people: int = 300
    fresh_starts: tuple[int, ...] = (6, 6, 10)
    sweeps: Any = field(default_factory=lambda: dict(VALUES))
    sweep_people: int = 100
    sweep_seeds: int = 1
    seeds: int = 5
    seed_people: int = 300
    seed_worst_people: int = 30
    simulated: tuple[int, ...] = (40, 60, 20)
    theorem_sizes: tuple[int, ...] = (1000, 2000, 4000, 8000, 16000, 32000)
    theorem_k: tuple[int, ...] = (1, 5, 20)
    networks: Any = field(default_factory=dict)
    device: str = "cpu"
    seed: int = 0
    evaluation_seed: int = 2023

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {name: _named(getattr(self, name), name, known) for name, known in _NAMES.items()}
        checked |= {name: _shares(getattr(self, name), name) for name in ("alphas", "sensitivity_k")}
        for name in ("simulated", "fresh_starts", "theorem_sizes", "theorem_k"):
            values = _listed(getattr(self, name), name)
            checked[name] = tuple(positive_whole(value, f"every entry of {name}") for value in values)
        for name in ("simulated", "fresh_starts"):
            if len(checked[name]) != 3:
                raise OptionError(f"Expected {name} to be three numbers, got {list(checked[name])}; give three.")
        checked["epochs"] = _by_dataset(self.epochs, "epochs")
        checked["sweeps"] = _values(self.sweeps)
        for name in (*_COUNTS, *(() if self.people is None else ("people",))):
            positive_whole(getattr(self, name), name)
        if self.sweep_people != 0:
            positive_whole(self.sweep_people, "sweep_people")
        (checked["k"],) = _shares([self.k], "k")
        one_of(self.worst_effort, "worst_effort", EFFORTS)
        if not isinstance(self.device, str):
            raise OptionError(f"Expected device to be a name such as cpu or cuda, got {self.device!r}.")
        checked_seed(self.seed), checked_seed(self.evaluation_seed)
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "networks", self._of_networks())

    def _of_networks(self) -> dict[str, Any]:
        """What is different for networks, each value checked as it is for all models."""
        if not isinstance(self.networks, Mapping):
            raise OptionError(f"Expected networks to be settings by name, got {self.networks!r}; write trials: 10.")
        strange = [name for name in self.networks if name not in OF_NETWORKS]
        if strange:
            known = ", ".join(OF_NETWORKS)
            raise OptionError(f"Expected settings of networks among {known}, got {strange[0]!r}; correct it.")
        theirs = replace(self, **{"networks": {}, **self.networks}) if self.networks else self
        return {name: getattr(theirs, name) for name in OF_NETWORKS if name in self.networks}

    def of(self, model: str) -> ExperimentSettings:
        """The settings of one kind of model: those of ``nn`` have what is different for networks."""
        return replace(self, **{"networks": {}, **self.networks}) if model == "nn" and self.networks else self

    @classmethod
    def preset_named(cls, name: str) -> ExperimentSettings:
        """``quick``, ``cpu`` or ``full``."""
        return cls(preset=one_of(name, "preset", PRESETS), **PRESETS[name])

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], preset: str = "full") -> ExperimentSettings:
        """A preset and what differs from it."""
        base = cls.preset_named(document.get("preset", preset))
        return base.changed(**{name: value for name, value in document.items() if name != "preset"})

    @classmethod
    def read(cls, path: str | PathLike[str], preset: str = "full") -> ExperimentSettings:
        """From a YAML file; ``preset`` counts where the file names none."""
        try:
            document = yaml_document(read_text(Path(path)))
        except ValueError as error:
            said = " ".join(str(error).split())
            raise FileFormatError(f"Expected settings in YAML, got {path} which is not ({said}); correct it.") from None
        if not isinstance(document, dict | None):
            got = type(document).__name__
            raise FileFormatError(f"Expected settings as 'name: value' lines in {path}, got {got}; correct it.")
        return cls.from_dict({str(name): value for name, value in (document or {}).items()}, preset)

    def changed(self, **values: Any) -> ExperimentSettings:
        """The same settings with some values replaced."""
        known = [entry.name for entry in fields(self)]
        unknown = sorted(set(values) - set(known))
        if unknown:
            got = ", ".join(unknown)
            raise OptionError(f"Expected settings among {', '.join(known)}, got {got}; correct the spelling.")
        return replace(self, **values)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, numbers and texts."""
        return {name: _plain(value) for name, value in asdict(self).items()}

    def to_yaml(self) -> str:
        """The text of a settings file."""
        import yaml

        return str(yaml.safe_dump(self.to_dict(), sort_keys=False, default_flow_style=None, allow_unicode=True))

    def methods_of(self, setting: str, model: str) -> tuple[str, ...]:
        """The methods that are run, in the order of the tables."""
        return tuple(method for method in METHODS[setting, model] if method in self.methods)


#: What the presets say beyond the defaults, which are the full run.
PRESETS: dict[str, dict[str, Any]] = {
    "quick": {
        "trials": 5,
        "people": 40,
        # German has 25 batches an epoch: after 20 epochs its network still decides the same for everybody.
        "epochs": {
            "german": 100,
            "german-as-published": LONGER,
            "compas": 20,
            "compas-as-published": 20,
            "adult": 20,
        },
        "worst_effort": "quick",
        "worst_people": 40,
        "judge_starts": 2,
        "retrained_people": 4,
        "fresh_starts": (2, 2, 2),
        "sweeps": {
            "margin": (0.1, 0.5, 1.0),
            "roar": (0.01, 0.05),
            "rocerf": (0.001, 0.01),
        },
        "sweep_people": 4,
        "seeds": 2,
        "seed_people": 20,
        "seed_worst_people": 3,
        "simulated": (10, 15, 5),
        "theorem_sizes": (1000, 4000, 16000),
    },
    "cpu": {
        "people": 560,  # everybody whom a logistic model refuses on German and COMPAS
        "sensitivity_k": (0.005, 0.02, 0.05),
        "epochs": {"german-as-published": LONGER, "adult": SHORTER},
        "worst_people": 45,
        "sweeps": {
            "margin": (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0),
            "roar": (0.01, 0.02, 0.03, 0.05, 0.2),
            "cchvae": (0.2, 1.0),
            "rocerf": (0.001, 0.0025, 0.0065, 0.0075, 0.01, 0.02),
            "retrained": (0.001, 0.0025, 0.01),
        },
        "sweep_people": 45,
        "seed_people": 20,
        "seed_worst_people": 10,
        # Few people and few removals rather than few seeds: a seed moves a network's figures more than people do.
        "networks": {
            "trials": 10,
            "people": 10,
            "worst_effort": "quick",
            "worst_people": 4,
            "judge_starts": 2,
            "retrained_people": 4,
            "fresh_starts": (3, 3, 2),
            "sweeps": {
                "margin": (0.1, 0.5, 1.0, 2.0),
                "roar": (0.01, 0.03),
                "cchvae": (0.2,),
                "rocerf": (0.001, 0.02),
                "first_order": (0.02,),
                "retrained": (0.01,),
                "simulated": (0.005,),
            },
            "sweep_people": 4,
            "seed_people": 4,
            "seed_worst_people": 2,
            "simulated": (15, 20, 5),
        },
    },
    "full": {},
}

_COUNTS = (
    *("trials", "chunk", "worst_people", "judge_starts", "retrained_people", "sweep_seeds"),
    *("seeds", "seed_people", "seed_worst_people"),
)
#: Settings that networks may have otherwise than logistic models.
OF_NETWORKS = (
    *("alphas", "trials", "chunk", "people", "worst_effort", "worst_people", "judge_starts", "retrained_people"),
    *(
        "fresh_starts",
        "sweeps",
        "sweep_people",
        "sweep_seeds",
        "seeds",
        "seed_people",
        "seed_worst_people",
        "simulated",
    ),
)
_NAMES = {"datasets": DATASETS, "models": MODELS, "settings": SETTINGS, "methods": ALL_METHODS}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    return list(value) if isinstance(value, tuple) else value


def _listed(values: Any, name: str) -> tuple[Any, ...]:
    if isinstance(values, str) or not isinstance(values, list | tuple):
        raise OptionError(f"Expected {name} to be a list, got {values!r}; write it as [a, b].")
    return tuple(values)


def _named(values: Any, name: str, known: tuple[str, ...]) -> tuple[str, ...]:
    given = _listed(values, name)
    strange = [value for value in given if value not in known]
    if strange or not given:
        got = ", ".join(map(repr, strange)) if strange else "none"
        raise OptionError(f"Expected {name} among {', '.join(known)}, got {got}; name at least one of these.")
    return tuple(value for value in known if value in given)


def _by_dataset(values: Any, name: str) -> dict[str, int]:
    """A number for each table, from one for all or from some by name (the others get 100, the paper's)."""
    if not isinstance(values, Mapping):
        return dict.fromkeys(TABLES, positive_whole(values, name))
    strange = [key for key in values if key not in TABLES]
    if strange:
        known = ", ".join(TABLES)
        raise OptionError(f"Expected {name} for data sets among {known}, got {strange[0]!r}; correct the spelling.")
    return {key: positive_whole(values.get(key, 100), name) for key in TABLES}


def _values(sweeps: Any) -> dict[str, tuple[float, ...]]:
    """Values of the knobs by method, from small to large."""
    if not isinstance(sweeps, Mapping):
        raise OptionError(f"Expected sweeps to be a list of values for each method, got {sweeps!r}; write roar: [0.1].")
    strange = [name for name in sweeps if name not in KNOB_OF]
    if strange:
        known = ", ".join(KNOB_OF)
        raise OptionError(f"Expected sweeps of methods among {known}, got {strange[0]!r}; correct the spelling.")
    given = {str(name): _listed(values, f"sweeps of {name}") for name, values in sweeps.items()}
    return {
        name: tuple(sorted({positive(value, f"every value of {name} in sweeps") for value in values}))
        for name, values in given.items()
    }


def _shares(values: Any, name: str) -> tuple[float, ...]:
    given = _listed(values, name)
    for value in given:
        if not (is_number(value) and 0 <= value < 1):
            raise OptionError(f"Expected shares from 0 up to 1 in {name}, got {value!r}; write 0.005 for 0.5 %.")
    return tuple(sorted({float(value) for value in given}))
