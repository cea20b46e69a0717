"""What a network is besides its parameters and its training, and the seeds that follow from others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from rocerf.errors import OptionError
from rocerf.models.network.network import checked_device
from rocerf.models.options import checked_seed, checked_threshold, positive


@dataclass(frozen=True)
class NetworkOptions:
    """The seed it was trained by, the threshold of its decisions, damping of its curvature, and where it lives."""

    seed: int = 0
    threshold: float = 0.5
    damping: float | Literal["auto"] = "auto"
    device: str = "cpu"

    def checked(self) -> NetworkOptions:
        """The same, if it can be used here."""
        return NetworkOptions(
            checked_seed(self.seed),
            checked_threshold(self.threshold),
            "auto" if self.damping == "auto" else positive(self.damping, "damping", zero=True),
            checked_device(self.device),
        )


def device_here(saved: str) -> str:
    """The device a model was saved on, or the CPU where this machine has none such."""
    try:
        return checked_device(saved)
    except OptionError:
        return "cpu"


def derived_seed(*entropy: int) -> int:
    """A seed of 63 bits that depends on all of these numbers."""
    return int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0] >> np.uint64(1))
