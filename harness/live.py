"""Live runs of the same tasks without and with a strategy: calls, tokens, bill, time and success, paired by task.

A task is one unit: repeated runs are their mean, and two runs without the strategy say how far equal runs differ.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan, nan
from operator import eq
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa

from ctxbench.metrics.aftermath import repeated
from ctxbench.metrics.prices import Prices
from ctxbench.metrics.statistics.comparison import Difference, Pairs, difference
from ctxbench.metrics.statistics.intervals import FEWEST, FEWEST_OF_RATIOS, Ends, Floats
from ctxbench.metrics.value import Form, Missing, Value
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.files import read_file
from ctxbench.scenarios.model import Call, Compaction, Conversation, Message, Scalar, Usage, independent_units
from ctxbench.scenarios.source import Problems

from .bill import usual_prices
from .engine.plan import RunInputs
from .folder.run import Run, read_derived, write_derived

By = Literal["task", "first", "id", "path"]
"""Name of a task: the recording's own, the first user message, the id, or the path in its folder."""

_TASK, _SOLVED = ("task", "task_id", "instance_id"), ("success", "resolved", "reward")
_GRADES: Mapping[Scalar, float] = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "pass": 1.0, "fail": 0.0}
_REACH = 1.96 + 0.84  # standard errors between no difference and one that 80 % of trials show at 5 %


class Measure(NamedTuple):
    """A figure of a run of a task."""

    head: str
    unit: str  # changes of `calls` and shares are differences, of their means; all others relative
    lacking: str = ""  # why a run has none
    of: str = ""  # the figure whose mean over the model calls it is


_NO_USAGE, _NO_PRICE = "a call has no recorded usage", "a call has no recorded usage, or its model no known price"
MEASURES = {
    "calls": Measure("model calls", ""),
    "repeated": Measure("tool calls made again", "calls"),
    "input": Measure("prompt tokens", "tokens", _NO_USAGE),
    "input_call": Measure("prompt tokens of a call", "tokens", _NO_USAGE, "input"),
    "output": Measure("output tokens", "tokens", _NO_USAGE),
    "cost_call": Measure("bill of a call", "usd", _NO_PRICE, "cost"),
    "cost": Measure("bill", "usd", _NO_PRICE),
    "seconds": Measure("time", "seconds", "the recordings have no times"),
    "solved": Measure("tasks solved", "share", "no task has a label on both sides: give --success FILE"),
}


def read_task_runs(
    path: Path, form: str | None, labels: Path | None, report: Callable[[Problems], None]
) -> pd.DataFrame:
    """Read the runs of tasks (`task_runs`) in a file or folder, and report what could not be read. Raises RunError."""
    if not path.exists():  # it may be a scenario's name
        raise RunError(f"{path}: there is no such file or folder")
    success, problems = None if labels is None else read_labels(labels), Problems()
    conversations = RunInputs((str(path),), form).conversations(problems)
    report(problems)
    return task_runs(conversations, usual_prices(), str(path), success)


