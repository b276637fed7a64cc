"""Figures as parts of the page: their text stays text, their styles become classes, their ids are their own."""

from __future__ import annotations

import re

from ctxbench.metrics.survival import Survival
from ctxbench.reports.figures.curves import survival
from ctxbench.reports.figures.style import written
from ctxbench.reports.html.page import Styles, inline


def test_a_figure_in_a_page() -> None:
    """No style and no unused id is left; what refers to an id finds it; colours of paper and ink are the page's."""
    rows = [Survival("name", age, 100, 100 - 10 * age) for age in range(6)]
    svg = written(survival({"summary(every=5)": rows, "中文 <b>": rows}))[".svg"]
    styles = Styles()
    first, second = (inline(svg, name, 'a "title"', styles) for name in ("one", "two"))
    assert first.startswith("<svg ")
    assert "style=" not in first
    assert "<style" not in first
    assert 'aria-label="a &quot;title&quot;"' in first
    assert ">summary(every=5)<" in first
    assert "<b>" not in first
    known = set(re.findall(r' id="([^"]+)"', first))
    assert known == set(re.findall(r"#([\w-]+)", first))
    assert not known & set(re.findall(r' id="([^"]+)"', second))
    assert "var(--ink)" in styles.css
    assert "#222222" not in styles.css
    assert len(first) < len(svg)
