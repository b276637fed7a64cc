"""Predicted against reported: where each call lies, and what tells the kinds apart."""

from __future__ import annotations

from typing import Any

from ctxbench.reports.figures.agreement import KINDS, agreement
from tests.metrics.validation.recordings import call, compared, said


def lines(*calls: Any) -> dict[str, Any]:
    """The marks of the only panel by the kind that they stand for."""
    drawn = agreement(compared(said("talk", *calls)))
    [axes] = drawn.axes
    return {str(line.get_label()): line for line in axes.get_lines()}


def test_where_calls_lie() -> None:
    """Reported to the right, predicted up: an exact call on the diagonal, a miss on an axis."""
    found = lines(
        call(0, 5000, 0, 5000), call(60, 5300, 5000, 300), call(120, 5600, 0, 5600), call(180, 5900, 4000, 10)
    )
    points = {kind: list(zip(*found[kind].get_data(), strict=True)) for kind in KINDS}
    assert points == {KINDS[0]: [(0, 0), (5000, 5000)], KINDS[1]: [(4000, 5600)], KINDS[2]: [(0, 5300)]}


def test_kinds_differ_by_shape_too() -> None:
    """Not by colour alone."""
    found = lines(call(0, 5000, 0, 5000), call(60, 5300, 5000, 300))
    assert len({found[kind].get_marker() for kind in KINDS}) == 3


def test_a_panel_for_each_model() -> None:
    """In the order of the tables, with how many calls are exact; one under which nothing was read has none."""
    talks = [
        said(model, call(0, 5000, 0, 5000, model=model), call(60, 5300, 5000, 300, model=model))
        for model in ("claude-sonnet-4-5", "claude-opus-4-5")
    ]
    never = said("gpt", call(0, 5000, 0, None, model="gpt-4o"))
    drawn = agreement(compared(*talks, never))
    titles = [axes.get_title(loc="left") for axes in drawn.axes]
    assert titles == ["claude-sonnet-4-5\n2 of 2 calls exact", "claude-opus-4-5\n2 of 2 calls exact"]


def test_nothing_to_draw() -> None:
    """It says so, instead of an empty frame."""
    [axes] = agreement(compared(said("gpt", call(0, 5000, 0, None, model="gpt-4o")))).axes
    assert [text.get_text() for text in axes.texts] == ["nothing was read from a cache,\nand nothing predicted to be"]
