"""Two sets of recordings of the same tasks, run live without and with a strategy: what became of calls, bill, success.

Replay shows a strategy to steps that were taken with the whole history. Here the agent itself ran with less: a pair is
a task, repeated runs of a task are their mean, and repetitions before show how far two equal runs differ.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from ctxbench.metrics.aftermath import repeated
from ctxbench.metrics.prices import Prices, TokenUsage
from ctxbench.metrics.statistics.comparison import Difference, Pairs, difference
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.files import read_file
from ctxbench.scenarios.model import Call, Conversation, Scalar, Usage

By = Literal["task", "path", "id", "first"]
"""Name of a task: the recording's own, the path in its folder, the id, or the first user message."""

_TASK = ("task", "instance_id", "task_id")
_SOLVED = ("success", "resolved", "reward")
_GRADES: Mapping[Scalar, float] = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "pass": 1.0, "fail": 0.0}
_REACH = 1.96 + 0.84  # standard errors between no difference and one that is seen in 80 % of trials, at 5 %


class Measure(NamedTuple):
    """A figure of one recorded run of a task."""

    key: str
    head: str
    unit: Literal["", "tokens", "usd", "seconds", "share"]
    of: Callable[[Conversation], float | None]
    lacking: str
    """Why a run has none."""


def measures(prices: Prices) -> list[Measure]:
    """Return what is measured of each run."""
    no_usage = "a call has no recorded usage"
    return [
        Measure("calls", "model calls", "", lambda talk: sum(1 for _ in talk.calls()), ""),
        Measure("repeated", "tool calls made again", "", _repeated, ""),
        Measure("input", "prompt tokens", "tokens", partial(_used, of=lambda usage: usage.input), no_usage),
        Measure("output", "output tokens", "tokens", partial(_used, of=lambda usage: usage.output), no_usage),
        Measure("cost", "bill", "usd", partial(_cost, prices=prices), f"{no_usage}, or its model no known price"),
        Measure("seconds", "time", "seconds", _seconds, "the recording has no times"),
        Measure("solved", "tasks solved", "share", _solved, "the recordings have no labels: give --success FILE"),
    ]


def _calls(conversation: Conversation) -> list[Call | None]:
    return [conversation.messages[at].call for at in conversation.calls()]


def _repeated(conversation: Conversation) -> float:
    return sum(not each.is_changed for each in repeated(conversation))


def _used(conversation: Conversation, of: Callable[[Usage], int | None]) -> float | None:
    parts = [None if call is None or call.usage is None else of(call.usage) for call in _calls(conversation)]
    return None if not parts or None in parts else float(sum(filter(None, parts)))


def _cost(conversation: Conversation, prices: Prices) -> float | None:
    """Return the dollars of all calls by their recorded usage, at the prices of their day."""
    whole = 0.0
    for at in conversation.calls():
        message = conversation.messages[at]
        for model, used in () if message.call is None else message.call.billed:
            tariff = prices.tariff(model)
            if tariff is None or used.input is None:
                return None
            parts = (used.cache_read or 0, used.cache_write or 0, used.cache_write_1h or 0)
            whole += tariff.then(used.input, message.time).of(TokenUsage(used.input, used.output or 0, *parts))
        if message.call is None or message.call.usage is None:
            return None
    return whole


def _seconds(conversation: Conversation) -> float | None:
    times = [message.time for message in conversation.messages if message.time is not None]
    return times[-1] - times[0] if len(times) > 1 else None


def _solved(conversation: Conversation) -> float | None:
    """Return the recording's own label: 1 = solved, 0 = not; a reward as it stands."""
    scores = [value for key, value in conversation.meta.items() if key in _SOLVED or key.startswith("score ")]
    found = (_GRADES.get(score, score) for score in scores)
    return next((float(score) for score in found if isinstance(score, bool | int | float)), None)


@dataclass(frozen=True)
class Compared:
    """One measure before and after, over the tasks that have it on both sides."""

    measure: Measure
    change: Difference | Missing
    floor: Difference | Missing
    """The same between two repetitions before: how far equal runs differ."""
    enough: int | Missing
    """Tasks that it takes to see the wanted difference in 80 % of trials."""


@dataclass(frozen=True)
class LiveRuns:
    """Live runs of the same tasks, before and after."""

    by: By
    tasks: int
    """Tasks on both sides."""
    runs: tuple[int, int]
    """Runs of these, before and after."""
    alone: tuple[tuple[str, ...], tuple[str, ...]]
    """Tasks that only one side has."""
    rows: tuple[Compared, ...]

    def of(self, key: str) -> Compared:
        """Return a measure by its key."""
        return next(row for row in self.rows if row.measure.key == key)


Labels = Sequence[Mapping[str, float]]
"""Success by task before and after, in place of the recordings' own labels; empty = those."""


