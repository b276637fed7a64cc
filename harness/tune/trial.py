"""One setting on some recordings: it is run, measured, and what was measured is kept as a small file.

Runs are made under `running/` and removed: `figures/` has by conversation the sums that cost and quality are made of.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import NamedTuple

import msgspec
import numpy as np

from ...metrics.frontier import Point, frontier
from ...metrics.statistics.bootstrap import mean_of, resampled
from ...metrics.statistics.comparison import Difference, Pairs, difference
from ...metrics.statistics.intervals import Ends, of_share
from ...metrics.value import Missing, Value
from ...scenarios.errors import RunError
from ..compare.figures import MeasuredRun, measured
from ..engine.plan import Plan, RunInputs, execute
from ..folder.contexts import rows_of
from ..folder.run import Run, load
from ..folder.store import placed

TOKENS = "tokens"
"""The cost where no model is billed: tokens sent, and those of the strategy's own model calls."""
QUALITIES = ("correct", "context_recall", "grounding")
"""What quality is, the first of those that the recordings allow."""
LACKING = "without_newest"


class Task(msgspec.Struct, frozen=True):
    """A setting, and what to measure it on."""

    spec: str
    part: str
    """The recordings: `train` or `held-out`."""
    folder: str
    cost: str
    """A model to be billed under, or TOKENS."""
    qualities: tuple[str, ...]
    encoding: str

    @property
    def file(self) -> Path:
        """Where the figures are kept."""
        text = msgspec.json.encode((self.spec, self.part, self.cost, self.qualities, self.encoding))
        return Path(self.folder) / "figures" / f"{self.part}-{hashlib.sha256(text).hexdigest()[:16]}.json"


Sums = list[tuple[float, float]]
"""Of each conversation, what it adds to either sum (`metrics/value.py`)."""


class Tried(msgspec.Struct, frozen=True):
    """What a setting came to."""

    spec: str
    conversations: list[str]
    cost: list[float]
    """Of each conversation."""
    quality: dict[str, Sums]
    lacking: int
    """Calls that have neither the newest message nor one written in its place."""
    calls: int
    failed: str = ""
    """Why there are no figures: the strategy failed in a conversation."""


def try_packed(packed: bytes) -> bytes:
    """`tried` for a task that came as MessagePack, as workers get them; the task again."""
    tried(msgspec.msgpack.decode(packed, type=Task))
    return packed


def tried(task: Task) -> Tried:
    """What a setting comes to: as it is kept, or measured now."""
    found = kept(task)
    if found is None:
        found = _measured(task)
        with placed(task.file) as draft:
            draft.write_bytes(msgspec.json.encode(found) + b"\n")
    return found


def kept(task: Task) -> Tried | None:
    """What was measured before; None if that is not there, or damaged."""
    try:
        return msgspec.json.decode(task.file.read_bytes(), type=Tried)
    except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    except OSError as error:
        raise RunError(f"{task.file}: cannot be read: {error.strerror or error}") from None


def _measured(task: Task) -> Tried:
    folder = Path(task.folder)
    running = folder / "running" / task.file.stem
    rmtree(running, ignore_errors=True)
    plan = Plan(
        RunInputs((str(folder / f"{task.part}.jsonl"),), "ctxbench"),
        (task.spec,),
        task.encoding,
        probes=bool({"correct", "context_recall"} & set(task.qualities)),
        answers="correct" in task.qualities,
    )
    try:
        execute(plan, running)
        return _figures(task, load(running))
    finally:
        rmtree(running, ignore_errors=True)