def task_runs(
    conversations: Sequence[Conversation], prices: Prices, folder: str = "", labels: Mapping[str, float] | None = None
) -> pd.DataFrame:
    """Return a row for each run of a task: a conversation with those that it started, billed at the prices of its day.

    Columns: names of the task (`By`), `conversation`, `conversations` (ids), `digest` (of what they hold), `models`,
    figures by measure, NaN = not recorded. `labels` have success by any name; None = the recordings' own. Raises
    RunError for labels of other tasks.
    """
    conversations = [each for each in conversations if "agents_tool_messages" not in each.meta]  # τ²'s users: no agents
    first_of = {each.source: each.id for each in reversed(conversations)}
    named = defaultdict[str, list[Conversation]](list)
    for each in conversations:
        named[re.sub(r"~\d+$", "", each.id)].append(each)

    def parent(of: Conversation) -> Scalar:
        """Return who started a conversation: of repeated runs, which have equal names, the one recorded beside it."""
        if of.source and of.id.startswith(f"{of.meta.get('task')}/"):  # Inspect's agents may begin a context anew
            return first_of[of.source]
        others = [run for run in named[str(of.meta.get("parent") or of.id.rpartition("/")[0])] if run is not of]
        beside = max(others, key=lambda run: sum(map(eq, run.source, of.source)), default=None)
        return of.meta.get("parent", "") if beside is None else beside.id

    mains = independent_units({each.id: {"parent": parent(each)} for each in conversations})
    groups = defaultdict[str, list[Conversation]](list)
    for conversation in conversations:
        groups[mains[conversation.id]].append(conversation)

    def dollars(of: Message | Compaction, model: str, usage: Usage) -> float:
        call = of.call or Call()
        price = prices.then(call, model, usage, of.time if call.started is None else call.started)
        if price is None or usage.input is None or usage.output is None:
            return nan if usage.cost is None else usage.cost
        return price.recorded(usage)

    rows = list[dict[str, Any]]()
    for name, group in groups.items():
        main = next((each for each in group if each.id == name), group[0])
        # Without the numbers of the second run of a task on.
        own = next(cut for end in (r"(\.\d+)?(~\d+)?$", r"~\d+$", "$") if (cut := re.sub(end, "", main.id)) in mains)
        task = next((str(main.meta[key]) for key in _TASK if main.meta.get(key) not in (None, "")), "")
        domain = main.meta.get("domain")  # τ² numbers the tasks of each
        names = {
            # Inspect names the whole evaluation so, and its samples `task/sample`.
            "task": own if task and own.startswith(f"{task}/") else f"{domain}/{task}" if task and domain else task,
            "first": next((message.text for message in main.messages if message.role == "user"), ""),
            "id": own,
            "path": re.sub(r":\d+$", "", main.source).removeprefix(folder).strip("/"),
        }
        recorded = [_GRADES.get(of, of) for key, of in main.meta.items() if key in _SOLVED or key.startswith("score ")]
        known_as = [main.id, task, *names.values()]
        scores = recorded if labels is None else [labels[key] for key in known_as if key in labels]
        said: list[Message | Compaction] = [each.messages[at] for each in group for at in each.calls()]
        summaries = [of for each in group for of in each.compactions if of.call and of.call.billed]
        used = [(of, *one) for of in (*said, *summaries) for one in (of.call and of.call.billed) or [("", Usage())]]
        times = [message.time for each in group for message in each.messages if message.time is not None]
        figures = {
            "one": 1.0,
            "calls": float(len(said)),
            "repeated": float(sum(not made.is_changed for each in group for made in repeated(each))),
            "input": sum(nan if usage.input is None else usage.input for _, _, usage in used),
            "output": sum(nan if usage.output is None else usage.output for _, _, usage in used),
            "cost": math.fsum(dollars(*request) for request in used),
            "seconds": max(times) - min(times) if len(times) > 1 else nan,
            "solved": next((float(of) for of in scores if isinstance(of, int | float) and 0 <= of <= 1), nan),
        }
        about = {"conversation": main.id, "conversations": [each.id for each in group]}
        about |= {"digest": "".join(sorted(each.digest() for each in group))}
        rows.append({**names, **about, **figures, "models": {model for _, model, _ in used if model}})
    runs = pd.DataFrame(rows)
    if labels is not None and runs.solved.isna().all():
        what = f"it names {next(iter(labels), 'nothing')!r}, the recordings {runs.id[0]!r}: name them alike"
        raise RunError(f"--success: the file for {folder} has none of its tasks: {what}")
    return runs


def read_labels(path: Path) -> dict[str, float]:
    """Read the success of tasks: a JSON object `{task: true}`, or a report of SWE-bench. Raises RunError."""
    try:
        labels = msgspec.json.decode(read_file(path), type=dict[str, Any])
        if "resolved_ids" in labels:
            tasks = (task for kind, ids in labels.items() if kind.endswith("_ids") for task in ids)
            labels = dict.fromkeys(tasks, False) | dict.fromkeys(labels["resolved_ids"], True)
        shares = msgspec.convert(labels, dict[str, bool | Annotated[float, msgspec.Meta(ge=0, le=1)]])
        return {task: float(share) for task, share in shares.items()}
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, TypeError) as error:
        what = (getattr(error, "strerror", "") or str(error)).replace("$[...]", "a task")
        raise RunError(f"{path}: {what} (write {{task: true or false}}, or a SWE-bench report)") from None


