"""Where the prefix of a prompt broke, and what broke it: read from the context log, the same for every strategy.

A call breaks the prefix where it does not begin with all of the prompt before it. What that cost is what could have
been read and was not: the tokens of the prompt before behind the break. The cause is what happened to the first message
that is no longer where it was:

    tools       other tools are offered: nothing of the prompt is left
    inserted    it is still sent, further back: something was put before it
    dropped     it is not sent any more, and nothing that the strategy wrote stands in its place
    replaced    it was a recorded message, and one that the strategy wrote stands in its place
    rewritten   the strategy wrote it, and wrote it anew
    taken back  the strategy wrote it, and no longer sends it
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pandas as pd

from ...metrics.cache.requests import RequestStep
from .requests import ConversationRequests, RunRequests

CAUSES = ("tools", "inserted", "dropped", "replaced", "rewritten", "taken back")


class Break(NamedTuple):
    """One broken prefix."""

    conversation: str
    strategy: str
    step: int
    kept: int
    """Messages that stayed where they were."""
    lost: int
    """Tokens of the prompt before that stood behind them: they could have been read."""
    before: int
    """Tokens of all its messages."""
    cause: str
    deeds: str
    """What the strategy reported to have done at this step: kinds of events, in order, without repetition."""


def breaks(cells: RunRequests) -> pd.DataFrame:
    """Every broken prefix of a run, in the order of its steps. Columns as in `Break`."""
    deeds = _deeds(cells)
    rows = [row for cell in cells for row in _breaks(cell, deeds)]
    return pd.DataFrame(rows, columns=list(Break._fields))


def _breaks(cell: ConversationRequests, deeds: dict[tuple[str, str, int], str]) -> Iterator[Break]:
    sent: list[int] = []
    ends = [0]
    recorded = len(cell.messages.tokens) - cell.written
    tools: tuple[str, ...] | None = None
    for number, step in enumerate(cell.steps):
        kept, new = step.kept, _numbers(step)
        if kept < len(sent) or step.tools != tools:
            if tools is not None and (lost := ends[-1] - ends[kept]):
                cause = "tools" if step.tools != tools else _cause(sent[kept], new, recorded)
                done = deeds.get((cell.conversation, cell.strategy, number), "")
                yield Break(cell.conversation, cell.strategy, number, kept, lost, ends[-1], cause, done)
            del sent[kept:], ends[kept + 1 :]
        tools = step.tools
        sent += new
        for message in new:
            ends.append(ends[-1] + cell.messages.tokens[message])


def _cause(gone: int, new: list[int], recorded: int) -> str:
    """What happened to a message that is no longer where it was; `new` is what stands there and behind it."""
    if gone in new:
        return "inserted"
    instead_written = bool(new) and new[0] >= recorded
    if gone < recorded:
        return "replaced" if instead_written else "dropped"
    return "rewritten" if instead_written else "taken back"


def _numbers(step: RequestStep) -> list[int]:
    return [number for start, stop in step.added for number in range(start, stop)]


def _deeds(cells: RunRequests) -> dict[tuple[str, str, int], str]:
    """What strategies reported, by conversation, strategy and step."""
    events = cells.run.table("events")[["conversation", "strategy", "step", "kind"]].drop_duplicates()
    found: dict[tuple[str, str, int], str] = {}
    columns = (events[name].tolist() for name in events)
    for name, strategy, step, kind in zip(*columns, strict=True):
        key = (name, strategy, step)
        found[key] = f"{found[key]}, {kind}" if key in found else kind
    return found
