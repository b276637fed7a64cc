"""The message diff of a step on a terminal: a line for each message, then one for each action of the strategy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from ctxbench.harness.diff import StepDiff, kind_of
from ctxbench.harness.probes import StoredProbe
from ctxbench.scenarios.errors import printable

from .render import WIDE, count, percent

_STYLES = {"same": "dim", "again": "cyan", "new": "green", "summarised": "yellow", "dropped": "red"}
# Marks before a message: evidence of the probe, or a cache breakpoint after the message.
_EVIDENCE, _BREAKPOINT = "◆", "▮"
# Characters of an id, of a message and of an event's field that are shown where lines are cut.
_ID, _LINE, _FIELD = 16, 1000, 80
_IN_CONTEXT = {True: "in context", False: "not in context", None: "not in the history either"}


def show_step(console: Console, at: StepDiff, full: bool) -> None:
    """Print a step, or the context of a probe. Lines are cut where the console has a width, unless `full`."""
    cut, probe = console.width < WIDE and not full, at.probe
    if probe is not None:
        asked = probe.probe
        accepted = " · ".join(asked.answers) or ("none known" if asked.answerable else "it cannot be answered")
        question = f"probe {asked.id}{f' ({asked.category})' if asked.category else ''}: {asked.question}"
        console.print(printable(f"{question}\naccepted: {accepted}\n"), markup=False, soft_wrap=True)
    where = f"step {at.step} of 0 to {at.steps - 1}" if at.steps > 1 else "step 0, the only one"
    where = where if probe is None else "after " + where if at.step >= 0 else "before any step"
    console.print(f"[bold]{escape(at.strategy)}[/bold]  {where}, {at.tokens_sent:,} of {at.tokens_full:,} tokens")
    console.print(f"{count(at.said, 'message')} in the history · {at.sent} sent: {_counts(at)}\n")
    for line in _messages(at, full, _LINE if cut else None):
        console.print(line, no_wrap=True, overflow="ellipsis") if cut else console.print(line, soft_wrap=True)
    for text in _evidence(probe) if probe is not None else ():
        console.print(printable(text), markup=False, soft_wrap=True)
    lines = [("tools", ", ".join(at.tools_added))] if at.tools_added else []
    lines += [(kind_of(event), _fields(event, cut)) for event in at.events]
    if lines:
        console.print()
    for kind, text in lines:
        console.print(Text.assemble((f"{kind:<10}", "cyan"), "   ", printable(text)), soft_wrap=not cut)


def _evidence(stored: StoredProbe) -> Iterator[str]:
    """Yield the lines behind the messages: what became of a probe's evidence, and whether its answer is there."""
    row, states = stored.row, " · ".join(f"{name} {state}" for name, state in stored.evidence.items())
    yield f"\nevidence     {states or 'none before this question'}"
    if row["evidence_place"] is not None:
        evidence, sent, place = row["evidence_tokens"], row["tokens_sent"], percent(row["evidence_place"])
        yield f"             {evidence:,} of {sent:,} tokens ({percent(evidence / sent)}), at {place} of them"
    yield f"answer       {_IN_CONTEXT[row['answer']]}"


def _counts(at: StepDiff) -> str:
    """Return how many messages were sent, replaced, lost and so on; the number of dropped ones in any case."""
    sent, origins, lost = (
        ", ".join(f"{at.count(word)} {word}" for word in words if at.count(word) or word == "dropped")
        for words in (("same", "again", "new"), ("replaced", "written"), ("summarised", "dropped"))
    )
    return " · ".join(filter(None, (sent or "none", origins, lost)))


def _messages(at: StepDiff, full: bool, most: int | None) -> Iterator[Text]:
    """Yield a line for each message: status, id, role, origin where not all are recorded, and its text."""
    longest = min(max((len(diff.message.id) for diff in at.messages), default=0), _ID)
    beside = any(diff.origin != "recorded" for diff in at.messages)
    for diff in at.messages:
        message, mark = diff.message, _BREAKPOINT if diff.place in at.request.marks else " "
        text = message.text + "".join(f" → {call.name}({call.arguments})" for call in message.calls)
        text = text if full else " ".join(text[:most].split())
        origin = f"{'' if diff.origin == 'recorded' else diff.origin:<9}" * beside
        mark = _EVIDENCE if at.probe is not None and message.id in at.probe.evidence else mark
        who = printable(f" {mark} {message.id:<{longest}} {message.role:<10}")
        yield Text.assemble((f"{diff.status:<10}", _STYLES[diff.status]), who, (origin, "magenta"), printable(text))


def _fields(event: Any, cut: bool) -> str:
    """Return `name=value` of each field; where lines are cut, a long value or list is cut too."""
    fields = []
    for name, value in msgspec.structs.asdict(event).items():
        text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
        if cut and len(text := " ".join(text.split())) > _FIELD:
            text = f"{text[:_FIELD]}…" + (f" ({len(value)} of them)" if isinstance(value, tuple) else "")
        fields.append(f"{name}={text}")
    return "  ".join(fields)
