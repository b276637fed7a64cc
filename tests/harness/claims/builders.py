"""Inputs of claims that are made by hand: the sums of figures by conversation, without a run."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ctxbench.harness.claims.claim import Verdict
from ctxbench.harness.claims.registry import CLAIMS
from ctxbench.harness.claims.rows import ClaimInputs, ClaimSettings
from ctxbench.harness.compare.figures import About
from ctxbench.harness.compare.figures import MeasuredRun as Figures
from ctxbench.harness.folder.schema import FORMAT, Manifest, ManifestPlan
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.metrics.value import Form
from ctxbench.strategies.chain import parse, spec

MANY, FEW = 15, 1  # conversations enough for an interval, and too few
WORDS: tuple[Verdict, ...] = ("holds", "fails", "cannot tell")
SIZES = (MANY, MANY, FEW)  # where it holds, where it fails, and where one conversation is all there is
FORMS: Mapping[str, Form] = {"net_saving": "saving", "saving_with_newest": "saving"}


class Stored:
    """A run of which the tables are given."""

    def __init__(self, tables: Mapping[str, pd.DataFrame]) -> None:
        self.tables, self.folder = tables, Path("nowhere")
        self.units: Mapping[str, str] = {}
        plan = ManifestPlan((), None, (), "o200k_base", "gpt-4o", True, "offline", "offline")
        self.manifest = Manifest(FORMAT, plan, 128_000, {}, complete=True)

    def table(self, name: str) -> pd.DataFrame:
        return self.tables[name]

    def probes(self, strategy: str) -> pd.DataFrame:
        rows = self.tables["probes"]
        return rows[rows.strategy == strategy].reset_index(drop=True)


def inputs(settings: ClaimSettings = ClaimSettings("nowhere"), **known: object) -> ClaimInputs:  # noqa: B008
    """Inputs that have what is named, and nothing else."""
    made, figures = ClaimInputs(settings), known.pop("figures", None)
    nothing = {"counter": TokenCounter(), "conversations": [], "recorded": [], "extra_run": None, "run": Stored({})}
    made.__dict__.update({**nothing, "names": list(figures.digests) if isinstance(figures, Figures) else [], **known})
    made.figures_of = lambda strategy, on="run": figures  # type: ignore[assignment,method-assign,return-value]
    made.run_of = lambda strategy, on="run": made.run  # type: ignore[method-assign]
    steps = made.run.tables.get("steps")  # type: ignore[attr-defined]
    made.steps = lambda strategy, on="run": steps[steps.strategy == spec(parse(strategy))]  # type: ignore[method-assign]
    return made


def verdict(id: str, made: ClaimInputs) -> Verdict:
    """Return the verdict on a claim."""
    return CLAIMS[id].finding(made).verdict


def figures(sums: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]]) -> Figures:
    """Figures by strategy and metric: the two sums of each conversation."""
    size = max(len(rows) for metrics in sums.values() for rows in metrics.values())
    metrics = {name for each in sums.values() for name in each}
    about = {name: About("share", "higher", FORMS.get(name, "ratio"), "1") for name in metrics}
    arrays = {strategy: {name: np.array(rows, float) for name, rows in each.items()} for strategy, each in sums.items()}
    return Figures("run", "o200k_base", {f"kind/{at}": "d" for at in range(size)}, about, arrays)


def spread(value: float, size: int = MANY, wobble: float = 0.01) -> list[tuple[float, float]]:
    """Sums whose ratio is near a value in every conversation."""
    return [(value + wobble * (at % 3 - 1), 1.0) for at in range(size)]


def saving(value: float, size: int = MANY, wobble: float = 0.01) -> list[tuple[float, float]]:
    """Sums that save about a share in every conversation."""
    return [(sent, full) for sent, full in spread(1 - value, size, wobble)]
