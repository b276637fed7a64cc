"""Tables of what strategies did: what they added, their events, why something failed, what outlived their summaries."""

from __future__ import annotations

from ..metrics.survival import Survival, cliff
from ..metrics.value import Missing, Value
from .render import Table, count, figure, percent, tokens
from .summary import RunSummary

AGES = (0, 1, 2, 5, 10, 20)
"""Rounds at which survival is shown."""
SPARE_AGES = (2, 20, 5, 10)
"""Rounds that a narrow terminal does without, the first to go first."""
MOST_WHYS = 20
"""Rows of the table of what failed."""
WORDS = {"over_budget": "over budget"}
"""Events that have another name in tables: providers refuse as well."""


def added(summary: RunSummary) -> Table | None:
    """What strategies sent that was not recorded, and their own model calls; None if there is nothing of it."""
    rows = tuple(
        (
            name,
            *(figure(column, values[column]) for column in ("tokens_added", "added_share")),
            f"{summary.did[name].get('called', 0):,}",
            *(figure(column, values[column]) for column in ("own_tokens", "own_cost")),
            percent(summary.shown[name]) if summary.did[name].get("summarised") else "",
        )
        for name, values in summary.strategies.items()
        if _has(values["tokens_added"]) or summary.did[name].get("called")
    )
    if not rows:
        return None
    heads = ("strategy", "tokens added", "of the history", "model calls", "their tokens", "cost", "shown")
    note = (
        "Added: tokens sent that are not the recording's (messages that the strategy wrote, tools that it offers); "
        "saved is what it left out less these. Model calls are its own and charged to it. Shown: of the tokens that "
        "summaries stand for, what the summariser was shown."
    )
    return Table("What strategies added", heads, rows, (note,))


def did(summary: RunSummary) -> Table | None:
    """What strategies reported, a column for each kind of event; None if they reported nothing but model calls."""
    kinds = sorted({kind for counts in summary.did.values() for kind in counts} - {"called"})
    if not kinds:
        return None
    rows = tuple(
        (name, *(f"{counts.get(kind, 0):,}" for kind in kinds))
        for name, counts in summary.did.items()
        if counts.keys() & set(kinds)
    )
    note = "How often; every event is in the run's events table."
    return Table("What strategies did", ("strategy", *(WORDS.get(kind, kind) for kind in kinds)), rows, (note,))


def why(summary: RunSummary) -> Table:
    """A row for each reason, the most frequent first."""
    rows = tuple(
        (
            str(row["strategy"]),
            WORDS.get(str(row["what"]), str(row["what"])),
            str(row["why"]),
            str(row["instead"]),
            f"{row['times']:,}",
        )
        for row in summary.why[:MOST_WHYS]
    )
    notes = [
        "Failed: what the strategy needed could not be had as it was asked for. Budget too small: what must be sent is "
        "over the strategy's own budget."
    ]
    if rest := summary.why[MOST_WHYS:]:
        times = sum(int(row["times"]) for row in rest)
        notes.append(f"{count(len(rest), 'more reason')}, {count(times, 'time')} together: all are in --json.")
    return Table("Why", ("strategy", "what", "reason", "instead", "times"), rows, tuple(notes), prose=True)


def survival(summary: RunSummary) -> Table:
    """The share of facts that outlive rounds of summarising, and of how many."""
    cliffs = {name: _cliff(found) for name, found in summary.survival.items() if found}
    told = set(cliffs.values()) != {"round 0"}
    rows = tuple(
        (name, *(_survived_of(summary.survival[name], age) for age in AGES), *([cliffs[name]] if told else []))
        for name in cliffs
    )
    heads = ("strategy", *(f"round {age}" for age in AGES), *(["cliff"] if told else []))
    notes = [
        "Facts of replaced messages that the summary still has after so many more rounds of summarising; round 0 is "
        "the first summary that stands for them. In brackets: the facts that were followed so far. They are fewer in "
        "each round and not a sample of those before, so a row is no curve and may rise."
    ]
    if told:
        notes.append("Cliff: the first round that fewer than half survive.")
    spare = tuple(f"round {age}" for age in SPARE_AGES)
    return Table("Facts that survive summarising", heads, rows, tuple(notes), spare=spare)


def first_round(summary: RunSummary) -> Table:
    """Of each kind of fact, the share that the first summary has."""
    kinds = sorted({row.kind for found in summary.survival.values() for row in found})
    rows = tuple(
        (name, *(_survived(found, 0, kind) for kind in kinds)) for name, found in summary.survival.items() if found
    )
    note = "Round 0 of the table above by kind. Every kind and round is in --json."
    return Table("Facts in the first summary", ("strategy", *kinds), rows, (note,))


def _cliff(found: list[Survival]) -> str:
    fallen = cliff(found)
    return "never" if isinstance(fallen, Missing) else f"round {fallen}"


def _survived(found: list[Survival], age: int, kind: str = "") -> str:
    """The share of the facts, of a kind or of all."""
    rows = [row for row in found if row.age == age and kind in ("", row.kind)]
    wanted = sum(row.values for row in rows)
    return percent(sum(row.kept for row in rows) / wanted) if wanted else ""


def _survived_of(found: list[Survival], age: int) -> str:
    """The share and of how many: `25.2 % (41.2k)`."""
    wanted = sum(row.values for row in found if row.age == age)
    return f"{_survived(found, age)} ({tokens(wanted)})" if wanted else ""


def _has(value: Value) -> bool:
    return not isinstance(value, Missing) and value > 0
