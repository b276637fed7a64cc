"""The look of figures, and their files: the same bytes for the same figure.

matplotlib is used through its objects, without pyplot: no window, no figure that stays behind, no setting that leaks.
It is imported when a figure is drawn. Letters of an SVG are text: they can be found, read aloud and copied. No date
and no version is written. A letter that our fonts lack is written as its code (`legible`), never as a box.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, cast

from ctxbench.harness.folder.schema import with_recipe_names
from ctxbench.scenarios.errors import printable

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


FORMATS = {".svg": {"Date": None, "Creator": None}, ".png": {"Software": None}}
"""Endings that a figure's file may have, with the metadata that is left out."""
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette, told apart by people who are colour-blind; its yellow, too pale on white, is left out."""
MARKERS = ("o", "X", "s", "^", "D", "v", "P")  # shapes beside the colours: nothing depends on colour alone
INK, FAINT, GRID = "#222222", "#BBBBBB", "#E6E6E6"
ON_COLOUR = "#FEFEFE"
"""Letters on a colour: nearly white, so that the dark page does not recolour them."""
FONT = "DejaVu Sans"  # font that comes with matplotlib
CHINESE = (
    *("Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "WenQuanYi Zen Hei", "WenQuanYi Micro Hei"),
    *("Microsoft YaHei", "SimHei", "PingFang SC", "Hiragino Sans GB", "Arial Unicode MS", "Droid Sans Fallback"),
)
"""Fonts with Chinese letters; the first that the machine has is used."""
_STYLE: dict[str, Any] = {
    "figure.dpi": 100,
    "savefig.dpi": 160,
    "figure.facecolor": "white",
    "font.size": 9,
    "font.sans-serif": [FONT],
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.4,
    "path.simplify_threshold": 0.5,  # pixels: half as many points of long lines
    "legend.frameon": False,
    "legend.fontsize": 8,
    "svg.fonttype": "none",
    "svg.hashsalt": "ctxbench",
}


@contextmanager
def style() -> Iterator[None]:
    """Apply our look, whatever the user's matplotlibrc says, while a figure is drawn or saved."""
    import matplotlib as mpl

    with mpl.rc_context(), _quiet("matplotlib.font_manager"):
        mpl.rcdefaults()
        cast(Any, mpl.rcParams).update(_STYLE, **{"font.family": [*_fonts(), "sans-serif"]})
        yield


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Silence the warnings of a logger: users need not know that a font lacks a weight."""
    logger = logging.getLogger(name)
    usual = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(usual)


@cache
def _fonts() -> tuple[str, ...]:
    """Return our font, and one for Chinese if the machine has any."""
    from matplotlib.font_manager import fontManager

    known = {font.name for font in fontManager.ttflist if Path(font.fname).is_file()}
    return (FONT, *[name for name in CHINESE if name in known][:1])


@cache
def _letters() -> frozenset[int]:
    """Return the code points that our fonts have."""
    from matplotlib.font_manager import findfont, get_font

    with _quiet("matplotlib.font_manager"):
        return frozenset(code for name in _fonts() for code in get_font(findfont(name)).get_charmap())


def legible(text: str) -> str:
    r"""Return text as a figure can show it: a letter without a font as its code, `\u4e2d`; `$` starts no formula."""
    shown = (
        char if ord(char) in _letters() else ascii(char)[1:-1]
        for char in printable(with_recipe_names(text)).replace("\n", " ")
    )
    return "".join(shown).replace("$", r"\$")


def row_name(text: str) -> str:
    """Return a strategy's text as the name of a row: legible, in lines as few as rows have room for, cut at the end."""
    cut: dict[str, Any] = {"max_lines": 2, "placeholder": " …"}
    return "\n".join(wrap(legible(text), 36, break_long_words=False, break_on_hyphens=False, **cut))


# Inches beside the axes, of their ticks with the words below, of a line of a legend or a title, and between two axes.
_EDGE, _TICKS, _LINE, _BETWEEN = 0.2, 0.5, 0.2, 0.2


def figure(width: float, height: float, left: float, above: float = 0, below: float = 0, across: int = 1) -> Figure:
    """Return a figure of so many inches with axes beside each other: `left` inches for the words on their left, and
    lines for legends and titles above and below. Call this and draw within `style`; `written` applies it by itself.

    Places are given, since matplotlib's layout engines draw a figure once more to find them.
    """
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(width, height))
    sides = {"left": left / width, "right": 1 - _EDGE / width}
    ends = {"bottom": (_TICKS + below * _LINE) / height, "top": 1 - (_EDGE + above * _LINE) / height}
    wide = (width - left - _EDGE - (across - 1) * _BETWEEN) / across
    drawn.subplots(1, across, sharey=True, gridspec_kw={**sides, **ends, "wspace": _BETWEEN / wide})
    return drawn


def by_row(
    names: Iterable[str], width: float, each: float, above: float = 0, below: float = 0, across: int = 1
) -> Figure:
    """Return a figure with a row for each name, `each` so many inches high, and lines above and below them."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    rows = [row_name(name) for name in names]
    size, widths = FontProperties(size=_STYLE["font.size"]), TextToPath().get_text_width_height_descent
    left = max((widths(line, size, False)[0] / 72 for row in rows for line in row.split("\n")), default=0)
    height = each * len(rows) + _EDGE + _TICKS + (above + below) * _LINE
    drawn = figure(width, height, left + _EDGE, above, below, across)
    for axes in drawn.axes:
        axes.grid(visible=False, axis="y")
    drawn.axes[0].set_yticks(range(len(rows)), rows)
    drawn.axes[0].invert_yaxis()
    return drawn


def written(drawn: Figure, ending: str) -> bytes:
    """Return a figure in a format."""
    file = BytesIO()
    with style():
        drawn.savefig(file, format=ending[1:], metadata=FORMATS[ending])
    return file.getvalue()


def short(value: float, _: object = None) -> str:
    """Return a number for a tick: 0 · 500 · 25k · 1.5M."""
    size, letter = next(((size, letter) for size, letter in ((1e6, "M"), (1e3, "k")) if value >= size), (1, ""))
    return f"{value / size:g}{letter}"


def share(value: float, _: object = None) -> str:
    """Return a share for a tick: 25 %."""
    return f"{value * 100:g} %"


def share_axis(axis: Axis) -> None:
    """Label an axis of shares, whose limits are set, in per cent: there is no more than 100 %."""
    low, high = axis.get_view_interval()
    rounding = 1e-9  # the tick of 100 % may be a little more than 1
    axis.set_ticks([tick for tick in axis.get_majorticklocs() if low <= tick <= min(high, 1 + rounding)])
    axis.set_major_formatter(share)


def times(value: float, _: object = None) -> str:
    """Return a multiple for a tick: 0.5×."""
    return f"{value:g}×"


def duration(microseconds: float, _: object = None) -> str:
    """Return a time for a tick: 0.1 µs · 10 µs · 1 ms · 2 s."""
    units = ((1e6, "s"), (1e3, "ms"))
    size, unit = next(((size, unit) for size, unit in units if microseconds >= size), (1, "µs"))
    return f"{microseconds / size:g} {unit}"
