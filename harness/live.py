"""Live runs of the same tasks without and with a strategy: calls, tokens, bill, time and success, paired by task.

Replay shows a strategy to steps that were taken with the whole history. Here the agent itself ran with less. A task is
one unit: repeated runs of it are their mean, and two runs of it without the strategy say how far equal runs differ.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, variance
from typing import Annotated, Literal, NamedTuple, get_args

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa

from ctxbench.metrics.aftermath import repeated
from ctxbench.metrics.prices import Prices
from ctxbench.metrics.statistics.comparison import Difference, Pairs, difference
from ctxbench.metrics.statistics.intervals import FEWEST, FEWEST_OF_RATIOS
from ctxbench.metrics.value import Form, Missing, Value
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.files import read_file
from ctxbench.scenarios.model import Call, Conversation, Scalar, Usage, independent_units

from .folder.run import Run, read_derived, write_derived

By = Literal["task", "first", "id", "path"]
"""Name of a task: the recording's own, the first user message, the id, or the path in its folder."""

_TASK = ("task", "task_id", "instance_id")
_SOLVED = ("success", "resolved", "reward")
_GRADES: Mapping[Scalar, float] = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "pass": 1.0, "fail": 0.0}
_AGAIN = re.compile(r"[.~]\d+$")  # how the id of a second run of a task ends
_REACH = 1.96 + 0.84  # standard errors between no difference and one that 80 % of trials show at 5 %
_STORED = "live"


class TaskRun(NamedTuple):
    """A run of a task: the conversation that began it, and those that it started."""

    names: Mapping[By, str]
    solved: float | None
    conversations: Sequence[Conversation]

    def total(self, of: Callable[[Call, str, Usage, float | None], float | None]) -> float | None:
        """Sum a figure over all requests that were billed, those for summaries too; None where a call has none."""
        parts = list[float | None]()
        for call, time in self.requests():
            if call is None or not call.billed:
                return None
            parts += [of(call, model, usage, time) for model, usage in call.billed]
        known = [part for part in parts if part is not None]
        return math.fsum(known) if len(known) == len(parts) else None

    @property
    def calls(self) -> int:
        """Number of model calls."""
        return sum(1 for conversation in self.conversations for _ in conversation.calls())

    def requests(self) -> Iterator[tuple[Call | None, float | None]]:
        """Yield the recorded model calls with their times, those that wrote summaries too."""
        for conversation in self.conversations:
            yield from ((conversation.messages[at].call, conversation.messages[at].time) for at in conversation.calls())
            yield from ((each.call, each.time) for each in conversation.compactions if each.call is not None)


def task_runs(
    conversations: Sequence[Conversation], folder: str = "", labels: Mapping[str, float] | None = None
) -> list[TaskRun]:
    """Return the runs in some recordings of a folder, with the success that `labels` has by any name of the task.

    Without `labels` it is that of the recordings. Raises RunError if the labels are of other tasks.
    """
    mains = independent_units({each.id: {"parent": each.meta.get("parent", "")} for each in conversations})
    groups = defaultdict[str, list[Conversation]](list)
    for conversation in conversations:
        groups[mains[conversation.id]].append(conversation)
    runs = list[TaskRun]()
    for name, group in groups.items():
        main = next((conversation for conversation in group if conversation.id == name), group[0])
        task = next((str(main.meta[key]) for key in _TASK if main.meta.get(key) not in (None, "")), "")
        again = _AGAIN.sub("", main.id)
        of_run = again if again in mains else main.id
        names: dict[By, str] = {
            # Inspect names the whole evaluation so, and its samples `task/sample`.
            "task": of_run if task and of_run.startswith(f"{task}/") else task,
            "first": next((message.text for message in main.messages if message.role == "user"), ""),
            "id": of_run,
            "path": re.sub(r":\d+$", "", main.source).removeprefix(folder).strip("/"),
        }
        solved = _label(main) if labels is None else next(filter(None.__ne__, map(labels.get, names.values())), None)
        runs.append(TaskRun(names, solved, group))
    if labels is not None and all(run.solved is None for run in runs):
        what = f"has no task of {folder}: it names {next(iter(labels), 'nothing')!r}, the recordings"
        raise RunError(f"--success {what} {runs[0].names['task'] or runs[0].names['id']!r}: name them alike")
    return runs


