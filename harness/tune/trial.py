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
from ctxbench.metrics.statistics.comparison import Difference, Pairs, difference
from ctxbench.metrics.statistics.intervals import BY_CONSTRUCTION, Ends, Floats, by_unit, mean_of, of_share, resampled
from ctxbench.metrics.value import Missing, Value
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.files import LARGEST, read_file

from ..answers.tally import Tally, run_tallies
from ..compare.figures import MeasuredRun, measured
from ..engine.plan import Plan, RunInputs, execute
from ..folder.files import placed
from ..folder.run import Run, load
from ..models import Settings

TOKENS = "tokens"
"""The cost where no model is billed: tokens sent, including those of the strategy's own model calls."""
QUALITIES = ("answer_quality", "context_recall", "grounding")
"""Measures of quality: the first of these that the recordings allow is taken."""
LACKING = "without_newest"
FIGURES = "figures"
"""The folder of the figures in that of a search."""


class Task(msgspec.Struct, frozen=True):
    """A setting, and the recordings to measure it on."""

    spec: str
    part: str
    """The part of the recordings: `train` or `held-out`."""
    folder: str
    cost: str
    """The model to bill, or TOKENS."""
    qualities: tuple[str, ...]
    encoding: str
    models: Settings
    """How to reach the models that the setting names."""
    inputs: str
    """A digest of the recordings and of the versions of what measures them."""

    @property
    def file(self) -> Path:
        """File of the figures."""
        text = msgspec.json.encode((self.spec, self.part, self.cost, self.qualities, self.encoding, self.inputs))
        return Path(self.folder) / FIGURES / f"{self.part}-{hashlib.sha256(text).hexdigest()[:16]}.json"


Sums = list[tuple[float, float]]
"""Contribution of each conversation to either sum (`metrics/value.py`)."""


class Tried(msgspec.Struct, frozen=True):
    """The figures of a setting."""

    spec: str
    conversations: list[str]
    cost: list[float]
    """Cost of each conversation."""
    quality: dict[str, Sums]
    lacking: int
    """Calls that have neither the newest message nor one written in its place."""
    calls: int
    failed: str = ""
    """Why there are no figures: the strategy failed in a conversation."""
    replies: list[Tally] = []
    """Replies of the strategy's own models."""


def try_packed(packed: bytes) -> bytes:
    """Try a task that came as MessagePack, as workers receive it, and return it."""
    tried(msgspec.msgpack.decode(packed, type=Task))
    return packed


def tried(task: Task) -> Tried:
    """Return the figures of a setting: the stored ones, or measured now."""
    figures_of_task = stored(task)
    if figures_of_task is None:
        figures_of_task = _measured(task)
        with placed(task.file) as draft:
            draft.write_bytes(msgspec.json.encode(figures_of_task) + b"\n")
    return figures_of_task


def stored(task: Task) -> Tried | None:
    """Return the stored figures; None if there are none, or they are damaged."""
    return _read(task.file)


def with_failed_calls(folder: Path) -> list[Path]:
    """Return the files of a search whose figures lack replies of calls that failed."""
    files = [(file, _read(file)) for file in sorted((folder / FIGURES).glob("*.json"))]
    return [file for file, figures in files if figures and any(tally.failed for tally in figures.replies)]


def _read(file: Path) -> Tried | None:
    try:
        return msgspec.json.decode(read_file(file, LARGEST), type=Tried)
    except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    except OSError as error:
        raise RunError(f"{file}: cannot be read: {error.strerror or error}") from None


def _measured(task: Task) -> Tried:
    folder = Path(task.folder)
    running = folder / "running" / task.file.stem
    rmtree(running, ignore_errors=True)
    plan = Plan(
        RunInputs((str(folder / f"{task.part}.jsonl"),), "ctxbench"),
        (task.spec,),
        task.encoding,
        models=task.models,
        probes=bool({"answer_quality", "context_recall"} & set(task.qualities)),
        answers="answer_quality" in task.qualities,
    )
    # Only its sums are stored: the run of a trial is many times as large as its figures.
    try:
        execute(plan, running)
        run = load(running)
        replies = run_tallies(run)
        return msgspec.structs.replace(_figures(task, run), replies=replies)
    finally:
        rmtree(running, ignore_errors=True)


def _figures(task: Task, run: Run) -> Tried:
    run_figures = measured(run, () if task.cost == TOKENS else (task.cost,))
    conversations = list(run_figures.digests)
    sums = run_figures.sums[task.spec]
    # Figures over fewer conversations would not compare with those of other settings.
    if failed := run_figures.failed.get(task.spec, {}):
        name, why = next(iter(failed.items()))
        more = f" (and in {len(failed) - 1} more)" if len(failed) > 1 else ""
        return Tried(task.spec, conversations, [], {}, 0, 0, f"in {name}{more}: {why}")
    quality = {
        name: [(float(top), float(bottom)) for top, bottom in sums[name]] for name in task.qualities if name in sums
    }
    cost = _tokens(run_figures, task.spec) if task.cost == TOKENS else sums[f"cost({task.cost})"][:, 0].tolist()
    if any(map(math.isnan, cost)):
        why = "the price of a model that it calls is not known: --model tokens needs none"
        return Tried(task.spec, conversations, [], {}, 0, 0, why)
    return Tried(
        task.spec, conversations, cost, quality, int(sums[LACKING][:, 0].sum()), int(sums["steps"][:, 0].sum())
    )


