"""C-CHVAE (Pawelczyk et al. 2020): counterfactuals drawn from a generative model of the training rows.

A variational autoencoder is fitted to the training rows. A person is encoded, latent points are drawn in shells of
growing radius around the encoded mean, and decoded; from the first shell with an accepted one the nearest accepted one
is the counterfactual. So points resemble training rows, at a price in distance.

*Corrected*: the autoencoder sees standardised columns, the scaling in which the classifier is fitted and changes are
measured, and is trained so that it reproduces rows (:mod:`rocerf.baselines.vae` says how; its form is the authors').
*Authors*: their autoencoder was fitted to columns scaled to [0, 1] and is then handed standardised people, and what it
decodes is taken for standardised columns again. Decoded points therefore lie in the unit cube beside the mean of the
data, wherever the person is, and what they cost is much a matter of chance (Adult: 10.9 with seed 0, 4.3 with seed 1,
3.9 with the weights that the authors ship, which ``weights`` names).
"""

from __future__ import annotations

import importlib.util
import sys
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from rocerf.baselines.answers import Explained, Preset, answered, checked_preset, valid
from rocerf.baselines.standard import Standard
from rocerf.data.schema import FeatureSchema
from rocerf.errors import FileFormatError, MissingExtraError, OptionError
from rocerf.explainer.explainer import Rocerf
from rocerf.models.model import Refittable
from rocerf.models.options import positive, positive_whole
from rocerf.promises.plain import Plain
from rocerf.recourse.master.master import Master
from rocerf.recourse.result import Recourses
from rocerf.types import Array, Places, Progress

if TYPE_CHECKING:
    import pandas as pd

    from rocerf.baselines.vae import Vae, VaeOptions


#: The authors' hidden layers by number of columns: COMPAS, Adult, German.
HIDDEN = {7: (14, 28), 13: (26, 52), 60: (24, 48)}
#: Elsewhere the first is twice as wide as the row, within these, and the second twice as wide as the first.
NARROWEST, WIDEST = 16, 64
#: From so many rows on the authors train with larger batches (Adult).
MANY_ROWS = 20_000
#: Least variance of a decoded standardised column, and the share of the epochs in which latent columns come free.
#: Chosen on COMPAS and German: of the variance of test rows 25 and 90 % is left, without them 76 and 99 %.
VARIANCE_FLOOR, WARM_UP = 0.1, 0.5
#: Numbers decoded at a time.
BLOCK = 2**22


