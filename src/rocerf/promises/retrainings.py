"""Models retrained after random deletions, for a promise by simulation."""

from __future__ import annotations

import numpy as np

from rocerf.deletion.random_deletions import random_deletion_sizes, random_deletions
from rocerf.models.ensembles import Ensemble
from rocerf.models.model import Refittable, Retraining
from rocerf.types import Progress

#: Sets the seeds of simulated models apart from everybody else's.
STREAM = 0x51A7ED


def after_random_deletions(
    model: Refittable, k: int, count: int, retraining: Retraining, seed: int, progress: Progress | None = None
) -> Ensemble:
    """So many models, each retrained after a random deletion of 0 to k rows, all sizes equally likely.

    Model m depends on (seed, m) alone, given how many there are: sizes are drawn together.
    """
    # A stream of its own: whoever evaluates with the same seed must not meet these models again.
    stream = int(np.random.SeedSequence([seed, STREAM]).generate_state(1)[0])
    sizes = random_deletion_sizes(k, count, seed=stream)
    deletions = [
        random_deletions(model.train, int(size), 1, seed=stream, first=trial)[0] for trial, size in enumerate(sizes)
    ]
    return model.refitted(deletions, retraining=retraining, seed=stream, progress=progress)