def _tokens(run_figures: MeasuredRun, spec: str) -> list[float]:
    sums = run_figures.sums[spec]
    tokens: list[float] = (sums["tokens_sent"][:, 0] + sums["own_tokens"][:, 0]).tolist()
    return tokens


@dataclass(frozen=True, slots=True)
class TrialFigures:
    """Cost and quality of a setting on some conversations."""

    cost: Value
    """Mean cost of a conversation."""
    cost_interval: Ends | Missing
    quality: Value
    quality_interval: Ends | Missing
    conversations: int
    """Conversations in which the quality can be measured."""

    @property
    def point(self) -> Point | None:
        """Cost and quality, if both are known."""
        if isinstance(self.cost, Missing) or isinstance(self.quality, Missing):
            return None
        return Point(self.cost, self.quality)


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting on both sides of the split."""

    spec: str
    chosen: bool
    """Whether it is on the frontier of the conversations searched on."""
    whole: bool
    """Whether it is the whole history, which nothing was chosen for."""
    train: TrialFigures
    held_out: TrialFigures
    against: BaselineComparison | None
    """The held-out figures against those of the whole history; None if it is that itself, or failed."""
    lacking: int
    """Held-out calls that lack the newest message."""
    calls: int
    failed: str
    """Why it has no held-out figures."""


class BaselineComparison(NamedTuple):
    """The difference of a setting from the whole history, in pairs of conversations."""

    cost: Difference
    """Relative: −0.6 = 60 % cheaper."""
    quality: Difference


def figures(tried: Tried, quality: str, units: Mapping[str, str]) -> TrialFigures:
    """Return the figures of one setting. `units` has the independent unit of each conversation."""
    if tried.failed:
        none = Missing("failed", tried.failed)
        return TrialFigures(none, none, none, none, 0)
    cost = np.column_stack([tried.cost, np.ones(len(tried.cost))])
    sums = np.array(tried.quality.get(quality, []), float).reshape(-1, 2)
    has_any = sums[:, 1] > 0
    of_each = [units.get(name, name) for name in tried.conversations]
    value, ends = _share(by_unit(sums[has_any], [unit for unit, here in zip(of_each, has_any, strict=False) if here]))
    if value == fixed(quality, tried.spec):
        ends = BY_CONSTRUCTION
    return TrialFigures(*_mean(by_unit(cost, of_each)), value, ends, int(has_any.sum()))


def against(tried: Tried, whole: Tried, quality: str, units: Mapping[str, str]) -> BaselineComparison | None:
    """Return the difference of a setting from the whole history, or None if the setting failed."""
    if tried.failed:
        return None
    cost, sums = (
        [np.array(side, float).reshape(len(whole.conversations), -1) for side in both]
        for both in ((whole.cost, tried.cost), (whole.quality[quality], tried.quality.get(quality, [])))
    )
    ones = np.ones((len(whole.conversations), 1))  # the lower sum of a total, which has none
    before, after = (np.hstack([column, ones]) for column in cost)
    of_each = [units.get(name, name) for name in whole.conversations]
    dearer = difference(Pairs("total", before, after, of_each), relative=True)
    return BaselineComparison(dearer, difference(Pairs("ratio", sums[0], sums[1], of_each)))


def settings(tried: Mapping[str, Tried], quality: str, units: Mapping[str, str]) -> list[str]:
    """Return the settings that nothing dominates, the dearest first; of settings with the same figures the first."""
    points: dict[str, Point] = {}
    for spec, figures_of_setting in tried.items():
        point = figures(figures_of_setting, quality, units).point
        if point is not None and point not in points.values():
            points[spec] = point
    return frontier(points)


def _mean(sums: Floats) -> tuple[Value, Ends | Missing]:
    value, resamples = float(mean_of(sums.sum(axis=0))), resampled(sums, mean_of)
    if isinstance(resamples, Missing):
        return value, resamples
    return value, resamples.interval(least=0.0)


def _share(sums: Floats) -> tuple[Value, Ends | Missing]:
    if not len(sums):
        none = Missing("undefined", "no conversation has anything to measure it by")
        return none, none
    value, resamples = float(mean_of(sums.sum(axis=0))), resampled(sums, mean_of)
    return value, of_share(value, resamples if isinstance(resamples, Missing) else resamples.interval(), len(sums))
