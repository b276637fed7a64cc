"""docs/metrics.md: every metric is on it as the code declares it, and its worked examples come out."""

import re
from pathlib import Path

import pandas as pd
import pytest

from ctxbench.metrics.figures import BILLED, METRICS
from ctxbench.metrics.value import Missing

EVERY = {**METRICS, **BILLED}
TEXT = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text("utf-8")
TABLES = [
    [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]
    for block in re.findall(r"(?:^\|.*\|$\n)+", TEXT, re.MULTILINE)
]
LISTED = {row[0].strip("`"): row[1:] for heads, _, *rows in TABLES if heads[0] == "key" for row in rows}
"""By key: name, formula, unit, better, worked example."""


def example(first: str, *columns: str) -> pd.DataFrame:
    """Return the example table that begins with these columns: –, yes and no as None, True and False."""
    (rows,) = [table for table in TABLES if table[0][: 1 + len(columns)] == [first, *columns]]
    words = {"yes": True, "no": False, "–": None}
    values = [[words.get(cell, cell) for cell in row] for row in rows[2:]]
    return pd.DataFrame(values, columns=rows[0], dtype=object)


def numbers(frame: pd.DataFrame, *others: str) -> pd.DataFrame:
    """Return the frame with all columns but these as numbers."""
    return frame.assign(**{name: pd.to_numeric(frame[name]) for name in frame.columns if name not in others})


def rows_of(table: str) -> pd.DataFrame:
    """Return the example of a table of a run, with the types that a run's has."""
    if table in ("steps", "timings"):
        steps = numbers(example("step", "tokens_full"), "newest").astype({"newest": bool})
        replaced = numbers(example("step", "policy"), "policy")
        return steps.merge(numbers(example("step", "orphan_results")), on="step").merge(replaced, on="step")
    if table == "bill":
        return numbers(example("call", "cost"))
    if table == "probes":
        probes = numbers(example("probe", "evidence_state"), "probe", "evidence_state", "answer")
        states = [text.split(", ") if isinstance(text, str) else None for text in probes.evidence_state]
        return probes.assign(evidence_state=pd.Series(states, dtype=object))
    if table == "answers":
        answers = example("probe", "answerable")
        return answers.astype({"answerable": bool})
    return numbers(example("age"))


def test_every_metric_is_on_the_page_as_it_is_declared() -> None:
    """Its key, display name, unit and direction."""
    declared = {key: [metric.name, metric.unit, metric.better] for key, metric in EVERY.items()}
    assert {key: [row[0], row[2], row[3]] for key, row in LISTED.items()} == declared


@pytest.mark.parametrize("key", EVERY)
def test_its_worked_example_comes_out(key: str) -> None:
    """The last number of the example is what the code makes of the page's own tables."""
    metric = EVERY[key]
    shown = re.search(r"(\$?)([\d.]+)( %| µs)?$", LISTED[key][4])
    assert shown is not None
    value = metric.of(rows_of(metric.table))
    assert not isinstance(value, Missing)
    assert value * (100 if metric.unit == "share" else 1) == pytest.approx(
        float(shown[2]), abs=0.051 if shown[3] else 1e-9
    )
