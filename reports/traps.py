"""The embedded traps: which of them each strategy falls into.

A trap is a small conversation that breaks context libraries for one reason. What a strategy saves on it means nothing,
so a run of traps has this table in place of a verdict.
"""

from __future__ import annotations

from ctxbench.harness.folder.names import short_names
from ctxbench.metrics.value import Value

from .render import Table, count
from .results import Results, by_conversation
from .verdict import WHOLE, faults

PREFIX = "traps/"
"""Start of the ids of the traps."""


def is_traps(results: Results) -> bool:
    """Return whether all conversations of a run are traps."""
    names = results.run.table("conversations").conversation.astype(str)
    return bool(len(names)) and bool(names.str.startswith(PREFIX).all())


def trap_faults(results: Results) -> dict[str, dict[str, list[str]]]:
    """Map each strategy to the traps that it falls into, each with what it breaks and `none` does not, in words.

    Requests that a provider rejects count for the providers of all billed models.
    """
    figures: dict[str, dict[str, dict[str, Value]]] = {}
    for conversation, strategy, values in by_conversation(results.run):
        figures.setdefault(conversation.removeprefix(PREFIX), {})[strategy] = values
    failed = results.run.failures
    by_strategy: dict[str, dict[str, list[str]]] = {name: {} for name in results.strategies}
    for trap, by_name in figures.items():
        usual = by_name.get(WHOLE, {})
        for name, values in by_name.items():
            is_failed = f"{PREFIX}{trap}" in failed.get(name, {})
            if broken := ["failed"] if is_failed else list(faults(values, usual, " ".join(results.models))):
                by_strategy[name][trap] = broken
    for name, conversation in results.summary.unrepeatable.items():
        what = by_strategy[name].setdefault(conversation.removeprefix(PREFIX), [])
        what.insert(0, "sends something else when it is replayed again")
    return by_strategy


def trap_table(results: Results) -> Table:
    """Return a row for each strategy: how many traps it falls into, which, and what it breaks there."""
    by_strategy = trap_faults(results)
    names = short_names(list(by_strategy), 40)
    traps = results.summary.conversations
    safe = sum(not traps_of for traps_of in by_strategy.values())
    rows = [
        (names[name], str(len(traps_of)), "; ".join(f"{trap} ({_worst(what)})" for trap, what in traps_of.items()))
        for name, traps_of in sorted(by_strategy.items(), key=lambda entry: len(entry[1]))
    ]
    title = f"Which of {count(traps, 'trap')} break a strategy? {safe} of {len(by_strategy)} strategies pass them all"
    notes = ("Broken is what the whole history does not break. Savings on traps mean nothing and are not shown.",)
    return Table(title, ("strategy", "broken", "by"), tuple(rows), notes, prose=True)


def _worst(faults: list[str]) -> str:
    """Return the fault that says most: a message that is missing, before who would reject the request for it."""
    return min(faults, key=lambda text: text.startswith("rejected")).partition(": ")[0]
