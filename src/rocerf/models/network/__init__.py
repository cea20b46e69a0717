"""Neural networks: many trained at once, their scores, slopes and curvature. Torch is imported only here."""

from rocerf.errors import MissingExtraError

try:
    import torch as torch
except ImportError as error:  # the core works without torch; whoever imports this room wants networks
    raise MissingExtraError("torch", "nn", "A neural network") from error