class CChvae:
    """Counterfactuals that resemble training rows; same ``explain`` as :class:`rocerf.Rocerf`. Needs torch.

    The autoencoder is trained at the first ``explain`` and kept; :meth:`save_vae` and :meth:`load_vae` carry it over.

    Parameters
    ----------
    model : LogisticModel, NeuralModel or EstimatorModel
        Which has to accept the points.
    preset : "corrected" or "authors"
        Which scaling the autoencoder learns; see above.
    latent : int
        Size of the latent space.
    hidden : (int, int), optional
        Units of the hidden layers; by default the authors' for tables as wide as theirs (7, 13 or 60 columns), else 2d
        and 4d within 16 to 64 and 32 to 128.
    epochs, batch_size, learning_rate : numbers, optional
        Of Adam; by default 100, 32 and 1e-3, for 20,000 rows or more 50, 256 and 2e-3 (the authors' for Adult).
    samples, shell, shells : numbers
        Latent points drawn in each shell, its width, and the most shells: 1,000, 0.05 and 10,000 as in the paper.
    weights : path, optional
        Only for "authors": a file with the weights that the paper's code ships (``vae_*_rr_cfe.pt``, or the same
        arrays as ``.npz``; :mod:`rocerf.baselines.authors_vae`). Nothing is trained then.
    cost, schema, seed
        As for :class:`rocerf.Rocerf`. Decoded points are moved into what the schema allows (an immutable column back to
        the person's own value) and must be accepted after that. The same draws serve everybody, so a person's answer
        does not depend on who else is asked for.

    Examples
    --------
    >>> import rocerf
    >>> data = rocerf.load_dataset("german")
    >>> model = rocerf.LogisticModel.fit(data.train)
    >>> recourses = CChvae(model, epochs=2).explain(data.test.X[:5])
    >>> bool((model.score(recourses.matrix[recourses.answered]) >= 0).all()), recourses.settings.method
    (True, 'cchvae')
    """

    def __init__(
        self,
        model: Refittable,
        *,
        preset: Preset = "corrected",
        latent: int = 6,
        hidden: tuple[int, int] | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        samples: int = 1000,
        shell: float = 0.05,
        shells: int = 10_000,
        cost: str = "l2",
        schema: FeatureSchema | None = None,
        seed: int = 0,
        weights: str | PathLike[str] | None = None,
    ) -> None:
        _refuse_without_torch()
        self.preset = checked_preset(preset)
        self.weights = None if weights is None else Path(weights)
        if self.weights is not None and self.preset != "authors":
            raise OptionError(
                f"Expected weights only with preset='authors', got {str(weights)!r}; the corrected autoencoder is "
                "trained on other columns."
            )
        self._explainer = Rocerf(model, 0, promise=Plain(model), cost=cost, schema=schema, seed=seed)
        n, d = model.train.X.shape
        usual = (50, 256, 2e-3) if n >= MANY_ROWS else (100, 32, 1e-3)
        corrected = self.preset == "corrected"
        self._sizes: dict[str, Any] = {
            "inputs": d,
            "hidden": _default_hidden(d) if hidden is None else _checked_hidden(hidden),
            "latent": positive_whole(latent, "latent"),
            "epochs": positive_whole(usual[0] if epochs is None else epochs, "epochs"),
            "batch_size": positive_whole(usual[1] if batch_size is None else batch_size, "batch_size"),
            "learning_rate": positive(usual[2] if learning_rate is None else learning_rate, "learning_rate"),
            "variance_floor": VARIANCE_FLOOR if corrected else 0.0,
            "warm_up": WARM_UP if corrected else 0.0,
        }
        self.samples, self.shells = positive_whole(samples, "samples"), positive_whole(shells, "shells")
        self.shell = positive(shell, "shell")
        self._vae: Vae | None = None

    @property
    def vae_options(self) -> VaeOptions:
        """Sizes and training of the autoencoder."""
        from rocerf.baselines.vae import VaeOptions

        return VaeOptions(**self._sizes)

    @property
    def vae(self) -> Vae:
        """The autoencoder, trained at first use."""
        return self._trained(None)

    def _trained(self, progress: Progress | None) -> Vae:
        if self._vae is None and self.weights is not None:
            from rocerf.baselines.authors_vae import read_weights

            self._vae = read_weights(self.weights, self.vae_options)
        if self._vae is None:
            from rocerf.baselines.vae import Vae

            rows = self._learned_rows()
            self._vae = Vae.train(rows, self.vae_options, seed=self._explainer.seed, progress=progress)
        return self._vae

    def _learned_rows(self) -> Array:
        """The training rows as the autoencoder sees them, (n, d)."""
        X = self._explainer.model.train.X
        if self.preset == "corrected":
            return Standard.of(self._explainer.model.train).inwards(X)
        low, width = X.min(axis=0), np.ptp(X, axis=0)
        return np.asarray((X - low) / np.where(width > 0, width, 1.0))

    @property
    def _about(self) -> dict[str, Any]:
        return {"preset": self.preset, "data_checksum": self._explainer.model.train.checksum}

    def save_vae(self, path: str | PathLike[str]) -> None:
        """Write the autoencoder to one ``.npz`` file (no pickle), training it first if need be."""
        self.vae.save(path, self._about)

    def load_vae(self, path: str | PathLike[str]) -> None:
        """Use an autoencoder that :meth:`save_vae` wrote; it must be of the same training rows, preset and sizes."""
        from rocerf.baselines.vae import Vae

        vae, about = Vae.load(path)
        if about != self._about or vae.options != self.vae_options:
            raise FileFormatError(
                f"Expected an autoencoder of these training rows with {self.vae_options} and {self._about}, got one "
                f"with {vae.options} and {about}; give CChvae the options it was saved with, or train a new one."
            )
        self._vae = vae

    def explain(self, X: ArrayLike | pd.DataFrame, *, progress: Progress | None = None) -> Recourses:
        """A counterfactual for each person of X, shape (P, d), in their order."""
        return self.explained(X, progress=progress).recourses

    def explained(self, X: ArrayLike | pd.DataFrame, *, progress: Progress | None = None) -> Explained:
        """The same with where the search ended for everybody."""
        return answered("cchvae", self._explainer, X, progress, self._search, self.preset)

    def _search(self, master: Master, _: Places, progress: Progress | None) -> Array:
        """Nearest accepted decoded points of the first shells that have any (P, d), missing where none has."""
        space = Standard.of(self._explainer.model.train)
        vae = self._trained(progress)
        centres = vae.encode(space.inwards(master.X0))
        points, open_ = np.full(master.X0.shape, np.nan), np.arange(len(master.X0))
        size = max(1, BLOCK // (self.samples * max(vae.options.inputs, *vae.options.hidden)))
        for number in range(self.shells):
            draws = self._draws(number, vae.options.latent)
            for first in range(0, len(open_), size):
                block = open_[first : first + size]
                latents = centres[block, None, :] + draws
                decoded = space.outwards(vae.decode(latents.reshape(-1, latents.shape[2])))
                points[block] = self._nearest(master.of(block), decoded.reshape(len(block), len(draws), -1))
            open_ = open_[np.isnan(points[open_, 0])]
            if progress is not None:
                progress(len(points) - len(open_), len(points))
            if not len(open_):
                break
        return points

    def _draws(self, number: int, latent: int) -> Array:
        """Steps (samples, latent) in uniform directions, of lengths uniform over the shell."""
        rng = np.random.default_rng([self._explainer.seed, number])
        steps = rng.standard_normal((self.samples, latent))
        lengths = self.shell * (number + rng.random(self.samples))
        return np.asarray(steps * (lengths / np.sqrt((steps * steps).sum(axis=1)))[:, None])

    def _nearest(self, master: Master, candidates: Array) -> Array:
        """The cheapest accepted of each person's candidates (Q, c, d) once inside their box; missing if none is."""
        people, count, d = candidates.shape
        one_each = master.allowed.of(np.repeat(np.arange(people), count))
        candidates = one_each.landed(candidates.reshape(-1, d)).reshape(people, count, d)
        scores = Plain(self._explainer.model).read(candidates.reshape(-1, d)).values.reshape(people, count)
        costs = np.full(scores.shape, np.inf)
        # Shell after shell nobody is accepted: only who is has a price.
        person, which = np.nonzero(valid(scores))
        costs[person, which] = master.cost.of(candidates[person, which], master.X0[person])
        rows, best = np.arange(people), costs.argmin(axis=1)
        return np.where(np.isfinite(costs[rows, best])[:, None], candidates[rows, best], np.nan)


def _refuse_without_torch() -> None:
    """Say so at once, without importing it."""
    there = sys.modules["torch"] is not None if "torch" in sys.modules else importlib.util.find_spec("torch")
    if not there:
        raise MissingExtraError("torch", "nn", "C-CHVAE")


def _default_hidden(d: int) -> tuple[int, int]:
    first = min(max(2 * d, NARROWEST), WIDEST)
    return HIDDEN.get(d, (first, 2 * first))


def _checked_hidden(hidden: Any) -> tuple[int, int]:
    if not isinstance(hidden, tuple | list) or len(hidden) != 2:
        raise OptionError(f"Expected hidden to be two numbers of units, got {hidden!r}; use for example (24, 48).")
    return positive_whole(hidden[0], "hidden"), positive_whole(hidden[1], "hidden")
