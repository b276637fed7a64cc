"""Actions of a strategy at a step, as typed values: it reports them to `StrategyContext.record`, the harness measures.

Messages are named by their ids in the recording. Every event is a row of the run's `events` table.
"""

from __future__ import annotations

from typing import Literal

import msgspec

PromptKind = Literal["separate", "history", "extends"]
"""The part of the conversation's last request that a request to a model repeats, and that the prompt cache has.

separate   nothing: the conversation is in it as text
history    its messages, behind another system prompt or without the tools: providers' caches see another prompt
extends    everything: it is the last prompt and its answer with one message more
"""


class _Event(msgspec.Struct, frozen=True, tag_field="event", omit_defaults=True, gc=False):
    """Frozen, compared by content, tagged with its name."""


class Called(_Event, frozen=True, tag="called"):
    """A model was called for the strategy, which is charged for it.

    The harness records this event itself, but for the summaries of the recorded agent, which `recorded` reports.
    """

    role: Literal["summariser", "embedder"]
    model: str
    input_tokens: int
    output_tokens: int = 0
    cost: float | None = None
    """US dollars; None = unknown price. Offline models cost 0."""
    about: int = 0
    """Tokens of the messages that the reply will replace."""
    shown: int = 0
    """Tokens of those messages that the model was shown."""
    prompt: PromptKind = "separate"
    """How it would be asked in production, by which it is billed."""
    basis: Literal["run", "recorded", "estimated"] = "run"
    """Where the tokens are from: this run, the recorded usage (as the provider counted them), or an estimate."""
    cache_read: int = 0
    """Of the input, tokens that were read from the prompt cache; known of a recorded usage alone."""


class Summarised(_Event, frozen=True, tag="summarised"):
    """Messages were replaced by a summary, which also covers all messages that were replaced before."""

    replaced: tuple[str, ...]
    """Ids of the messages that the summary newly covers."""
    summary: str
    level: int = 1
    """1 = a summary of messages, 2 = of summaries, …"""
    by: str = ""
    """The strategy, where several of a chain summarise."""


USED, CUT = "it is used", "it is cut there"
"""Outcomes of a reply that does not follow its instruction, as `Failed.instead` has them."""


class Failed(_Event, frozen=True, tag="failed"):
    """Something that the strategy needs was missing or not as requested; `instead` says what the strategy did."""

    what: Literal["summary", "embedding", "archive", "load", "facts", "language"]
    why: str
    instead: str

    @property
    def used(self) -> bool:
        """Whether the imperfect reply was used all the same."""
        return self.instead in (USED, CUT)


class OverBudget(_Event, frozen=True, tag="over_budget"):
    """The budget cannot be kept: the messages that must be sent exceed it alone."""

    why: str
    tokens: int
    budget: int


class Dropped(_Event, frozen=True, tag="dropped"):
    """Messages are not sent, and no summary covers them yet. A window records none: the context log shows its cuts."""

    messages: tuple[str, ...]


class Cleared(_Event, frozen=True, tag="cleared"):
    """Results of tool calls are sent as a short placeholder from now on; they are not stored."""

    messages: tuple[str, ...]
    tokens: int
    """Tokens that the placeholders save, those of cleared arguments among them."""


class ClearedThinking(_Event, frozen=True, tag="cleared_thinking"):
    """Answers are sent without their reasoning from now on."""

    answers: tuple[str, ...]
    turns: int
    """Number of turns that lost theirs."""
    tokens: int | None
    """Tokens of the reasoning, which contexts do not count; None = the recording does not have all of it."""


class Archived(_Event, frozen=True, tag="archived"):
    """A tool result was stored whole, and is sent as a placeholder."""

    message: str
    uuid: str
    characters: int


class Loaded(_Event, frozen=True, tag="loaded"):
    """An archived result was sent again for this call, whole or in part."""

    uuid: str
    trigger: Literal["model", "keyword", "semantic", "hybrid"]
    characters: int


class Deleted(_Event, frozen=True, tag="deleted"):
    """Archived results were removed at the end of their retention time."""

    uuids: tuple[str, ...]


class Recalled(_Event, frozen=True, tag="recalled"):
    """Memories or facts were injected, or messages sent again. `sources` are the messages that they come from."""

    sources: tuple[str, ...]
    scores: tuple[float, ...] = ()
    kind: str = ""
    """The memory, where there are several: "working", "short", "long" …; "focus" = it was sent anyway."""


class Moved(_Event, frozen=True, tag="moved"):
    """Memories went from one tier to another, or were dropped (`to` empty)."""

    sources: tuple[str, ...]
    source: str
    to: str = ""
    tokens: int = 0
    """Tokens of all the memories together, where they have sizes."""
    queue_time: float = 0.0
    """Recorded seconds between request and completion, summed over the memories."""


class Compressed(_Event, frozen=True, tag="compressed"):
    """An archive of messages was written; the figures are those of all of it, not of what is new."""

    content: int
    """Bytes of its messages as JSON."""
    stored: int
    """Bytes of all its files: blocks with messages that are deleted since, tables, dictionary and index."""


class LimitReached(_Event, frozen=True, tag="limit_reached"):
    """A tier's tokens crossed one of its limits (`strategies/tiers/quota.py`)."""

    tier: str
    level: Literal["warning", "soft", "hard"]
    tokens: int
    """Tokens that the tier would hold; above a hard limit it rejects them."""
    limit: int
    """Limit of the level, in tokens."""
    up: bool = True
    """False = the tier is below the limit again."""


class Alarmed(_Event, frozen=True, tag="alarmed"):
    """A reading of the tiers became an alarm (`strategies/tiers/heat.py`)."""

    reading: str
    value: float
    limit: float
    up: bool = True
    """False = the alarm is over."""


ContextEvent = Called | Summarised | Failed | OverBudget | Dropped | Cleared | ClearedThinking | Recalled
ArchiveEvent = Archived | Loaded | Deleted
TierEvent = Moved | Compressed | LimitReached | Alarmed
Event = ContextEvent | ArchiveEvent | TierEvent
