"""Other methods, with the same ``explain`` as :class:`rocerf.Rocerf`."""

from rocerf.baselines.scfe import Scfe

__all__ = ["Scfe"]
