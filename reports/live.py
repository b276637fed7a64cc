"""Live runs before and after as tables: what changed, how sure that is, and how far replay was off."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

from ctxbench.harness.live import MEASURES, LiveRuns
from ctxbench.metrics.statistics.comparison import Difference
from ctxbench.metrics.statistics.intervals import FEWEST_OF_RATIOS, Ends
from ctxbench.metrics.value import Missing, Value

from .compare import between, moved, some
from .render import Column, Table, about, amount, count, table_of


def live_headline(live: LiveRuns) -> str:
    """Return what became of the bill, the model calls and the tasks solved, in one sentence."""
    bill, tasks = live.measures["cost"].change, count(live.tasks, "task")
    sides = zip(("before", "after"), live.alone, strict=True)
    left = [f"{count(len(names), 'run')} only {side}" for side, names in sides if names]
    more = f"; left out: {', '.join(left)}" * bool(left)
    if live.same == live.tasks:
        return f"Before and after are the same recordings of {tasks}: there is nothing to compare{more}"
    low, high = bill.shown if isinstance(bill, Difference) and isinstance(bill.shown, Ends) else (-1, 1)
    judged = "costs more" if low > 0 else "costs less" if high < 0 else "may cost more or less"
    if not isinstance(bill, Difference):
        judged = "has no known bill"
    changes = [
        f"{MEASURES[key].head} {_changed(key, change)[0]}" + f" in {change.units} of them" * (change.units < live.tasks)
        for key in ("cost", "calls", "solved")
        if isinstance(change := live.measures[key].change, Difference)
    ]
    who = f"With {live.strategy} the agent" if live.strategy else "After, the agent"
    return f"{who} {judged} ({tasks} live): {', '.join(changes)}{more}"


def live_tables(live: LiveRuns) -> list[Table]:
    """Return what changed, task by task, and where the strategy was replayed, what replay had said of it."""
    if live.same == live.tasks:
        return [Table(live_headline(live), (), (), (about("live_after"),))]
    is_repeated = any(isinstance(row.equal_runs, Difference) for row in live.measures.values())
    rows = [(key, row) for key, row in live.measures.items() if isinstance(row.change, Difference)]
    known = any(isinstance(getattr(row.change, "shown", None), Ends) for _, row in rows)
    columns = [
        Column("per task", lambda row: MEASURES[row[0]].head),
        Column("tasks", lambda row: str(row[1].change.conversations)),
        Column("before", lambda row: _figure(row[0], row[1].before)),
        Column("after", lambda row: _figure(row[0], row[1].after)),
        Column(f"change{' (95 %)' * known}", lambda row: _changed(row[0], row[1].change), itemgetter(0)),
        *[Column("two equal runs", lambda row: _changed(row[0], row[1].equal_runs), itemgetter(0))] * is_repeated,
        Column(f"tasks for {100 * live.wanted:g} %", lambda row: _figure("", row[1].needed)),
    ]
    needed = about("live_needed", wanted=100 * live.wanted, fewest=FEWEST_OF_RATIOS)
    needed += f" {about('live_alike')}" * any(isinstance(row.needed, Missing) for _, row in rows)
    notes = [*_doubts(live), about("live_table"), needed, about("live_equal") * is_repeated]
    tables = [table_of(live_headline(live), columns, rows, notes)]
    if live.replay:
        columns = [
            Column("with the strategy", lambda row: MEASURES[row[0]].head),
            Column("replay said", lambda row: amount("times", row[1][0])),
            Column("live", lambda row: amount("times", row[1][1])),
            Column("off by", lambda row: moved(row[1][1] / row[1][0] - 1, "", relative=True)),
        ]
        title = f"How far was the replay of {live.strategy} off?"
        tables.append(table_of(title, columns, live.replay.items(), [about("live_replay")]))
    return tables


def _doubts(live: LiveRuns) -> Iterator[str]:
    """Yield how the runs were paired, and what else than the strategy may have made the difference."""
    yield about(f"live_by_{live.by}")
    for names, side in zip(live.alone, ("before", "after"), strict=True):
        yield f"Only {side}, and left out: {count(len(names), 'run')} ({some(names)})." * bool(names)
    lacking = [(MEASURES[key].head, of.change) for key, of in live.measures.items() if isinstance(of.change, Missing)]
    heads = {missing.detail: [head for head, of in lacking if of == missing] for _, missing in lacking}
    unknown = "; ".join(f"{', '.join(of)} ({why})" for why, of in heads.items())
    yield f"Not known: {unknown}." * bool(unknown)
    if 0 < live.same < live.tasks:
        yield about("live_same", same=live.same, tasks=live.tasks)
    if live.by != "task" and live.unlike * 2 > live.tasks:
        yield about("live_unlike", unlike=live.unlike, tasks=live.tasks)
    if live.models[0] != live.models[1]:
        yield about("live_models", before=", ".join(live.models[0]) or "–", after=", ".join(live.models[1]) or "–")
    elif not isinstance(live.measures["cost"].change, Missing):
        yield about("live_billed", models=", ".join(live.models[0]))


def _figure(key: str, value: Value) -> str:
    """Return a figure of a measure, or a number; a dash for a missing one."""
    unit = MEASURES[key].unit if key else "tokens"
    if isinstance(value, Missing) or unit in ("usd", "share"):
        return "–" if isinstance(value, Missing) else amount(unit, value)
    return f"{value:,.{int(unit in ('', 'calls'))}f}{' s' * (unit == 'seconds')}"


def _changed(key: str, change: Difference | Missing) -> tuple[str, Ends | Missing]:
    """Return a change with its 95 % interval as text, and the interval or why there is none."""
    if isinstance(change, Missing):
        return "–", change
    how = MEASURES[key].unit, change.relative
    ends, text = between(change.shown, *how), moved(change.value, *how)
    if text == ends:  # the same change in every unit
        return text, change.shown
    return f"{text} {f'({ends})' if isinstance(change.shown, Ends) else ends}", change.shown
