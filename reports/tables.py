"""The tables of a run: strategies side by side, then what each did, lost and cost, in the order in which they print."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ctxbench.harness.folder.schema import USUAL_MODEL, alike
from ctxbench.metrics.figures import METRICS
from ctxbench.metrics.structure import FAULTS
from ctxbench.metrics.survival import Survival, cliff
from ctxbench.metrics.value import Missing, Value

from . import answers, probes, tier_actions
from .render import MARKS, Table, count, figure, figure_of_few, library_column, percent, reasons, sample, tokens
from .results import RunSummary, growth_rows

COLUMNS = (
    *("saving", "net_saving", "tokens_sent", "prefix_reuse", "compression_ratio", "lru_k_hit_rate", "grounding"),
    *("constraint_recall", "overflows", "rejected_openai", "rejected_anthropic", "latency_p50"),
)
"""Metrics of the main table, from left to right."""

# Metrics that most strategies, or runs, have nothing to measure of (`figure_of_few`): the table needs no reason.
_OF_FEW = ("compression_ratio", "lru_k_hit_rate", "constraint_recall")
_HEADS = tuple(METRICS[column].name for column in COLUMNS)

# Columns that a narrow terminal leaves out, the first to go first.
_SPARE = tuple(
    METRICS[column].name for column in ("latency_p50", "tokens_sent", "overflows", "net_saving", "constraint_recall")
)
# The first mark follows a saving with calls that lack the newest message, the second a strategy that no model answered.
_LACKS, _UNANSWERED = MARKS
_LACKING = "Part of this saving comes from calls that lack the newest message"
_FAULTS = (*FAULTS, "over_budget")
_SPARE_TURNS = (20, 2, 200, 5, 500, 50)
_AGES = (0, 1, 2, 5, 10, 20)
_SPARE_AGES = (2, 20, 5, 10)
_MOST_REASONS = 20
_EVENT_NAMES = {"over_budget": "over budget"}


def tables(summary: RunSummary, by_kind: bool = False) -> Iterator[Table]:
    """Yield every table that has something to show, the main one first; `by_kind` splits the probes by kind as well."""
    yield main_table(summary)
    yield from filter(None, (lacking_table(summary),))
    yield faults_table(summary)
    if any(summary.grounding.values()):
        yield grounding_table(summary)
    if summary.probes is not None:
        yield from probes.tables(summary.probes, by_kind)
    if summary.answers is not None:
        yield from answers.run_tables(summary.answers, by_kind)
    yield from filter(None, (added_table(summary), actions_table(summary)))
    yield from tier_actions.tier_action_tables(summary.tiers)
    if summary.reasons:
        yield reasons_table(summary)
    if any(summary.survival.values()):
        yield survival_table(summary)
        yield first_summary_table(summary)
    if not summary.steps.growth.empty:
        yield growth_table(summary)
    if summary.steps.counter:
        yield counter_table(summary)
    yield from incomplete(summary)


def incomplete(summary: RunSummary) -> Iterator[Table]:
    """Yield the conversations in which a strategy failed, and the recordings that could not be read."""
    if summary.failed:
        yield failed_table(summary)
    if summary.manifest.problems:
        yield problems_table(summary)


def main_table(summary: RunSummary) -> Table:
    """Return the main table, a row for each strategy."""
    plan = summary.manifest.plan
    title = (
        f"{sample(summary.conversations, summary.units)}, {count(summary.messages, 'message')}, "
        f"{count(summary.calls, 'model call')}, {tokens(summary.tokens)} tokens of history ({plan.encoding})"
    )
    brought = library_column(summary.manifest.libraries(), summary.strategies)
    rows = tuple(
        (name + f" {_UNANSWERED}" * (name in summary.unanswered), *library, *_cells(values))
        for (name, values), library in zip(summary.strategies.items(), brought.cells, strict=True)
    )
    figures = summary.strategies.values()
    notes = [
        _compared(summary),
        "Saved compares the tokens of all calls with those of the whole history; net also charges the strategy's own "
        "model calls. Grounding recall is the share of values the recorded model used next that the context still has; "
        "constraint recall that of the rules stated before.",
        "Compression: tokens that summaries, placeholders and shortened messages stand for, over their own; LRU-K hit "
        "rate: of the Working tier, from its first eviction on. – means that there was nothing to measure.",
        f"Overflows: calls over {_window(summary)}. `ctxbench list metrics` explains every column.",
        f"{_LACKS} {_LACKING}: see the next table." if any(map(_lacks, figures)) else "",
        _unanswered(summary),
        _missing(figures),
    ]
    return Table(title, ("strategy", *brought.head, *_HEADS), rows, tuple(filter(None, notes)), spare=_SPARE)


def _window(summary: RunSummary) -> str:
    """Return in words which context window the calls are held against."""
    named, usual = summary.manifest.plan.window, f"{summary.manifest.window:,} tokens"
    if named.isdecimal():
        return f"{usual} (--window)"
    if named or not summary.recorded:
        return f"{usual}, the window of {named or USUAL_MODEL} (--window)"
    return f"the window of the recorded model, {' or '.join(summary.recorded)} (--window), or else {usual}"


def conversation_table(results: Iterable[tuple[str, str, dict[str, Value]]]) -> Table:
    """Return the columns of the main table with a row for each conversation and strategy."""
    results = list(results)
    rows = tuple(
        (conversation, strategy, figure("steps", values["steps"]), *_cells(values))
        for conversation, strategy, values in results
    )
    notes = [
        f"{_LACKS} {_LACKING}." if any(_lacks(values) for _, _, values in results) else "",
        _missing([values for _, _, values in results]),
    ]
    heads = ("conversation", "strategy", "steps", *_HEADS)
    return Table("By conversation", heads, rows, tuple(filter(None, notes)), names=2, spare=("steps", *_SPARE))


def _cells(values: dict[str, Value]) -> Iterator[str]:
    for column in COLUMNS:
        if column in _OF_FEW:
            yield figure_of_few(column, values[column])
        else:
            yield figure(column, values[column]) + _LACKS * (column == "saving" and _lacks(values))


def _has_nothing(column: str, value: Value) -> bool:
    return column in _OF_FEW and isinstance(value, Missing) and value.why != "failed"


def _missing(figures: Iterable[dict[str, Value]]) -> str:
    """Return why figures are missing, for the note under the table."""
    return reasons(
        values[column] for values in figures for column in COLUMNS if not _has_nothing(column, values[column])
    )


def lacking(summary: RunSummary) -> frozenset[str]:
    """Return the strategies that sent some calls without the newest message."""
    return frozenset(name for name, values in summary.strategies.items() if _lacks(values))


def _lacks(values: dict[str, Value]) -> bool:
    """Return whether some calls lack the newest message: they would fail, so what they save is no saving."""
    number = values["without_newest"]
    return not isinstance(number, Missing) and number > 0


def lacking_table(summary: RunSummary) -> Table | None:
    """Return how many calls lack the newest message and what the others save, or None without such calls."""
    columns = ("without_newest", "steps", "saving", "saving_with_newest")
    rows = tuple(
        (name, *(figure(column, values[column]) for column in columns))
        for name, values in summary.strategies.items()
        if _lacks(values)
    )
    if not rows:
        return None
    note = "These requests lack the newest message, so they would fail: their savings do not count."
    heads = ("strategy", "such calls", "of", "saved", "saved without them")
    return Table("Which calls lack the newest message?", heads, rows, (note,))


def _unanswered(summary: RunSummary) -> str:
    if not summary.unanswered:
        return ""
    return (
        f"{_UNANSWERED} No call of its models succeeded: the figures show what the strategy does without an answer. "
        "The table Why has the reasons."
    )


def _compared(summary: RunSummary) -> str:
    """Return the sentence that says over which conversations strategies are compared, where some have failed."""
    lost = {name: number for name, number in summary.failed_conversations.items() if number}
    if not lost:
        return ""
    none = [name for name, number in lost.items() if number == summary.conversations]
    but = f" but {', '.join(none)}, which finished none" if none else ""
    failed = ", ".join(f"{name} in {number:,}" for name, number in lost.items())
    return (
        f"All figures are over the {summary.compared:,} of {count(summary.conversations, 'conversation')} that every "
        f"strategy finished{but}. Failed: {failed}."
    )


def faults_table(summary: RunSummary) -> Table:
    """Return the calls with structural faults, a column for each fault that any strategy has."""
    figures = summary.strategies.values()
    faults = [
        name for name in _FAULTS if any(not isinstance(values[name], Missing) and values[name] for values in figures)
    ]
    if not faults:
        return Table(
            "Which structural faults does a strategy add?", (), (), ("No strategy made a context with a fault.",)
        )
    rows = tuple(
        (name, *(figure(column, values[column]) for column in (*faults, "latency_p99")))
        for name, values in summary.strategies.items()
    )
    heads = ("strategy", *(METRICS[name].name for name in faults), METRICS["latency_p99"].name)
    note = "Calls with each fault; a fault that no strategy has is left out. Faults of none come from the recordings."
    return Table("Which structural faults does a strategy add?", heads, rows, (note,), spare=heads[-1:])


def grounding_table(summary: RunSummary) -> Table:
    """Return grounding recall with a column for each kind of value, the most frequent first."""
    wanted = next(kinds for kinds in summary.grounding.values() if kinds)
    kinds = sorted(wanted, key=lambda kind: -wanted[kind][0])
    rows = tuple(
        (name, *(percent(values[kind][1] / values[kind][0]) for kind in kinds))
        for name, values in summary.grounding.items()
        if values
    )
    heads = ("strategy", *(f"{kind} ({wanted[kind][0]:,})" for kind in kinds))
    note = (
        "Values that a user or a tool had given and the recorded model used next: the share still in the context. In "
        "brackets: how many."
    )
    return Table("Which kinds of values does the context still have?", heads, rows, (note,), spare=heads[:2:-1])


def growth_table(summary: RunSummary) -> Table:
    """Return the tokens of a call with a column for each turn."""
    curve = growth_rows(summary.steps.growth)
    history = ("whole history", *(tokens(row["full"]) for row in curve))
    names = [name for name in summary.strategies if name != "none"]
    rows = (history, *((name, *(_sent(row, name) for row in curve)) for name in names))
    turns = {row["turn"]: f"turn {row['turn']} ({row['conversations']:,})" for row in curve}
    notes = [
        "Mean tokens of a model call, and what is saved against the whole history. In brackets above: the "
        "conversations that reach the turn."
    ]
    if any(cell.endswith(_LACKS) for row in rows for cell in row):
        notes.append(f"{_LACKS} {_LACKING}.")
    spare = tuple(turns[turn] for turn in _SPARE_TURNS if turn in turns)
    return Table(
        "How many tokens does a call take, by turn?", ("strategy", *turns.values()), rows, tuple(notes), spare=spare
    )


def _sent(row: dict[str, Any], name: str) -> str:
    if name not in row:
        return "(failed)"
    mark = _LACKS if row[name]["without_newest"] else ""
    return f"{tokens(row[name]['tokens_sent'])} ({percent(row[name]['saving'])}){mark}"


def added_table(summary: RunSummary) -> Table | None:
    """Return what strategies sent beside the recording and spent on their own model calls, or None for neither."""
    rows = tuple(
        (
            name,
            *(figure(column, values[column]) for column in ("tokens_added", "added_share")),
            f"{summary.actions[name].get('called', 0):,}",
            *(figure(column, values[column]) for column in ("own_tokens", "own_cost")),
            percent(summary.summariser_saw[name]) if summary.actions[name].get("summarised") else "",
        )
        for name, values in summary.strategies.items()
        if _is_positive(values["tokens_added"]) or summary.actions[name].get("called")
    )
    if not rows:
        return None
    heads = ("strategy", "tokens added", "of the history", "own model calls", "their tokens", "cost", "summariser saw")
    note = (
        "Added: tokens of messages that the strategy wrote and of tools that it offers. Summariser saw: the share of "
        "the summarised tokens that the summariser was given."
    )
    return Table("What did strategies add?", heads, rows, (note,))


def actions_table(summary: RunSummary) -> Table | None:
    """Return how often each strategy reported each kind of action, or None if there are only model calls."""
    kinds = sorted({kind for counts in summary.actions.values() for kind in counts} - {"called"})
    if not kinds:
        return None
    rows = tuple(
        (name, *(f"{counts.get(kind, 0):,}" for kind in kinds))
        for name, counts in summary.actions.items()
        if counts.keys() & set(kinds)
    )
    heads = ("strategy", *(_EVENT_NAMES.get(kind, kind.replace("_", " ")) for kind in kinds))
    return Table("What did the strategies do?", heads, rows, ("How often; `ctxbench show` has each one at its step.",))


def reasons_table(summary: RunSummary) -> Table:
    """Return why something failed or went over budget, a row for each reason, the most frequent first."""
    rows = tuple(
        (
            str(row["strategy"]),
            _EVENT_NAMES.get(str(row["what"]), str(row["what"])),
            str(row["why"]),
            str(row["instead"]),
            f"{row['times']:,}",
        )
        for row in summary.reasons[:_MOST_REASONS]
    )
    notes = [
        "Failed: the strategy could not have what it needed, and did something else instead. Over budget: what must be "
        "sent is larger than the strategy's own budget."
    ]
    if rest := summary.reasons[_MOST_REASONS:]:
        times = sum(int(row["times"]) for row in rest)
        notes.append(f"{count(len(rest), 'more reason')}, {count(times, 'time')} together: all are in --json.")
    return Table(
        "Why did something fail?", ("strategy", "what", "reason", "instead", "times"), rows, tuple(notes), prose=True
    )


def survival_table(summary: RunSummary) -> Table:
    """Return the share of facts that survive rounds of summarising, each with the number of facts followed."""
    cliffs = {name: _cliff(rows) for name, rows in summary.survival.items() if rows}
    has_cliff = set(cliffs.values()) != {"round 0"}
    rows = tuple(
        (name, *(_survived_of(summary.survival[name], age) for age in _AGES), *([cliffs[name]] if has_cliff else []))
        for name in cliffs
    )
    heads = ("strategy", *(f"round {age}" for age in _AGES), *(["cliff"] if has_cliff else []))
    notes = [
        "The share of facts that the summary still has after so many more rounds; round 0 is the first summary. In "
        "brackets: facts followed so far, which are fewer in each round and no sample of those before, so a row may "
        "rise."
    ]
    if has_cliff:
        notes.append("Cliff: the first round that fewer than half survive.")
    spare = tuple(f"round {age}" for age in _SPARE_AGES)
    return Table("How many rounds do facts survive?", heads, rows, tuple(notes), spare=spare)


def first_summary_table(summary: RunSummary) -> Table:
    """Return the share of facts that the first summary has, a column for each kind of fact."""
    kinds = sorted({row.kind for rows in summary.survival.values() for row in rows})
    rows = tuple(
        (name, *(_survived(facts, 0, kind) for kind in kinds)) for name, facts in summary.survival.items() if facts
    )
    note = "Round 0 of the table above by kind. Every kind and round is in --json."
    return Table("Which facts are in the first summary?", ("strategy", *kinds), rows, (note,))


def _cliff(rows: list[Survival]) -> str:
    fallen = cliff(rows)
    return "never" if isinstance(fallen, Missing) else f"round {fallen}"


def _survived(rows: list[Survival], age: int, kind: str = "") -> str:
    """Return the share of the facts that survive to an age, of one kind or of all."""
    rows = [row for row in rows if row.age == age and kind in ("", row.kind)]
    wanted = sum(row.values for row in rows)
    return percent(sum(row.kept for row in rows) / wanted) if wanted else ""


def _survived_of(rows: list[Survival], age: int) -> str:
    """Return the share with the number of facts: `25.2 % (41.2k)`."""
    wanted = sum(row.values for row in rows if row.age == age)
    return f"{_survived(rows, age)} ({tokens(wanted)})" if wanted else ""


def _is_positive(value: Value) -> bool:
    return not isinstance(value, Missing) and value > 0


def counter_table(summary: RunSummary) -> Table:
    """Return the error of our token counts, a row for each recorded model."""
    rows = tuple(
        (
            str(row["model"]),
            str(row["published"]),
            f"{row['calls']:,}",
            percent(row["total"]),  # type: ignore[arg-type]
            *(percent(row[f"growth_p{at}"]) for at in (10, 50, 90)),  # type: ignore[arg-type]
        )
        for row in summary.steps.counter
    )
    note = (
        "Total: our count of all prompts against the provider's. Growth: the same from one call to the next, where a "
        "system prompt or tools that the recording lacks cancel out."
    )
    why = reasons(value for row in summary.steps.counter for value in row.values() if isinstance(value, Missing))
    heads = ("recorded model", "published encoding", "calls", "total", "growth p10", "growth p50", "growth p90")
    title = f"How far off are the token counts ({summary.manifest.plan.encoding})?"
    return Table(title, heads, rows, (note, *filter(None, [why])), names=2)


def failed_table(summary: RunSummary) -> Table:
    """Return a row for each strategy and reason: the number of conversations that failed, and the first of them."""
    conversations: dict[tuple[str, str], list[str]] = {}
    for row in summary.failed:
        conversations.setdefault((row["strategy"], row["detail"]), []).append(row["conversation"])
    rows = tuple((strategy, f"{len(names):,}", names[0], why) for (strategy, why), names in conversations.items())
    return Table("Failed", ("strategy", "conversations", "for example", "why"), rows, prose=True)


def problems_table(summary: RunSummary) -> Table:
    """Return the records that were left out, and why; of those that are alike in a file, the first."""
    problems = summary.manifest.problems
    groups = alike(problems)
    rows = tuple(
        (
            f"{problem.file}:{problem.line}" if problem.line else problem.file,
            problem.field,
            problem.what + (f" ({problem.remedy})" if problem.remedy else ""),
            f"{times:,}",
        )
        for problem, times in groups
    )
    several = len(groups) < len(problems)
    notes = ("Times: records of the file with the same problem, of which the first is shown.",) if several else ()
    heads = ("where", "field", "what", *(["times"] if several else []))
    shown = rows if several else tuple(row[:-1] for row in rows)
    return Table(f"Left out: {count(len(problems), 'record')}", heads, shown, notes, prose=True)
