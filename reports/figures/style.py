"""How figures look, and how they are written: the same bytes for the same figure.

matplotlib is used through its objects, without pyplot: no window, no figure that stays behind, no setting that leaks.
It is imported when a figure is drawn. Letters are written as shapes, so that a figure looks the same without our font;
no date and no version is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ...scenarios.errors import RunError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = {
    ".svg": {"Date": None, "Creator": None},
    ".png": {"Software": None},
}
"""The endings that a figure's file may have, and what of their metadata is left out."""
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette, told apart by people who are colour-blind; its yellow, too pale on white, is left out."""
MARKERS = ("o", "X", "s", "^", "D", "v", "P")
"""Shapes beside the colours: nothing is told by colour alone."""
INK, FAINT = "#222222", "#BBBBBB"
WIDTH, HEIGHT = 6.4, 4.4
"""Inches of a figure, unless it needs more."""
_STYLE: dict[str, Any] = {
    "figure.dpi": 100,
    "savefig.dpi": 160,
    "figure.facecolor": "white",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.4,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "svg.fonttype": "path",
    "svg.hashsalt": "ctxbench",
}


@contextmanager
def style() -> Iterator[None]:
    """Our look, whatever the user's matplotlibrc says, and as it was afterwards. For drawing and for saving."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        cast(Any, mpl.rcParams).update(_STYLE)
        yield


def figure(width: float = WIDTH, height: float = HEIGHT) -> Figure:
    """An empty figure. To be called, drawn and saved within `style`; `save` sees to itself."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def check(path: Path) -> None:
    """Raise a RunError if no figure can be written to such a path: before work is done for it."""
    if path.suffix.lower() not in FORMATS:
        wanted = " or ".join(FORMATS)
        raise RunError(f"{path}: a figure is written as {wanted}, not as {path.suffix or 'a file without ending'}")
    if not path.parent.is_dir():
        raise RunError(f"{path}: there is no folder {path.parent}: make it, or name another")


def save(drawn: Figure, path: Path) -> None:
    """Write a figure in the format that its path's ending names. Raises RunError if that cannot be done."""
    check(path)
    ending = path.suffix.lower()
    try:
        with style():
            drawn.savefig(path, format=ending[1:], metadata=FORMATS[ending])
    except OSError as error:
        raise RunError(f"{path}: cannot be written: {error.strerror or error}") from None
