"""Drawing: one style for every figure, one colour and marker for every promise, and what a picture is once drawn.

Colours are Okabe and Ito's palette, safe for colour-blind readers; markers tell things apart in grey print too.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from os import PathLike, fspath
from typing import Any

#: One colour and marker for each promise or method; a dashed line for the larger k. Two names of one thing share a
#: colour: SCFE is the plain counterfactual, the paper's ROCERF its first-order constraint (on a stand-in for networks).
#: `certified` and C-CHVAE are never in one figure.
LOOKS = {
    "plain": ("#E69F00", "s"),
    "first_order": ("#0072B2", "o"),
    "retrained": ("#009E73", "^"),
    "certified": ("#CC79A7", "D"),
    "scfe": ("#E69F00", "s"),
    "margin": ("#000000", "."),
    "cchvae": ("#CC79A7", "X"),
    "cchvae_trained": ("#CC79A7", "D"),
    "roar": ("#D55E00", "v"),
    "rocerf": ("#0072B2", "P"),
    "rocerf_exact": ("#0072B2", "H"),
    "local_linear": ("#0072B2", "P"),
    "simulated": ("#56B4E9", "*"),
}
COLOURS, MARKERS = ({name: look[place] for name, look in LOOKS.items()} for place in (0, 1))

_STYLE: dict[str, Any] = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "svg.fonttype": "none",
    "svg.hashsalt": "rocerf",  # the same figure is the same file
    "font.family": "sans-serif",
}


@dataclass(frozen=True)
class Picture:
    """A drawing with its words: shown by notebooks as it is, kept with :meth:`save`.

    ``alt`` says in a sentence what is to be seen, for whoever does not see it; ``figure`` is matplotlib's.
    """

    alt: str
    figure: Any = field(repr=False)

    @property
    def svg(self) -> str:
        """The drawing as SVG, with its words as a label."""
        import matplotlib

        with matplotlib.rc_context(_STYLE):  # texts stay texts
            drawn = svg_text(self.figure)
        return drawn.replace("<svg ", f'<svg role="img" aria-label="{escape(self.alt)}" ', 1)

    def save(self, path: str | PathLike[str]) -> None:
        """Write it to a file, in the format of its ending (svg, png, pdf)."""
        from rocerf.errors import FileFormatError

        name = fspath(path)
        if not name.lower().endswith((".svg", ".png", ".pdf")):
            raise FileFormatError(f"Expected a file ending in svg, png or pdf, got {name}; rename it.")
        import matplotlib

        with matplotlib.rc_context(_STYLE):
            self.figure.savefig(name, dpi=150)

    def _repr_html_(self) -> str:
        return f"<figure>{self.svg}</figure>"


@contextmanager
def canvas(
    width: float, height: float, panels: int = 1, rows: int = 1, *, sharey: bool = True
) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """A figure drawn off screen in our style, and its panels row by row."""
    import matplotlib

    with matplotlib.rc_context(_STYLE):
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(figure)
        yield figure, tuple(figure.subplots(rows, panels, sharey=sharey, squeeze=False).ravel())


def svg_text(figure: Any) -> str:
    """The figure as SVG, without anything that differs from run to run."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]
