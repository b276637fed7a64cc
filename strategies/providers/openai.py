"""OpenAI's compaction (guide of autumn 2026; docstrings of the openai package 2.54.0)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ctxbench.scenarios.spec import PositiveInt
from ctxbench.scenarios.view import Messages

from ..base import data
from ..parts.compaction import ClientHistory, CompactingClient
from ..parts.units import NOTHING

EXAMPLE = 200_000  # threshold of the guide's example, in tokens; no default is published


@dataclass(frozen=True, slots=True)
class OpenAICompaction(CompactingClient, name="openai.compact"):
    """A compaction item replaces the history over a threshold; with the endpoint, user messages stay.

    The trigger is the usage of the last response. `mode="endpoint"` is `/responses/compact`: all user messages stay,
    and the item follows them. `mode="stream"` is `context_management`: the item stands alone, and the next request
    starts at it. Neither a default nor a minimum of the threshold is published; 200,000 is the guide's example. `items`
    compacts by their number instead, user messages and compaction items aside: the Agents SDK's session does it from 10
    on.

    With `model` the threshold is that of the Agents SDK's sandbox: 90 % of the window that the SDK knows for it, and
    240,000 for a model that it does not know.

    The item is encrypted. A summary stands for it here, as a message of the user. Its size and price are not published:
    it is billed as one message more behind the last prompt.
    """

    threshold: PositiveInt = EXAMPLE
    mode: Literal["endpoint", "stream"] = "endpoint"
    items: PositiveInt | None = None
    model: str = ""

    def __post_init__(self) -> None:
        if self.model and self.threshold != EXAMPLE:
            raise ValueError("give threshold or model, not both")

    @property
    def limit(self) -> int:
        if not self.model:
            return self.threshold
        name = re.sub(r"-\d{4}-\d\d-\d\d$", "", self.model.strip().lower().removeprefix("openai/"))
        windows = (row["tokens"] for row in data("sandbox_windows")["windows"] if re.fullmatch(row["models"], name))
        window: int | None = next(windows, None)
        return 240_000 if window is None else window * 9 // 10

    def compact(self, history: ClientHistory) -> None:
        stop = history.settled
        said = [message for message in history.messages[:stop] if message.role == "user" and not history.wrote(message)]
        if self.items is None:
            due = history.used > self.limit
        else:
            due = sum(not history.wrote(message) for message in history.messages[:stop]) - len(said) >= self.items
        if due:
            history.summarise(stop, before=Messages.of(tuple(said)) if self.mode == "endpoint" else NOTHING)