def _figures(task: Task, run: Run) -> Tried:
    found = measured(run, rows_of, () if task.cost == TOKENS else (task.cost,))
    names = list(found.digests)
    sums = found.sums[task.spec]
    if failed := found.failed.get(task.spec, {}):
        name, why = next(iter(failed.items()))
        more = f" (and in {len(failed) - 1} more)" if len(failed) > 1 else ""
        return Tried(task.spec, names, [], {}, 0, 0, f"in {name}{more}: {why}")
    quality = {
        name: [(float(top), float(bottom)) for top, bottom in sums[name]] for name in task.qualities if name in sums
    }
    cost = _tokens(found, task.spec) if task.cost == TOKENS else sums[f"cost({task.cost})"][:, 0].tolist()
    return Tried(task.spec, names, cost, quality, int(sums[LACKING][:, 0].sum()), int(sums["steps"][:, 0].sum()))


def _tokens(found: MeasuredRun, spec: str) -> list[float]:
    sums = found.sums[spec]
    made: list[float] = (sums["tokens_sent"][:, 0] + sums["own_tokens"][:, 0]).tolist()
    return made


@dataclass(frozen=True, slots=True)
class TrialFigures:
    """Of a setting, on some conversations."""

    cost: Value
    """The mean of a conversation."""
    cost_interval: Ends | Missing
    quality: Value
    quality_interval: Ends | Missing
    conversations: int
    """That say anything of the quality."""

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
    """The held-out figures beside those of the whole history; None if it is that itself, or failed."""
    lacking: int
    """Held-out calls that lack the newest message."""
    calls: int
    failed: str
    """Why it has no figures on the conversations held out."""


class BaselineComparison(NamedTuple):
    """How a setting differs from the whole history, in pairs of conversations."""

    cost: Difference
    """Relative: −0.6 = 60 % cheaper."""
    quality: Difference


def figures(tried: Tried, quality: str) -> TrialFigures:
    """The figures of one setting."""
    if tried.failed:
        none = Missing("failed", tried.failed)
        return TrialFigures(none, none, none, none, 0)
    cost = np.column_stack([tried.cost, np.ones(len(tried.cost))])
    sums = np.array(tried.quality.get(quality, []), float).reshape(-1, 2)
    some = sums[sums[:, 1] > 0]
    return TrialFigures(*_mean(cost), *_share(some), len(some))


def against(tried: Tried, whole: Tried, quality: str) -> BaselineComparison | None:
    """How a setting differs from the whole history; None if it failed."""
    if tried.failed:
        return None
    cost, sums = (
        [np.array(each, float).reshape(len(whole.conversations), -1) for each in both]
        for both in ((whole.cost, tried.cost), (whole.quality[quality], tried.quality.get(quality, [])))
    )
    ones = np.ones((len(whole.conversations), 1))
    before, after = (np.hstack([each, ones]) for each in cost)
    dearer = difference(Pairs("total", before, after), relative=True)
    if dearer.relative and not isinstance(dearer.shown, Missing):  # nothing is cheaper than by all of it
        dearer = dearer._replace(shown=Ends(max(dearer.shown.low, -1.0), dearer.shown.high))
    return BaselineComparison(dearer, difference(Pairs("ratio", *sums)))


def settings(tried: Mapping[str, Tried], quality: str) -> list[str]:
    """The settings that nothing dominates, the dearest first; of settings with the same figures the first."""
    points: dict[str, Point] = {}
    for spec, each in tried.items():
        point = figures(each, quality).point
        if point is not None and point not in points.values():
            points[spec] = point
    return frontier(points)


def _mean(sums: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> tuple[Value, Ends | Missing]:
    value = float(mean_of(sums.sum(axis=0)))
    found = resampled(sums, mean_of)
    return value, found if isinstance(found, Missing) else Ends(max(found.interval().low, 0.0), found.interval().high)


def _share(sums: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> tuple[Value, Ends | Missing]:
    if not len(sums):
        none = Missing("undefined", "no conversation has anything to measure it by")
        return none, none
    value, found = float(mean_of(sums.sum(axis=0))), resampled(sums, mean_of)
    return value, of_share(value, found if isinstance(found, Missing) else found.interval(), len(sums))