@dataclass(frozen=True)
class LiveMeasure:
    """One measure before and after, over the tasks that have it on both sides."""

    before: Value  # per task, or of a call
    after: Value
    change: Difference | Missing  # of the sums over the tasks
    equal_runs: Difference | Missing  # between the first two runs of a task before
    needed: int | Missing  # tasks that it takes to see the wanted change in 80 % of trials


@dataclass(frozen=True)
class LiveRuns:
    """Live runs of the same tasks, before and after."""

    by: By
    tasks: int
    alone: tuple[tuple[str, ...], ...]  # ids of the runs left out, whose task is not on the other side
    models: tuple[tuple[str, ...], ...]
    unlike: int  # tasks whose first user message is another one after
    same: int  # tasks whose recordings are the same after
    wanted: float  # the change that `needed` is for
    measures: dict[str, LiveMeasure]
    strategy: str = ""
    replay: dict[str, tuple[float, float]] = field(default_factory=dict)  # multiples of before: said, and live

    def numbers(self) -> dict[str, float]:
        """Return the figures that are known, by name: `live/cost/change`."""
        figures: dict[str, Value] = {"live/tasks": self.tasks}
        for key, row in self.measures.items():
            named: dict[str, Value] = {"before": row.before, "after": row.after, "tasks_needed": row.needed}
            if isinstance(change := row.change, Difference):
                named |= {"change": change.value, **(change.shown._asdict() if isinstance(change.shown, Ends) else {})}
            figures |= {f"live/{key}/{name}": value for name, value in named.items()}
        figures |= {f"live/{key}/replay_said": said for key, (said, _) in self.replay.items()}
        return {name: float(value) for name, value in figures.items() if not isinstance(value, Missing)}


def compared(before: pd.DataFrame, after: pd.DataFrame, by: By | None = None, wanted: float = 0.1) -> LiveRuns:
    """Compare runs (`task_runs`) task by task, and say how many tasks it takes to see a `wanted` change.

    Without `by` they are paired by the recordings' own names of tasks if they have any in common, else by what pairs
    the most tasks. Raises RunError where no task is on both sides.
    """
    ways: tuple[By, ...] = get_args(By) if by is None else (by,)
    common = {way: (set(before[way]) & set(after[way])) - {""} for way in ways}
    way: By = "task" if common.get("task") else max(common, key=lambda way: len(common[way]))
    if not common[way]:
        first = [" ".join(runs["first"][0].split())[:60] for runs in (before, after)]
        names = [f"{str(runs[by or 'id'][0])[:60]!r} ({Path(runs.path[0]).name})" for runs in (before, after)]
        has = " and ".join(f"{name.removesuffix(' ()')}, {text!r}" for name, text in zip(names, first, strict=True))
        what = f"they begin with {has}: give recordings of the same tasks, or say with --by what names a task"
        raise RunError(f"no task is on both sides, {what} ({', '.join(get_args(By))})")
    sides = [runs[runs[way].isin(common[way])] for runs in (before, after)]
    starts = [side.groupby(way)["first"].first() for side in sides]
    digests = [side.groupby(way).digest.agg(lambda of: "".join(sorted(of))) for side in sides]
    return LiveRuns(
        way,
        len(starts[0]),
        tuple(tuple(runs.conversation[~runs[way].isin(common[way])]) for runs in (before, after)),
        tuple(tuple(sorted(set().union(*side.models))) for side in sides),
        int(np.sum(starts[0] != starts[1])),
        int(np.sum(digests[0] == digests[1])),
        wanted,
        {key: _compared(key, sides, way, wanted) for key in MEASURES},
    )