def compared(
    before: Sequence[Conversation],
    after: Sequence[Conversation],
    of: Sequence[Measure],
    by: By | None = None,
    solved: Labels = (),
    wanted: float = 0.1,
) -> LiveRuns:
    """Pair two sets of runs by task, and compare them. Without `by` the way is taken that pairs the most tasks.

    Raises RunError where no task is on both sides.
    """
    ways: tuple[By, ...] = ("task", "path", "id", "first") if by is None else (by,)
    grouped = {way: [_by_task(side, way) for side in (before, after)] for way in ways}
    way = max(ways, key=lambda way: len(grouped[way][0].keys() & grouped[way][1].keys()))
    one, other = grouped[way]
    both = sorted(one.keys() & other.keys())
    if not both:
        raise RunError(
            f"no task is on both sides by {' or '.join(ways)}: name what their tasks have in common with --by, one of "
            "task, path, id, first"
        )
    alone = tuple(tuple(sorted(here.keys() - there.keys())) for here, there in ((one, other), (other, one)))
    rows = list[Compared]()
    for measure in of:
        values = [
            [[value for run in side[task] if (value := measure.of(run)) is not None] for task in both]
            for side in (one, other)
        ]
        if measure.key == "solved" and solved:
            values = [[[of_side[task]] if task in of_side else [] for task in both] for of_side in solved]
        rows.append(_row(measure, values[0], values[1], wanted))
    runs = tuple(sum(len(side[task]) for task in both) for side in (one, other))
    return LiveRuns(way, len(both), (runs[0], runs[1]), (alone[0], alone[1]), tuple(rows))


def _by_task(conversations: Sequence[Conversation], by: By) -> dict[str, list[Conversation]]:
    """Return the runs of each task. Conversations that another one started are part of that one's run: left out."""
    tasks = defaultdict[str, list[Conversation]](list)
    root = Path(*_shared([Path(talk.source).parts for talk in conversations]))
    for talk in conversations:
        if talk.meta.get("parent"):
            continue
        first = next((message.text for message in talk.messages if message.role == "user"), "")
        names = {
            "task": next((str(talk.meta[key]) for key in _TASK if talk.meta.get(key) not in (None, "")), ""),
            "path": str(Path(talk.source).relative_to(root)) if talk.source else "",
            "id": talk.id.partition("~")[0],
            "first": first,
        }
        if names[by]:
            tasks[names[by]].append(talk)
    return tasks


def _shared(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the parts that all paths begin with, without their last."""
    if not paths:
        return ()
    shortest = min(map(len, paths)) - 1
    same = (at for at in range(shortest) if len({path[at] for path in paths}) > 1)
    return paths[0][: next(same, max(shortest, 0))]


def _row(measure: Measure, before: list[list[float]], after: list[list[float]], wanted: float) -> Compared:
    pairs = [(fmean(one), fmean(other)) for one, other in zip(before, after, strict=True) if one and other]
    again = [(runs[0], runs[1]) for runs in before if len(runs) > 1]
    change = _change(measure, pairs, measure.lacking)
    return Compared(
        measure, change, _change(measure, again, "no task was run twice before"), _enough(measure, pairs, wanted)
    )


def _change(measure: Measure, pairs: Sequence[tuple[float, float]], lacking: str) -> Difference | Missing:
    if not pairs:
        return Missing("undefined", lacking)
    ones = np.ones(len(pairs))
    one, other = (np.stack([np.array(side, float), ones], axis=1) for side in zip(*pairs, strict=True))
    is_share = measure.unit == "share"
    return difference(Pairs("ratio" if is_share else "total", one, other), relative=not is_share)


def _enough(measure: Measure, pairs: Sequence[tuple[float, float]], wanted: float) -> int | Missing:
    """Return how many tasks show the wanted difference in 80 % of trials, by how much the pairs at hand vary.

    The size of a paired test at 5 %: (2.8 · deviation / difference)², of log ratios, or of differences of success.
    """
    if measure.unit == "share":
        moved = [after - before for before, after in pairs]
        aim = wanted
    else:
        moved = [math.log(after / before) for before, after in pairs if before > 0 < after]
        aim = math.log1p(wanted)
    if len(moved) < 3:
        return Missing("few", "it takes 3 pairs to know how much they vary")
    return max(math.ceil((_REACH * stdev(moved) / aim) ** 2), 2)


def predicted(live: LiveRuns, costs: Mapping[str, float], strategy: str) -> tuple[float, float] | Missing:
    """Return what a call costs with the strategy as a multiple of one before: as replay had said, and as it was live.

    `costs` are those of the replayed runs before, by strategy. Missing where a bill is not known.
    """
    cost, calls = live.of("cost").change, live.of("calls").change
    parts = [
        side for change in (cost, calls) if not isinstance(change, Missing) for side in (change.before, change.after)
    ]
    known = [float(part) for part in parts if not isinstance(part, Missing) and part > 0]
    if len(known) < 4 or not costs.get("none", 0) > 0:
        return Missing("undefined", "the bill of one side is not known")
    return costs[strategy] / costs["none"], (known[1] / known[3]) / (known[0] / known[2])


def labels(path: Path) -> dict[str, float]:
    """Read the success of tasks: a JSON object `{task: true}`, or a report of SWE-bench. Raises RunError."""
    try:
        found = msgspec.json.decode(read_file(path), type=dict[str, object])
        if isinstance(names := found.get("resolved_ids"), list):
            others = found.get("unresolved_ids", [])
            found = dict.fromkeys(others if isinstance(others, list) else [], False) | dict.fromkeys(names, True)
        return {task: float(value) for task, value in msgspec.convert(found, dict[str, bool | float]).items()}
    except OSError as error:
        raise RunError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        what = str(error).replace("$[...]", "a task")
        raise RunError(f"{path}: {what} (write {{task: true or false}}, or a SWE-bench report)") from None
