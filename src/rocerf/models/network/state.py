"""A neural model as plain values and arrays, and back."""

from __future__ import annotations

import copy
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

from rocerf.data.training_set import rows_in
from rocerf.errors import FileFormatError
from rocerf.models.design import Design
from rocerf.models.network.network import Architecture, checked_device, precision_of, state_arrays, with_state
from rocerf.models.network.options import NetworkOptions, device_here
from rocerf.models.network.retraining import OwnTraining, Refit, Retrainer, UsersTraining
from rocerf.models.network.training import Training
from rocerf.storage.state import State

if TYPE_CHECKING:
    from rocerf.models.network.model import NeuralModel

FORMAT = "rocerf-neural-model/2"


def state_of(model: NeuralModel, retrainer: Retrainer, damping: float | Literal["auto"]) -> State:
    """Network and training rows; how a network that came from torch is trained is not in it."""
    own = retrainer if isinstance(retrainer, OwnTraining) else None
    values = {
        "threshold": model.threshold,
        "damping": damping,
        "standardises": model.design.standardises,
        "seed": model.seed,
        "device": model.device,
        "architecture": None if own is None else asdict(own.architecture),
        "training": None if own is None else asdict(own.training),
    }
    arrays = {"centre": model.design.centre, "scale": model.design.scale}
    arrays |= {f"state_{place}": numbers for place, numbers in enumerate(state_arrays(model.module))}
    return model.train.state().extended(FORMAT, values, arrays)


def model_from(state: State, module: Any | None, refit: Refit | None, device: str | None) -> NeuralModel:
    """The inverse of :func:`state_of`, on the device it was on where there is none given."""
    from rocerf.models.network.model import NeuralModel

    about, arrays = state.values, state.arrays
    with state.understood(FORMAT, "NeuralModel.save"):
        train, shape = rows_in(state), about["architecture"]
        numbers = [arrays[f"state_{place}"] for place in range(sum(name.startswith("state_") for name in arrays))]
        design = Design(arrays["centre"], arrays["scale"], False, about["standardises"])
        own = None if shape is None else OwnTraining(Architecture(**shape), Training(**about["training"]))
        where = device_here(about["device"]) if device is None else device
        options = NetworkOptions(about["seed"], about["threshold"], about["damping"], where)
    retrainer: Retrainer
    if own is not None:
        retrainer, skeleton = own, own.architecture.module()
    elif module is None:
        raise FileFormatError(
            "Expected the module too, since this network came from torch and a file without pickle holds only its "
            "numbers; in Python give it: NeuralModel.load(path, module=..., refit=...), or for an explainer's folder "
            "Rocerf.load(folder, model=NeuralModel.load(folder + '/model.npz', module=...)). The command line has no "
            "module: use an explainer of NeuralModel.fit there."
        )
    else:
        skeleton = copy.deepcopy(module).double().eval()
        retrainer = UsersTraining(refit, skeleton, precision_of(module))
    checked_device(options.device)
    return NeuralModel(train, with_state(skeleton, numbers), design, retrainer, options)