def _label(conversation: Conversation) -> float | None:
    """Return the recording's own label: 1 = solved, 0 = not; a reward between as it stands."""
    scores = [value for key, value in conversation.meta.items() if key in _SOLVED or key.startswith("score ")]
    numbers = (score for score in (_GRADES.get(score, score) for score in scores) if isinstance(score, int | float))
    return next((float(number) for number in numbers if 0 <= number <= 1), None)


def read_labels(path: Path) -> dict[str, float]:
    """Read the success of tasks: a JSON object `{task: true}`, or a report of SWE-bench. Raises RunError."""
    try:
        labels = msgspec.json.decode(read_file(path), type=dict[str, object])
        if "resolved_ids" in labels:
            names = {key: msgspec.convert(value, list[str]) for key, value in labels.items() if key.endswith("_ids")}
            run = [name for key, of_key in names.items() if key != "incomplete_ids" for name in of_key]
            labels = dict.fromkeys(run, False) | dict.fromkeys(names["resolved_ids"], True)
        share = bool | Annotated[float, msgspec.Meta(ge=0, le=1)]
        return {task: float(value) for task, value in msgspec.convert(labels, dict[str, share]).items()}  # type: ignore[valid-type]
    except OSError as error:
        raise RunError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        what = str(error).replace("$[...]", "a task")
        raise RunError(f"{path}: {what} (write {{task: true or false}}, or a SWE-bench report)") from None


class TaskPairs(NamedTuple):
    """Runs by task, before and after: the item of a task has the same place on both sides."""

    by: By
    before: Sequence[Sequence[TaskRun]]
    after: Sequence[Sequence[TaskRun]]
    alone: tuple[tuple[str, ...], tuple[str, ...]]  # ids of tasks that only one side has


def paired(before: Sequence[TaskRun], after: Sequence[TaskRun], by: By | None = None) -> TaskPairs:
    """Pair runs by task: by the recordings' own names if they have any in common, else by what pairs the most tasks.

    Raises RunError where no task is on both sides.
    """
    tasks: dict[By, list[dict[str, list[TaskRun]]]] = {}
    for way in get_args(By) if by is None else (by,):
        tasks[way] = [defaultdict(list), defaultdict(list)]
        for runs, side in zip((before, after), tasks[way], strict=True):
            for run in runs:
                side[run.names[way]].append(run)
            side.pop("", None)
    common = {way: [name for name in one if name in other] for way, (one, other) in tasks.items()}
    way = "task" if common.get("task") else max(common, key=lambda way: len(common[way]))
    if not common[way]:
        has = " and ".join(f"{side[0].names[by or 'id'][:60]!r}" for side in (before, after))
        raise RunError(
            f"no task is on both sides (they begin with {has}): record the same tasks, or say with --by what names a "
            f"task: {', '.join(get_args(By))}"
        )
    one, other = tasks[way]
    left = ([name for name in here if name not in there] for here, there in ((one, other), (other, one)))
    alone = tuple(
        tuple(side[name][0].names["id"] for name in names) for side, names in zip((one, other), left, strict=True)
    )
    return TaskPairs(
        way, [one[name] for name in common[way]], [other[name] for name in common[way]], (alone[0], alone[1])
    )


class Measure(NamedTuple):
    """A figure of a run of a task."""

    key: str
    head: str
    unit: Literal["", "tokens", "usd", "seconds", "share"]
    of: Callable[[TaskRun], float | None]
    lacking: str = ""  # why a run has none
    per_call: bool = False


