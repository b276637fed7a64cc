"""The tables of a run: strategies side by side, then what each did, lost and cost, in the order in which they print."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from operator import itemgetter
from typing import Any

from ctxbench.harness.folder.schema import alike, without_digest
from ctxbench.metrics.figures import display_name, metric_of
from ctxbench.metrics.structure import FAULTS
from ctxbench.metrics.survival import Survival, cliff
from ctxbench.metrics.value import Missing, Value
from ctxbench.scenarios.model import RECORDED

from . import answers, probes, tier_actions
from .render import (
    LACKING,
    MARKS,
    STRATEGY,
    Column,
    Table,
    about,
    amount,
    count,
    integer,
    library_column,
    metric_column,
    percent,
    sample,
    table_of,
    tokens,
)
from .results import RunSummary, growth_rows

# The first mark follows a saving with calls that lack the newest message, the second a strategy that no model answered.
_LACKS, _UNANSWERED = MARKS
_SPARE_TURNS = (20, 2, 200, 5, 500, 50)
_AGES = {0: 0, 1: 0, 2: 1, 5: 3, 10: 4, 20: 2}
"""Rounds of summarising that are shown, and how soon a narrow terminal leaves each out."""
_MOST_REASONS = 20


def _is_positive(value: Value) -> bool:
    return not isinstance(value, Missing) and value > 0


def _lacks(values: Mapping[str, Any]) -> bool:
    """Return whether some calls lack the newest message: they would fail, so what they save is no saving."""
    return _is_positive(values["without_newest"])


_COLUMNS = (
    metric_column("saving", mark=lambda row: _LACKS * _lacks(row)),
    metric_column("net_saving", spare=4),
    metric_column("tokens_sent", spare=2),
    *map(metric_column, ("prefix_reuse", "compression_ratio", "lru_k_hit_rate", "grounding")),
    metric_column("kept_values", spare=6),
    metric_column("reasked_dropped", spare=7),
    metric_column("constraint_recall", spare=5),
    metric_column("overflows", spare=3),
    *map(metric_column, ("rejected_openai", "rejected_anthropic")),
    metric_column("latency_p50", spare=1),
)
"""Metrics of the main table, from left to right."""


def tables(summary: RunSummary) -> Iterator[Table]:
    """Yield every table that has something to show, the main one first."""
    yield main_table(summary)
    yield from lacking_table(summary)
    yield faults_table(summary)
    if any(summary.grounding.values()):
        yield grounding_table(summary)
    if summary.probes is not None:
        yield from probes.tables(summary.probes)
    if summary.answers is not None:
        yield from answers.run_tables(summary.answers)
    yield from action_tables(summary)
    yield from tier_actions.tier_action_tables(summary.tiers)
    if summary.reasons:
        yield reasons_table(summary)
    yield from survival_tables(summary)
    if not summary.steps.growth.empty:
        yield growth_table(summary)
    if summary.steps.counter:
        yield counter_table(summary)
    yield from incomplete(summary)


def rows_of(summary: RunSummary) -> list[dict[str, Any]]:
    """Return the metrics of each strategy as a row."""
    return [{"strategy": name, **values} for name, values in summary.strategies.items()]


def _finished(summary: RunSummary) -> list[dict[str, Any]]:
    """Return the rows of the strategies that finished a conversation: the others have no figures."""
    failed, whole = summary.failed_conversations, summary.conversations
    return [row for row in rows_of(summary) if not 0 < failed.get(row["strategy"], 0) == whole]


def sizes(summary: RunSummary) -> tuple[str, ...]:
    """Return how much was replayed, in words."""
    return (
        sample(summary.conversations, summary.units),
        count(summary.messages, "message"),
        count(summary.calls, "model call"),
        f"{tokens(summary.tokens)} tokens of history ({summary.manifest.plan.encoding})",
    )


def main_table(summary: RunSummary) -> Table:
    """Return the main table, a row for each strategy."""
    name = STRATEGY._replace(mark=lambda row: f" {_UNANSWERED}" * (row["strategy"] in summary.unanswered))
    columns = (name, *library_column(summary.manifest.libraries(), summary.strategies), *_COLUMNS)
    return table_of(", ".join(sizes(summary)), columns, _finished(summary), _main_notes(summary))


def own_table(own: Mapping[str, Mapping[str, Value]]) -> list[Table]:
    """Return the table of the user's own metrics, a row for each strategy; none where there are none."""
    metrics = {name: metric for values in own.values() for name in values if (metric := metric_of(name))}
    columns = [Column(display_name(key), itemgetter(key), partial(amount, of.unit)) for key, of in metrics.items()]
    rows = [{"strategy": strategy, **values} for strategy, values in own.items()]
    notes = (f"{display_name(name)}: {metric.about}" for name, metric in metrics.items())
    return [table_of("Your own metrics", (STRATEGY, *columns), rows, notes)] if metrics else []


