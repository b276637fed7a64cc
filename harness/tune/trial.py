"""Run one setting on some recordings, measure it, and store the figures as a small file.

Runs are made under `running/` and removed. `figures/` has the sums that cost and quality are made of, by conversation.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import NamedTuple

import msgspec
import numpy as np

from ctxbench.metrics.figures import fixed
from ctxbench.metrics.frontier import Point, frontier
from ctxbench.metrics.prices import BUNDLED
from ctxbench.metrics.statistics.comparison import Difference, Pairs, difference
from ctxbench.metrics.statistics.intervals import BY_CONSTRUCTION, Floats, Interval, by_unit, mean_of, over_units
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.files import LARGEST, read_file

from ..answers.tally import Tally, run_tallies
from ..compare.figures import measured
from ..engine.plan import Plan, RunInputs, execute
from ..folder.files import placed
from ..folder.run import Run, load
from ..models import Settings

TOKENS = "tokens"  # the cost where no model is billed: tokens sent, including those of the strategy's own model calls
QUALITIES = ("answer_quality", "context_recall", "grounding")
"""Measures of quality: the first of these that the recordings allow is taken."""
FIGURES = "figures"  # the folder of the figures in that of a search


class Task(msgspec.Struct, frozen=True):
    """A setting, and the recordings to measure it on."""

    spec: str
    part: str  # the part of the recordings: `train` or `held-out`
    folder: str
    cost: str  # the model to bill, or TOKENS
    qualities: tuple[str, ...]
    models: Settings  # how to reach the models that the setting names
    inputs: str  # a digest of the recordings and of the versions of what measures them

    @property
    def file(self) -> Path:
        """File of the figures."""
        text = msgspec.json.encode((self.spec, self.part, self.cost, self.qualities, self.inputs))
        return Path(self.folder) / FIGURES / f"{self.part}-{hashlib.sha256(text).hexdigest()[:16]}.json"


class Tried(msgspec.Struct, frozen=True):
    """The figures of a setting."""

    spec: str
    conversations: list[str]
    cost: list[float] = []  # cost of each conversation
    quality: dict[str, list[tuple[float, float]]] = {}
    """Contribution of each conversation to the two sums of each measure (`metrics/value.py`)."""
    lacking: int = 0  # calls that have neither the newest message nor one written in its place
    calls: int = 0
    failed: str = ""  # why there are no figures: the strategy failed in a conversation
    replies: list[Tally] = []  # replies of the strategy's own models


def try_packed(packed: bytes) -> bytes:
    """Try a task that came as MessagePack, as workers receive it, and return it."""
    tried(msgspec.msgpack.decode(packed, type=Task))
    return packed


def tried(task: Task) -> Tried:
    """Return the figures of a setting: the stored ones, or measured now."""
    if (known := stored(task.file)) is not None:
        return known
    folder = Path(task.folder)
    running = folder / "running" / task.file.stem
    rmtree(running, ignore_errors=True)
    plan = Plan(
        RunInputs((str(folder / f"{task.part}.jsonl"),), "ctxbench"),
        (task.spec,),
        models=task.models,
        probes=bool({"answer_quality", "context_recall"} & set(task.qualities)),
        answers="answer_quality" in task.qualities,
    )
    # Only its sums are stored: the run of a trial is many times as large as its figures.
    try:
        execute(plan, running)
        run = load(running)
        measured_now = msgspec.structs.replace(_figures(task, run), replies=run_tallies(run))
    finally:
        rmtree(running, ignore_errors=True)
    with placed(task.file) as draft:
        draft.write_bytes(msgspec.json.encode(measured_now) + b"\n")
    return measured_now


def stored(file: Path) -> Tried | None:
    """Return the stored figures; None if there are none, or they are damaged."""
    try:
        return msgspec.json.decode(read_file(file, LARGEST), type=Tried)
    except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    except OSError as error:
        raise RunError(f"{file}: cannot be read: {error.strerror or error}") from None


def _figures(task: Task, run: Run) -> Tried:
    run_figures = measured(run, () if task.cost == TOKENS else (task.cost,), prices=BUNDLED)
    conversations, sums = list(run_figures.digests), run_figures.sums[task.spec]
    # Figures over fewer conversations would not compare with those of other settings.
    if failed := run_figures.failed.get(task.spec, {}):
        name, why = next(iter(failed.items()))
        more = f" (and in {len(failed) - 1} more)" if len(failed) > 1 else ""
        return Tried(task.spec, conversations, failed=f"in {name}{more}: {why}")
    tokens = sums["tokens_sent"][:, 0] + sums["own_tokens"][:, 0]
    cost = (tokens if task.cost == TOKENS else sums[f"cost({task.cost})"][:, 0]).tolist()
    if any(map(math.isnan, cost)):
        why = "the price of a model that it calls is not known: --model tokens needs none"
        return Tried(task.spec, conversations, failed=why)
    quality = {name: sums[name].tolist() for name in task.qualities if name in sums}
    lacking, calls = int(sums["without_newest"][:, 0].sum()), int(sums["steps"][:, 0].sum())
    return Tried(task.spec, conversations, cost, quality, lacking, calls)


@dataclass(frozen=True, slots=True)
class TrialFigures:
    """Cost and quality of a setting on some conversations."""

    cost: Interval | Missing  # mean cost of a conversation
    quality: Interval | Missing
    conversations: int = 0  # conversations in which the quality can be measured

    @property
    def point(self) -> Point | None:
        """Cost and quality, if both are known."""
        if isinstance(self.cost, Missing) or isinstance(self.quality, Missing):
            return None
        return Point(self.cost.mean, self.quality.mean)


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting on both sides of the split."""

    spec: str
    chosen: bool  # whether it is on the frontier of the conversations searched on
    whole: bool  # whether it is the whole history, which nothing was chosen for
    train: TrialFigures
    held_out: TrialFigures
    against: BaselineComparison | None = None
    """The held-out figures against those of the whole history; None if it is that itself, or failed."""
    lacking: int = 0  # held-out calls that lack the newest message
    calls: int = 0
    failed: str = ""  # why it has no held-out figures


