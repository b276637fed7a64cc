"""Live runs before and after as tables: what changed, how sure that is, and how far replay was off."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

from ctxbench.harness.live import MEASURES, LiveRuns
from ctxbench.metrics.statistics.comparison import Difference
from ctxbench.metrics.statistics.intervals import Ends
from ctxbench.metrics.value import Missing, Value

from .render import Column, Table, about, amount, count, no_interval, table_of
from .verdict_text import in_points, in_words

_MOST_NAMES, _SIDES = 3, ("before", "after")


def live_tables(live: LiveRuns) -> list[Table]:
    """Return what changed, task by task, and where the strategy was replayed, what replay had said of it."""
    columns = [
        Column("per task", lambda row: MEASURES[row[0]].head),
        Column("tasks", lambda row: str(getattr(row[1].change, "conversations", "–"))),
        Column("before", lambda row: _figure(row[0], row[1].before)),
        Column("after", lambda row: _figure(row[0], row[1].after)),
        Column("change (95 %)", lambda row: _changed(row[0], row[1].change), itemgetter(0)),
        Column("two equal runs", lambda row: _changed(row[0], row[1].equal_runs), itemgetter(0)),
        Column(f"tasks for {100 * live.wanted:g} %", lambda row: _figure("", row[1].needed)),
    ]
    if all(isinstance(row.equal_runs, Missing) for row in live.measures.values()):
        del columns[-2]
    tables = [table_of(_headline(live), columns, live.measures.items(), [*_doubts(live), about("live_table")])]
    if live.replay:
        columns = [
            Column("with the strategy", lambda row: MEASURES[row[0]].head),
            Column("replay said", lambda row: amount("times", row[1][0])),
            Column("live", lambda row: amount("times", row[1][1])),
            Column("off by", lambda row: f"{in_points(Ends(*[row[1][1] / row[1][0] - 1] * 2))} %"),
        ]
        title = f"How far was the replay of {live.strategy} off?"
        tables.append(table_of(title, columns, live.replay.items(), [about("live_replay")]))
    return tables


def _headline(live: LiveRuns) -> str:
    """Return in one sentence what became of bill, calls and success."""
    said = list[str]()
    for key, name in (("cost", "bill"), ("calls", "model calls"), ("solved", "tasks solved")):
        row = live.measures[key]
        if isinstance(change := row.change, Missing) or isinstance(change.value, Missing):
            continue
        if change.relative:
            sure = "" if isinstance(change.shown, Missing) else f" ({in_words(change.shown)} at 95 %)"
            said.append(f"{name} {in_words(Ends(change.value, change.value))}{sure}")
        elif key == "solved":
            before, after = _figure(key, row.before), _figure(key, row.after)
            said.append(f"{name} {after}" + (" as before" if after == before else f" instead of {before}"))
    return f"Live{' with ' * bool(live.strategy)}{live.strategy}, {count(live.tasks, 'task')}: {', '.join(said)}"


def _doubts(live: LiveRuns) -> Iterator[str]:
    """Yield how the runs were paired, and what else than the strategy may have made the difference."""
    runs = " and ".join(f"{count(number, 'run')} {side}" for number, side in zip(live.runs, _SIDES, strict=True))
    yield about(f"live_by_{live.by}", runs=runs)
    for names, side in zip(live.alone, _SIDES, strict=True):
        if names:
            more = " …" * (len(names) > _MOST_NAMES)
            yield f"Only {side}, and left out: {count(len(names), 'run')} ({', '.join(names[:_MOST_NAMES])}{more})."
    if live.by != "task" and live.unlike * 2 > live.tasks:
        yield about("live_unlike", unlike=live.unlike, tasks=live.tasks)
    if live.models[0] != live.models[1]:
        yield about("live_models", before=", ".join(live.models[0]) or "–", after=", ".join(live.models[1]) or "–")


def _figure(key: str, value: Value) -> str:
    """Return a figure of a measure, or a number; a dash for a missing one: the interval's column says why."""
    unit = MEASURES[key].unit if key else "tokens"
    if isinstance(value, Missing):
        return "–"
    if unit in ("usd", "share"):
        return amount(unit, value)
    return f"{value:,.0f}{' s' * (unit == 'seconds')}" if unit else f"{value:,.1f}"


def _changed(key: str, change: Difference | Missing) -> tuple[str, Ends | Missing]:
    """Return a change with its 95 % interval as text, and the interval or why there is none."""
    value = change if isinstance(change, Missing) else change.value
    if isinstance(change, Missing) or isinstance(value, Missing):
        return f"({value.why})", value  # type: ignore[union-attr]

    def show(low: float, high: float) -> str:
        if change.relative or MEASURES[key].unit == "share":
            return f"{in_points(Ends(low, high))} {'%' if change.relative else 'points'}"
        first, last = (f"{end / change.conversations:+,.1f}".replace("-", "−") for end in (low, high))
        return first if first == last else f"{first} to {last}"

    ends = change.shown
    reach = no_interval(ends, show) if isinstance(ends, Missing) else f"({show(*ends)})"
    return f"{show(value, value)} {reach}", ends
