"""How figures are written: the same bytes, whatever the user's settings, and no format that we do not write."""

import matplotlib as mpl
import pytest

from ctxbench.reports.figures.style import COLOURS, MARKERS, _fonts, figure, legible, share_axis, style, written


def draw(ending: str) -> bytes:
    with style():
        drawn = figure(6.4, 4.4, 0.6)
        (axes,) = drawn.axes
        axes.plot([0, 1], [0, 1], marker=MARKERS[1], color=COLOURS[1], label="a")
        axes.set_title("Tokens")
        axes.legend()
    return written(drawn, ending)


@pytest.mark.parametrize("ending", [".svg", ".png"])
def test_the_same_bytes(ending: str) -> None:
    """Twice the same figure is twice the same file, also where the user's settings are others in between."""
    first = draw(ending)
    with mpl.rc_context({"font.size": 20, "svg.hashsalt": "x", "axes.facecolor": "red", "svg.fonttype": "none"}):
        assert draw(ending) == first
    assert mpl.__version__.encode() not in first
    assert b"date" not in first.lower()


def test_letters_that_no_font_has() -> None:
    r"""Never a box: what our fonts cannot show is its code; what is invisible is a dot; a dollar begins no formula."""
    assert legible("window(max_tokens=8000) µ → é") == "window(max_tokens=8000) µ → é"
    assert legible("\u202ea$b$\n") == r"·a\$b\$ "
    assert legible("\ue000") == "·"
    shown = legible("中")
    assert shown == ("\\u4e2d" if len(_fonts()) == 1 else "中")
    with style():
        drawn = figure(6.4, 4.4, 0.6)
        drawn.text(0.5, 0.5, legible("中文 $a$ \U0001f9ff"))
    assert written(drawn, ".svg")  # a missing letter would be a warning, which is an error here


def test_an_axis_of_shares_ends_at_all() -> None:
    """Room for a mark above 100 % has no tick."""
    with style():
        (axes,) = figure(6.4, 4.4, 0.6).axes
        axes.set_ylim(0.944, 1.03)
        share_axis(axes.yaxis)
        assert axes.get_yticks()[-1] == pytest.approx(1)
        assert axes.get_yticks()[0] >= 0.944