class BaselineComparison(NamedTuple):
    """The difference of a setting from the whole history, in pairs of conversations."""

    cost: Difference  # relative: −0.6 = 60 % cheaper
    quality: Difference


def figures(tried: Tried, quality: str, units: Mapping[str, str]) -> TrialFigures:
    """Return the figures of one setting. `units` has the independent unit of each conversation."""
    if tried.failed:
        none = Missing("failed", tried.failed)
        return TrialFigures(none, none)
    unit_of = np.array([units.get(name, name) for name in tried.conversations], object)
    cost, sums = _sums(tried, quality)
    has_any = sums[:, 1] > 0
    found: Interval | Missing = Missing("undefined", "no conversation has anything to measure it by")
    if has_any.any():
        found = over_units(by_unit(sums[has_any], unit_of[has_any].tolist()), mean_of, 0.0, 1.0)
    if isinstance(found, Interval) and found.mean == fixed(quality, tried.spec):
        found = Interval(found.mean, BY_CONSTRUCTION, BY_CONSTRUCTION)
    return TrialFigures(over_units(by_unit(cost, unit_of.tolist()), mean_of, 0.0), found, int(has_any.sum()))


def against(tried: Tried, whole: Tried, quality: str, units: Mapping[str, str]) -> BaselineComparison | None:
    """Return the difference of a setting from the whole history, or None if the setting failed."""
    if tried.failed:
        return None
    (before, base), (after, ours) = (_sums(side, quality) for side in (whole, tried))
    unit_of = [units.get(name, name) for name in whole.conversations]
    dearer = difference(Pairs("total", before, after, unit_of), relative=True)
    return BaselineComparison(dearer, difference(Pairs("ratio", base, ours, unit_of)))


def _sums(tried: Tried, quality: str) -> tuple[Floats, Floats]:
    """Return both sums of the cost and of the quality of each conversation (a row)."""
    nothing = [(0.0, 0.0)] * len(tried.cost)
    return np.column_stack([tried.cost, np.ones(len(tried.cost))]), np.array(tried.quality.get(quality, nothing), float)


def settings(tried: Mapping[str, Tried], quality: str, units: Mapping[str, str]) -> list[str]:
    """Return the settings that nothing dominates, the dearest first; of settings with the same figures the first."""
    points: dict[Point, str] = {}
    for spec, figures_of_setting in tried.items():
        if (point := figures(figures_of_setting, quality, units).point) is not None:
            points.setdefault(point, spec)
    return frontier({spec: point for point, spec in points.items()})
