"""Other methods, with the same ``explain`` as :class:`rocerf.Rocerf`.

Each comes twice: ``preset="corrected"`` (the default) solves the method's own problem well, ``preset="authors"`` makes
the choices of the code behind the paper's tables, slips included. The docstring of each class says what differs. The
paper's own method as its code runs it is :class:`AuthorsRocerf`; solved well it is a promise of :class:`rocerf.Rocerf`.
"""

from rocerf.baselines.cchvae import CChvae
from rocerf.baselines.margin import Margin, margin_of_cost
from rocerf.baselines.registry import register_baseline
from rocerf.baselines.roar import ParameterBox, Roar
from rocerf.baselines.rocerf_authors import AuthorsRocerf
from rocerf.baselines.scfe import Scfe

__all__ = ["AuthorsRocerf", "CChvae", "Margin", "ParameterBox", "Roar", "Scfe", "margin_of_cost", "register_baseline"]