def _main_notes(summary: RunSummary) -> Iterator[str]:
    # Over which conversations strategies are compared, where some have failed.
    if lost := {name: number for name, number in summary.failed_conversations.items() if number}:
        whole = count(summary.conversations, "conversation")
        if none := [without_digest(name) for name, times in lost.items() if times == summary.conversations]:
            yield about("strategies_left", failed=", ".join(none))
        if some := [f"{without_digest(name)} in {of:,}" for name, of in lost.items() if of < summary.conversations]:
            note = "strategies_failed" if summary.compared else "strategies_none"
            yield about(note, compared=summary.compared, whole=whole, failed=", ".join(some))
    yield about("strategies_saved")
    yield about("strategies_compression")
    named, window = summary.manifest.plan.window, f"{summary.manifest.window:,} tokens"
    if not named and summary.recorded:
        window = f"the window of the recorded model, {' or '.join(summary.recorded)} (--window), or else {window}"
    else:
        window += f", the window of {named}" * (named != "" and not named.isdecimal()) + " (--window)"
    yield f"Overflows: calls over {window}. `ctxbench list metrics` explains every column."
    if lacking(summary):
        yield f"{LACKING}: see the next table."
    if summary.unanswered:
        yield about("strategies_unanswered", mark=_UNANSWERED)


def lacking(summary: RunSummary) -> frozenset[str]:
    """Return the strategies that sent some calls without the newest message."""
    return frozenset(name for name, values in summary.strategies.items() if _lacks(values))


def lacking_table(summary: RunSummary) -> list[Table]:
    """Return how many calls lack the newest message and what the others save; nothing without such calls."""
    keys = ("without_newest", "steps", "saving", "saving_with_newest")
    columns = (STRATEGY, *map(metric_column, keys, ("such calls", "of", "saved", "saved without them")))
    rows, title = list(filter(_lacks, rows_of(summary))), "Which calls lack the newest message?"
    return [table_of(title, columns, rows, [about("strategies_lacking")])] * bool(rows)


def faults_table(summary: RunSummary) -> Table:
    """Return the calls with structural faults, a column for each fault that any strategy has."""
    title = "Which structural faults does a strategy add?"
    rows = _finished(summary)
    faults = [name for name in (*FAULTS, "over_budget") if any(_is_positive(row[name]) for row in rows)]
    if not faults:
        return Table(title, (), (), ("No strategy made a context with a fault.",))
    columns = (STRATEGY, *map(metric_column, faults), metric_column("latency_p99", spare=1))
    return table_of(title, columns, rows, [about("faults")])


def grounding_table(summary: RunSummary) -> Table:
    """Return grounding recall with a column for each kind of value, the most frequent first."""
    wanted = next(kinds for kinds in summary.grounding.values() if kinds)
    kinds = sorted(wanted, key=lambda kind: -wanted[kind].values)
    # The rarest kinds go first; the two most frequent ones stay.
    spare = [0, 0, *range(len(kinds) - 2, 0, -1)]
    columns = [
        Column(f"{kind} ({wanted[kind].values:,})", kind, percent, at) for kind, at in zip(kinds, spare, strict=False)
    ]
    rows = [
        {"strategy": name, **{kind: of.kept / of.values for kind, of in values.items()}}
        for name, values in summary.grounding.items()
        if values
    ]
    title = "Which kinds of values does the context still have?"
    return table_of(title, (STRATEGY, *columns), rows, [about("grounding_kinds")])


def growth_table(summary: RunSummary) -> Table:
    """Return the tokens of a call with a column for each turn."""

    def sent(turn: Mapping[str, Any] | None) -> str:
        if turn is None:
            return "–"
        return f"{tokens(turn['tokens_sent'])} ({percent(turn['saving'])})" + _LACKS * bool(turn["without_newest"])

    turns = {f"turn {turn['turn']} ({turn['conversations']:,})": turn for turn in growth_rows(summary.steps.growth)}
    spare = {turn: at for at, turn in enumerate(_SPARE_TURNS, 1)}
    columns = [Column(head, head, spare=spare.get(turn["turn"], 0)) for head, turn in turns.items()]
    rows = [{"strategy": "whole history", **{head: tokens(turn["full"]) for head, turn in turns.items()}}]
    rows += [
        {"strategy": name, **{head: sent(turn.get(name)) for head, turn in turns.items()}}
        for name in (row["strategy"] for row in _finished(summary))
        if name != "none"
    ]
    notes = [about("growth")]
    if any(cell.endswith(_LACKS) for row in rows for cell in row.values()):
        notes.append(f"{LACKING}.")
    return table_of("How many tokens does a call take, by turn?", (STRATEGY, *columns), rows, notes)


