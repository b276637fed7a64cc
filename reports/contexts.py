"""What of each context is the strategy's own, and whether the newest message is in it: read from the context log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import msgspec
import pandas as pd

from ..harness.load import Run
from ..metrics.tokens import PRIMING


class _Named(msgspec.Struct):
    """Of a message as JSON, its id alone."""

    id: str


class Sent(NamedTuple):
    """What is said of one context."""

    tokens_added: int
    """Of the messages that the strategy wrote, and of its tool schemas beyond those of the recording."""
    newest: bool
    """Whether it has the newest message, or one that the strategy wrote under its id, in its place."""


class _Cell:
    """One conversation under one strategy. Messages are numbered as in the log: the recording's, then the others."""

    def __init__(self, ids: Sequence[str], tokens: Sequence[int], recorded: int, tools: int) -> None:
        self._ids, self._recorded, self._tools = ids, recorded, tools
        self._tokens = [0, *accumulate(tokens)]
        self._stretches: list[tuple[int, int]] = []

    def step(self, kept: int, added: Sequence[tuple[int, int]], at: int, tokens_sent: int) -> Sent:
        """The next context, after `at` messages were said."""
        self._stretches = [*_first(self._stretches, kept), *added]
        written = sum(self._sum(each) for each in self._stretches if each[0] >= self._recorded)
        messages = sum(map(self._sum, self._stretches))
        tools = max(tokens_sent - PRIMING - messages - self._tools, 0)
        return Sent(written + tools, any(self._has_newest(*each, at - 1) for each in added))

    def _sum(self, stretch: tuple[int, int]) -> int:
        return self._tokens[stretch[1]] - self._tokens[stretch[0]]

    def _has_newest(self, start: int, stop: int, newest: int) -> bool:
        """Whether a stretch has it. It was said since the step before, so it is never among what is kept."""
        return start <= newest < stop or (start >= self._recorded and self._ids[newest] in self._ids[start:stop])


def _first(stretches: Sequence[tuple[int, int]], count: int) -> Iterator[tuple[int, int]]:
    """The first `count` messages of the stretches."""
    for start, stop in stretches:
        if not count:
            return
        taken = min(count, stop - start)
        yield start, start + taken
        count -= taken


def sent(run: Run, steps: pd.DataFrame) -> pd.DataFrame:
    """`Sent` of each of the run's steps, in their order."""
    recorded, written = _recorded(run), _written(run)
    tools = dict(zip(*(run.table("conversations")[name] for name in ("conversation", "tools_tokens")), strict=True))
    columns = ["conversation", "strategy", "step", "kept", "added_from", "added_to", "at", "tokens_sent"]
    rows = []
    for name, strategy, step, kept, starts, stops, at, tokens in steps[columns].itertuples(index=False):
        if step == 0:
            ids, sizes = recorded[name]
            more, more_sizes = written[name, strategy]
            cell = _Cell([*ids, *more], [*sizes, *more_sizes], len(ids), tools[name])
        rows.append(cell.step(kept, list(zip(starts.tolist(), stops.tolist(), strict=True)), at, tokens))
    return pd.DataFrame(rows, columns=Sent._fields).astype({"tokens_added": "int64", "newest": bool})


def _recorded(run: Run) -> dict[str, tuple[list[str], list[int]]]:
    """The ids and the tokens of each conversation's messages."""
    groups = run.table("messages").groupby("conversation", observed=True, sort=False)
    return {str(name): (rows.id.tolist(), rows.tokens.tolist()) for name, rows in groups}


def _written(run: Run) -> dict[tuple[str, str], tuple[list[str], list[int]]]:
    """The ids and the tokens of what each strategy wrote in each conversation, in the order of their numbers."""
    found: dict[tuple[str, str], tuple[list[str], list[int]]] = defaultdict(lambda: ([], []))
    decoder = msgspec.json.Decoder(_Named)
    rows = run.table("contexts")
    for name, strategy, tokens, text in zip(rows.conversation, rows.strategy, rows.tokens, rows.message, strict=True):
        ids, sizes = found[name, strategy]
        ids.append(decoder.decode(text).id)
        sizes.append(tokens)
    return found
