"""Other methods, with the same ``explain`` as :class:`rocerf.Rocerf`.

Each comes twice: ``preset="corrected"`` (the default) solves the method's own problem well, ``preset="authors"`` makes
the choices of the code behind the paper's tables. The docstring of each class says what differs.
"""

from rocerf.baselines.cchvae import CChvae
from rocerf.baselines.registry import register_baseline
from rocerf.baselines.roar import ParameterBox, Roar
from rocerf.baselines.scfe import Scfe

__all__ = ["CChvae", "ParameterBox", "Roar", "Scfe", "register_baseline"]