def measures(prices: Prices) -> list[Measure]:
    """Return what is measured of each run, billed at the prices of its day."""

    def dollars(call: Call, model: str, usage: Usage, time: float | None) -> float | None:
        price = prices.recorded(call, model, usage, time if call.started is None else call.started)
        return usage.cost if price is None or usage.input is None else price.recorded(usage)

    def again(run: TaskRun) -> float:
        return sum(not each.is_changed for conversation in run.conversations for each in repeated(conversation))

    def prompts(run: TaskRun) -> float | None:
        return run.total(lambda _call, _model, usage, _time: usage.input)

    def output(run: TaskRun) -> float | None:
        return run.total(lambda _call, _model, usage, _time: usage.output)

    def cost(run: TaskRun) -> float | None:
        return run.total(dollars)

    def seconds(run: TaskRun) -> float | None:
        said = [message.time for conversation in run.conversations for message in conversation.messages]
        times = [time for time in said if time is not None]
        return max(times) - min(times) if len(times) > 1 else None

    no_usage = "a call has no recorded usage"
    no_price = f"{no_usage}, or its model no known price"
    return [
        Measure("calls", "model calls", "", lambda run: run.calls),
        Measure("repeated", "tool calls made again", "", again),
        Measure("input", "prompt tokens", "tokens", prompts, no_usage),
        Measure("input_call", "prompt tokens of a call", "tokens", prompts, no_usage, per_call=True),
        Measure("output", "output tokens", "tokens", output, no_usage),
        Measure("cost_call", "bill of a call", "usd", cost, no_price, per_call=True),
        Measure("cost", "bill", "usd", cost, no_price),
        Measure("seconds", "time", "seconds", seconds, "the recordings have no times"),
        Measure("solved", "tasks solved", "share", lambda run: run.solved, "no label says it: give --success FILE"),
    ]


@dataclass(frozen=True)
class LiveMeasure:
    """One measure before and after, over the tasks that have it on both sides."""

    key: str
    head: str
    unit: str
    before: Value  # per task, or of a call
    after: Value
    change: Difference | Missing  # of the sums over the tasks
    equal_runs: Difference | Missing
    """The same between two runs of a task before: how far equal runs differ."""
    needed: int | Missing
    """Tasks that it takes to see the wanted change in 80 % of trials."""


class Predicted(NamedTuple):
    """A figure with the strategy as a multiple of the same without: as replay said, and as it was live."""

    head: str
    said: float
    live: float


@dataclass(frozen=True)
class LiveRuns:
    """Live runs of the same tasks, before and after."""

    by: By
    tasks: int
    runs: tuple[int, int]  # of these tasks, before and after
    alone: tuple[tuple[str, ...], tuple[str, ...]]  # ids of tasks that only one side has
    models: tuple[tuple[str, ...], tuple[str, ...]]
    unlike: int  # tasks whose first user message is another one after
    wanted: float  # the change that `needed` is for
    measures: tuple[LiveMeasure, ...]
    strategy: str = ""
    replay: tuple[Predicted, ...] = ()

    def of(self, key: str) -> LiveMeasure:
        """Return a measure by its key."""
        return next(row for row in self.measures if row.key == key)

    def numbers(self) -> dict[str, float]:
        """Return the figures that are known by name, for trackers: `live/cost/change`."""
        figures: dict[str, Value] = {"live/tasks": self.tasks}
        for row in self.measures:
            named = {"before": row.before, "after": row.after, "tasks_needed": row.needed}
            if isinstance(row.change, Difference):
                ends = {} if isinstance(row.change.shown, Missing) else row.change.shown._asdict()
                named |= {"change": row.change.value, **ends}
            figures |= {f"live/{row.key}/{name}": value for name, value in named.items()}
        figures |= {f"live/replay/{row.head}": row.said for row in self.replay}
        return {name: float(value) for name, value in figures.items() if not isinstance(value, Missing)}


def compared(pairs: TaskPairs, of: Sequence[Measure], wanted: float = 0.1) -> LiveRuns:
    """Compare each measure before and after, task by task, and say how many tasks it takes to see a `wanted` change."""
    sides = pairs.before, pairs.after
    runs = [[run for task in side for run in task] for side in sides]
    models = [
        {model: None for run in of_side for call, _ in run.requests() if call is not None for model, _ in call.billed}
        for of_side in runs
    ]
    starts = zip(*([task[0].names["first"] for task in side] for side in sides), strict=True)
    return LiveRuns(
        pairs.by,
        len(pairs.before),
        (len(runs[0]), len(runs[1])),
        pairs.alone,
        (tuple(models[0]), tuple(models[1])),
        sum(one != other for one, other in starts),
        wanted,
        tuple(_compared(measure, pairs, wanted) for measure in of),
    )