def action_tables(summary: RunSummary) -> Iterator[Table]:
    """Yield what strategies sent beside the recording and spent on model calls, then how often they did what."""
    kinds = sorted({kind for counts in summary.actions.values() for kind in counts} - {"called"})
    none, seen, actions = dict.fromkeys(("called", *kinds), 0), summary.summariser_saw, summary.actions
    rows = [{**row, "saw": None, **none, **actions[row["strategy"]]} for row in rows_of(summary)]
    rows = [row | {"saw": seen[row["strategy"]]} if row.get("summarised") else row for row in rows]
    if added := [row for row in rows if _is_positive(row["tokens_added"]) or row["called"]]:
        columns = (
            STRATEGY,
            metric_column("tokens_added", "tokens added"),
            metric_column("added_share", "of the history"),
            Column("own model calls", "called", integer),
            metric_column("own_tokens", "their tokens"),
            metric_column("own_cost", "cost"),
            Column("summariser saw", "saw", lambda share: "" if share is None else percent(share)),
        )
        yield table_of("What did strategies add?", columns, added, [about("added")])
    if kinds:
        of_kinds = (Column(kind.replace("_", " "), kind, integer) for kind in kinds)
        acting = [row for row in rows if any(row[kind] for kind in kinds)]
        yield table_of("What did the strategies do?", (STRATEGY, *of_kinds), acting, [about("actions")])


def reasons_table(summary: RunSummary) -> Table:
    """Return why something failed or went over budget, a row for each reason, the most frequent first."""
    columns = (
        STRATEGY,
        Column("what", "what", lambda what: what.replace("_", " ")),
        Column("reason", "why"),
        Column("instead", "instead"),
        Column("times", "times", integer),
    )
    notes = [about("reasons")]
    if rest := summary.reasons[_MOST_REASONS:]:
        times = sum(int(row["times"]) for row in rest)
        notes.append(f"{count(len(rest), 'more reason')}, {count(times, 'time')} together: all are in --json.")
    return table_of("Why did something fail?", columns, summary.reasons[:_MOST_REASONS], notes, prose=True)


def survival_tables(summary: RunSummary) -> Iterator[Table]:
    """Yield the share of facts that survive rounds of summarising, and that in the first summary by kind of fact."""
    facts = {name: rows for name, rows in summary.survival.items() if rows}
    if not facts:
        return
    kinds = sorted({row.kind for rows in facts.values() for row in rows})
    rows = [
        {
            "strategy": name,
            "cliff": "never" if isinstance(fallen := cliff(of), Missing) else f"round {fallen}",
            **{f"round {age}": _survived(of, age) for age in _AGES},
            **{kind: _survived(of, 0, kind) for kind in kinds},
        }
        for name, of in facts.items()
    ]
    columns = [STRATEGY, *(Column(f"round {age}", f"round {age}", spare=spare) for age, spare in _AGES.items())]
    notes = [about("survival")]
    if any(row["cliff"] != "round 0" for row in rows):
        columns.append(Column("cliff", "cliff"))
        notes.append(about("survival_cliff"))
    yield table_of("How many rounds do facts survive?", columns, rows, notes)
    columns = [STRATEGY, *(Column(kind, kind) for kind in kinds)]
    yield table_of("Which facts are in the first summary?", columns, rows, [about("survival_kinds")])


def _survived(rows: list[Survival], age: int, kind: str = "") -> str:
    """Return the share of the facts that survive to an age: of one kind, or of all with their number."""
    rows = [row for row in rows if row.age == age and kind in ("", row.kind)]
    if not (wanted := sum(row.values for row in rows)):
        return ""
    return percent(sum(row.kept for row in rows) / wanted) + ("" if kind else f" ({tokens(wanted)})")


def counter_table(summary: RunSummary) -> Table:
    """Return the error of our token counts, a row for each recorded model."""
    columns = (
        Column("recorded model", "model"),
        Column("published encoding", "published"),
        Column("calls", "calls", integer),
        Column("total", "total", percent),
        *(Column(f"growth p{at}", f"growth_p{at}", percent) for at in (10, 50, 90)),
    )
    title = f"How far off are the token counts ({summary.manifest.plan.encoding})?"
    return table_of(title, columns, summary.steps.counter, [about("counter")], names=2)


def incomplete(summary: RunSummary, named: int = 0) -> Iterator[Table]:
    """Yield what failed in which conversation, unless the `named` reasons stand elsewhere, and what was not read."""
    failed = [(row["strategy"], row["detail"], row["conversation"]) for row in summary.failed]
    if len({row[:2] for row in failed}) > named or any(name == RECORDED for name, *_ in failed):
        yield probes.failures_table("Failed", "conversations", failed)
    problems = summary.manifest.problems
    # Of the problems that are alike in a file, the first is shown.
    groups = alike(problems)
    columns = [
        Column("where", lambda group: ":".join(map(str, filter(None, (group[0].file, group[0].line))))),
        Column("field", lambda group: group[0].field),
        Column("what", lambda group: group[0].what + (f" ({group[0].remedy})" if group[0].remedy else "")),
    ]
    notes = []
    if len(groups) < len(problems):
        columns.append(Column("times", lambda group: group[1], integer))
        notes.append(about("left_out"))
    if problems:
        yield table_of(f"Left out: {count(len(problems), 'record')}", columns, groups, notes, prose=True)