def _compared(key: str, sides: Sequence[pd.DataFrame], way: By, wanted: float) -> LiveMeasure:
    measure = MEASURES[key]
    columns, relative = [measure.of or key, "calls" if measure.of else "one"], measure.unit not in ("calls", "share")
    form: Form = "total" if relative and not measure.of else "ratio"
    runs = [side.dropna(subset=columns)[[way, *columns]] for side in sides]  # what lacks one sum counts in neither

    def change(sums: Floats, lacking: str) -> Difference | Missing:
        if not len(sums) or (relative and not sums[:, 0].any()):
            return Missing("undefined", "there was none before" if len(sums) else lacking)
        found = difference(Pairs(form, sums[:, :2], sums[:, 2:]), relative)
        return found.value if isinstance(found.value, Missing) else found

    pairs = [of.groupby(way).mean() for of in runs], [runs[0].groupby(way).nth(at).set_index(way) for at in (0, 1)]
    # What the tasks add to the two sums of the figure (`metrics/value.py`), before and after.
    sums, equal = (pd.concat(pair, axis=1, join="inner").to_numpy(float) for pair in pairs)
    moved, equal_runs = change(sums, measure.lacking), change(equal, "no task was run twice before")
    ends = (moved, moved) if isinstance(moved, Missing) else (moved.before, moved.after)
    before, after = (end if isinstance(end, Missing) else end / (len(sums) if form == "total" else 1) for end in ends)
    return LiveMeasure(before, after, moved, equal_runs, _needed(sums, measure.unit == "share", wanted))


def _needed(sums: Floats, is_share: bool, wanted: float) -> int | Missing:
    """Return how many tasks show the wanted change in 80 % of trials at 5 %, by how much the pairs at hand vary.

    (2.8 / change)² × variance of log ratios, or of differences of success: 10 points are at least 10 % of the tasks.
    Where all tasks changed alike, nothing says how much others would vary.
    """
    some = sums if is_share else sums[(sums > 0).all(axis=1)]
    if len(some) < 3:
        return Missing("few", "it takes 3 tasks that have some of it to know how much they vary")
    one, other = some[:, 0] / some[:, 1], some[:, 2] / some[:, 3]
    if is_share:
        spread, size, fewest = max(float(np.var(other - one, ddof=1)), wanted - wanted**2), wanted, FEWEST
    else:
        spread, size, fewest = float(np.var(np.log(other / one), ddof=1)), math.log1p(wanted), FEWEST_OF_RATIOS
        if math.isclose(spread, 0, abs_tol=1e-12):
            return Missing("undefined", "nothing varies between the tasks")
    return max(math.ceil((_REACH / size) ** 2 * spread), fewest)


def with_replay(live: LiveRuns, before: pd.DataFrame, bills: pd.DataFrame, strategy: str) -> LiveRuns:
    """Return live runs with the prediction for a strategy from replaying BEFORE (`bills`: `Billed.conversations`)."""
    names = before.conversations[~before.conversation.isin(live.alone[0])].explode()
    rows = bills[bills.conversation.isin(names)].assign(cost=bills.cost + bills.cost_own).dropna(subset="cost")
    whole, less = (rows[rows.strategy == name].set_index("conversation") for name in ("none", strategy))
    both = whole.index.intersection(less.index)
    tokens, cost = (float(less[key][both].sum() / (whole[key][both].sum() or nan)) for key in ("tokens", "cost"))
    replay = {
        key: (said, 1 + change.value)
        for key, said in {
            "calls": 1.0 if len(both) else nan,
            "input_call": tokens,
            "cost_call": cost,
            "cost": cost,
        }.items()
        if isinstance(change := live.measures[key].change, Difference) and change.relative and not isnan(said)
        if not isinstance(change.value, Missing)
    }
    return replace(live, strategy=strategy, replay=replay)


def store_live(run: Run, live: LiveRuns) -> None:
    """Store live runs in the run folder of their replay, for its report and for trackers."""
    write_derived(run, "live", pa.table({"json": [msgspec.json.encode(live)]}))


def stored_live(run: Run) -> LiveRuns | None:
    """Return the live runs that are stored with this run; None without any."""
    table = read_derived(run, "live", ("json",))
    return None if table is None else msgspec.json.decode(table["json"][0].as_py(), type=LiveRuns)
