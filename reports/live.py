"""Live runs before and after as tables: what changed, how sure that is, and how far replay was off."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ctxbench.harness.live import LiveMeasure, LiveRuns
from ctxbench.metrics.statistics.comparison import Difference
from ctxbench.metrics.statistics.intervals import Ends
from ctxbench.metrics.value import Missing, Value

from .render import Column, Table, about, amount, count, no_interval, table_of
from .verdict_text import in_points, in_words

_MOST_NAMES = 3


def live_tables(live: LiveRuns) -> list[Table]:
    """Return what changed, task by task, and where the strategy was replayed, what replay had said of it."""
    columns = [
        Column("per task", "head"),
        Column("tasks", lambda row: "–" if isinstance(row.change, Missing) else f"{row.change.conversations:,}"),
        Column("before", lambda row: _figure(row, row.before)),
        Column("after", lambda row: _figure(row, row.after)),
        Column("change", lambda row: _moved(row, row.change)),
        Column("95 %", _interval, lambda interval: interval[0]),
        Column("equal runs", lambda row: _moved(row, row.equal_runs)),
        Column(f"tasks for {100 * live.wanted:g} %", lambda row: _figure(row, row.needed, "steps")),
    ]
    if all(isinstance(row.equal_runs, Missing) for row in live.measures):
        del columns[-2]
    tables = [table_of(_headline(live), columns, live.measures, [*_doubts(live), about("live_table")])]
    if live.replay:
        columns = [
            Column("with the strategy", "head"),
            *(Column(head, key, partial(amount, "times")) for head, key in (("replay said", "said"), ("live", "live"))),
            Column("off by", lambda row: f"{in_points(Ends(*[row.live / row.said - 1] * 2))} %"),
        ]
        title = f"How far was the replay of {live.strategy} off?"
        tables.append(table_of(title, columns, live.replay, [about("live_replay")]))
    return tables


def _headline(live: LiveRuns) -> str:
    """Return in one sentence what became of bill, calls and success."""
    said = list[str]()
    for key, name in (("cost", "bill"), ("calls", "model calls"), ("solved", "tasks solved")):
        row = live.of(key)
        if isinstance(change := row.change, Missing) or isinstance(change.value, Missing):
            continue
        if key == "solved":
            before, after = _figure(row, row.before), _figure(row, row.after)
            said.append(f"{name} {after}" + (" as before" if after == before else f" instead of {before}"))
        elif change.relative:
            sure = "" if isinstance(change.shown, Missing) else f" ({in_words(change.shown)} at 95 %)"
            said.append(f"{name} {in_words(Ends(change.value, change.value))}{sure}")
    return f"Live{' with ' * bool(live.strategy)}{live.strategy}, {count(live.tasks, 'task')}: {', '.join(said)}"


def _doubts(live: LiveRuns) -> Iterator[str]:
    """Yield how the runs were paired, and what else than the strategy may have made the difference."""
    runs = " and ".join(f"{count(number, 'run')} {side}" for number, side in zip(live.runs, _SIDES, strict=True))
    yield about(f"live_by_{live.by}", runs=runs)
    for names, side in zip(live.alone, _SIDES, strict=True):
        if names:
            more = " …" * (len(names) > _MOST_NAMES)
            yield f"Only {side}, and left out: {count(len(names), 'task')} ({', '.join(names[:_MOST_NAMES])}{more})."
    if live.by != "task" and live.unlike * 2 > live.tasks:
        yield about("live_unlike", unlike=live.unlike, tasks=live.tasks)
    if live.models[0] != live.models[1]:
        yield about("live_models", before=", ".join(live.models[0]) or "–", after=", ".join(live.models[1]) or "–")


_SIDES = ("before", "after")


def _figure(row: LiveMeasure, value: Value, unit: str = "") -> str:
    """Return a figure of a task; a dash for a missing one, whose reason stands in the place of the interval."""
    if isinstance(value, Missing):
        return "–"
    unit = unit or row.unit
    if unit in ("usd", "share"):
        return amount(unit, value)
    return f"{value:,.1f}" if not unit else f"{value:,.0f}" + " s" * (unit == "seconds")


def _moved(row: LiveMeasure, change: Difference | Missing) -> str:
    value = change if isinstance(change, Missing) else change.value
    return "–" if isinstance(value, Missing) else _change(row, value, value)


def _interval(row: LiveMeasure) -> tuple[str, Ends | Missing]:
    shown = row.change if isinstance(row.change, Missing) else row.change.shown
    show = partial(_change, row)
    return no_interval(shown, show) if isinstance(shown, Missing) else show(*shown), shown


def _change(row: LiveMeasure, low: float, high: float) -> str:
    """Return a range of changes: relative ones in percent, of shares in points, from 0 on in numbers."""
    if row.unit == "share" or (isinstance(row.change, Difference) and row.change.relative):
        return f"{in_points(Ends(low, high))} {'points' if row.unit == 'share' else '%'}"
    first, last = (f"{end / row.change.conversations:+,.1f}".replace("-", "−") for end in (low, high))
    return first if first == last else f"{first} to {last}"
