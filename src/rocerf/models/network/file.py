"""A neural model on disk: plain arrays and JSON in one ``.npz`` file, no pickle."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from os import PathLike
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from rocerf.data.training_set import TrainingSet
from rocerf.data.training_set_file import pack, unpack
from rocerf.models.design import Design
from rocerf.models.network.network import Architecture, state_arrays
from rocerf.models.network.retraining import OwnTraining
from rocerf.models.network.training import Training
from rocerf.storage.reading import arrays_and_about, packed_arrays, reading
from rocerf.storage.whole_file import write_bytes

if TYPE_CHECKING:
    from rocerf.models.network.model import NeuralModel

FILE_FORMAT = "rocerf-neural-model/2"


@dataclass(frozen=True, eq=False)
class SavedNetwork:
    """What a file holds; ``own`` is None for a network that came from torch."""

    train: TrainingSet
    state: list[NDArray[np.float64]]
    design: Design
    own: OwnTraining | None
    seed: int
    threshold: float
    damping: float | Literal["auto"]
    device: str


def write(
    path: str | PathLike[str], model: NeuralModel, own: OwnTraining | None, damping: float | Literal["auto"]
) -> None:
    """Write the model, for its owner only: the training rows are in it."""
    about, arrays = pack(model.train)
    about |= {
        "threshold": model.threshold,
        "damping": damping,
        "standardises": model.design.standardises,
        "seed": model.seed,
        "device": model.device,
        "architecture": None if own is None else asdict(own.architecture),
        "training": None if own is None else asdict(own.training),
    }
    arrays |= {"centre": model.design.centre, "scale": model.design.scale}
    arrays |= {f"state_{place}": values for place, values in enumerate(state_arrays(model.module))}
    write_bytes(path, packed_arrays(FILE_FORMAT, about, arrays), private=True)


def read(path: str | PathLike[str]) -> SavedNetwork:
    """Read what :func:`write` wrote."""
    with reading(path, FILE_FORMAT, "NeuralModel.save"):
        arrays, about = arrays_and_about(path, FILE_FORMAT)
        shape, training = about["architecture"], about["training"]
        return SavedNetwork(
            train=unpack(about, arrays),
            state=[arrays[f"state_{place}"] for place in range(sum(name.startswith("state_") for name in arrays))],
            design=Design(arrays["centre"], arrays["scale"], False, about["standardises"]),
            own=None if shape is None else OwnTraining(Architecture(**shape), Training(**training)),
            seed=about["seed"],
            threshold=about["threshold"],
            damping=about["damping"],
            device=about["device"],
        )