def _compared(measure: Measure, pairs: TaskPairs, wanted: float) -> LiveMeasure:
    # Of each run what it adds to the two sums of the figure, as in `metrics/value.py`.
    before, after = (
        [
            [(value, run.calls if measure.per_call else 1) for run in task if (value := measure.of(run)) is not None]
            for task in side
        ]
        for side in (pairs.before, pairs.after)
    )
    both = [(_mean(one), _mean(other)) for one, other in zip(before, after, strict=True) if one and other]
    change = _change(measure, both, measure.lacking)
    again = _change(measure, [(runs[0], runs[1]) for runs in before if len(runs) > 1], "no task was run twice before")
    figures: list[Value] = [Missing("undefined", measure.lacking)] * 2
    if isinstance(change, Difference):
        number = 1 if measure.per_call or measure.unit == "share" else change.conversations
        figures = [side if isinstance(side, Missing) else side / number for side in (change.before, change.after)]
    return LiveMeasure(*measure[:3], figures[0], figures[1], change, again, _needed(measure, both, wanted))


Sums = tuple[float, float]


def _mean(runs: Sequence[Sums]) -> Sums:
    return fmean(top for top, _ in runs), fmean(bottom for _, bottom in runs)


def _change(measure: Measure, pairs: Sequence[tuple[Sums, Sums]], lacking: str) -> Difference | Missing:
    if not pairs:
        return Missing("undefined", lacking)
    before, after = (np.array(side, float) for side in zip(*pairs, strict=True))
    form: Form = "ratio" if measure.per_call or measure.unit == "share" else "total"
    # From nothing there is no relative change: what came then is counted.
    return difference(Pairs(form, before, after), relative=measure.unit != "share" and bool(before[:, 0].any()))


def _needed(measure: Measure, pairs: Sequence[tuple[Sums, Sums]], wanted: float) -> int | Missing:
    """Return how many tasks show the wanted change in 80 % of trials at 5 %, by how much the pairs at hand vary.

    (2.8 / change)² × variance: of log ratios, or of differences of success, where a change of 10 points is one of at
    least 10 % of the tasks. It is at least what an interval takes.
    """
    if len(pairs) < 3:
        return Missing("few", "it takes 3 tasks to know how much they vary")
    tasks = [(before[0] / before[1], after[0] / after[1]) for before, after in pairs if before[1] and after[1]]
    if measure.unit == "share":
        spread = max(variance(after - before for before, after in tasks), wanted - wanted**2)
        return max(math.ceil((_REACH / wanted) ** 2 * spread), FEWEST)
    ratios = [math.log(after / before) for before, after in tasks if before > 0 < after]
    if len(ratios) < 3:
        return Missing("undefined", "a task has none of it")
    return max(math.ceil((_REACH / math.log1p(wanted)) ** 2 * variance(ratios)), FEWEST_OF_RATIOS)


def with_replay(live: LiveRuns, pairs: TaskPairs, bills: pd.DataFrame, strategy: str) -> LiveRuns:
    """Return live runs with what the replay of those before had said of a strategy (rows of `Billed.conversations`).

    A replay makes the calls that were recorded: it says the same of a call and of the whole.
    """
    before = {conversation.id for task in pairs.before for run in task for conversation in run.conversations}
    rows = bills[bills.conversation.isin(before)].assign(cost=bills.cost + bills.cost_own)
    whole, less = (
        rows[rows.strategy == name].set_index("conversation")[["tokens", "cost"]] for name in ("none", strategy)
    )
    both = whole.index.intersection(less.index)
    with np.errstate(divide="ignore", invalid="ignore"):
        tokens, cost = less.loc[both].sum() / whole.loc[both].sum()
    said = {"input_call": tokens, "cost_call": cost, "calls": 1.0, "cost": cost}
    replay = [
        Predicted(row.head, float(said[row.key]), 1 + change.value)
        for row in live.measures
        if row.key in said and np.isfinite(said[row.key])
        if isinstance(change := row.change, Difference) and change.relative and not isinstance(change.value, Missing)
    ]
    return replace(live, strategy=strategy, replay=tuple(replay))


def store_live(run: Run, live: LiveRuns) -> None:
    """Store live runs in the run folder of their replay, for its report and for trackers."""
    write_derived(run, _STORED, pa.table({"json": [msgspec.json.encode(live)]}))


def stored_live(run: Run) -> LiveRuns | None:
    """Return the live runs that are stored with just this run; None where there are none."""
    table = read_derived(run, _STORED, ("json",))
    return None if table is None else msgspec.json.decode(table["json"][0].as_py(), type=LiveRuns)
