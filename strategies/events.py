"""What a strategy did at a step, as typed values: it reports them to `Desk.record`, and only the harness measures.

Messages are named by their ids in the recording. Every event is a row of the run's `events` table.
"""

from __future__ import annotations

from typing import Literal

import msgspec


class _Event(msgspec.Struct, frozen=True, tag_field="event", omit_defaults=True, gc=False):
    """Frozen, compared by content, tagged with its name."""


class Called(_Event, frozen=True, tag="called"):
    """A model was called for the strategy, which is charged for it. The desk itself records this."""

    role: Literal["summariser", "embedder"]
    model: str
    input_tokens: int
    output_tokens: int = 0
    cost: float | None = None
    """US dollars; None = the price is not known. Offline models cost 0."""
    about: int = 0
    """Tokens of the messages that the reply will stand for."""
    shown: int = 0
    """Tokens of those that the model was really shown."""


class Summarised(_Event, frozen=True, tag="summarised"):
    """Messages were replaced by a summary, which stands for all that were replaced before as well."""

    replaced: tuple[str, ...]
    """Ids of the messages that it newly stands for."""
    summary: str
    level: int = 1
    """1 = a summary of messages, 2 = of summaries, …"""
    by: str = ""
    """The strategy, where several of a chain summarise."""


USED, CUT = "it is used", "it is cut there"
"""What is done with a reply that is not as it was asked for."""


class Failed(_Event, frozen=True, tag="failed"):
    """Something that the strategy needs could not be had, or not as it was asked for, and what it did instead."""

    what: Literal["summary", "embedding", "archive", "load", "facts"]
    why: str
    instead: str

    @property
    def used(self) -> bool:
        """Whether it was had after all, and used."""
        return self.instead in (USED, CUT)


class OverBudget(_Event, frozen=True, tag="over_budget"):
    """The budget cannot be kept: what must be sent alone is over it."""

    why: str
    tokens: int
    budget: int


class Dropped(_Event, frozen=True, tag="dropped"):
    """Messages are not sent, and nothing stands for them yet. Not for what a window leaves out: the log has that."""

    messages: tuple[str, ...]


class Archived(_Event, frozen=True, tag="archived"):
    """A tool result was stored whole; a placeholder stands for it."""

    message: str
    uuid: str
    characters: int


class Loaded(_Event, frozen=True, tag="loaded"):
    """An archived result was sent again, whole or in part, for this call."""

    uuid: str
    trigger: Literal["model", "keyword", "semantic", "hybrid"]
    characters: int


class Deleted(_Event, frozen=True, tag="deleted"):
    """Archived results were removed because they were older than they are kept."""

    uuids: tuple[str, ...]


class Recalled(_Event, frozen=True, tag="recalled"):
    """Memories or facts were injected, or messages sent again. `sources` are the messages that they come from."""

    sources: tuple[str, ...]
    scores: tuple[float, ...] = ()
    kind: str = ""
    """Which memory: "working", "short", "long" …, where there are several. "focus" = it was sent anyway."""


class Moved(_Event, frozen=True, tag="moved"):
    """Memories went from one tier to another, or out (`to` empty)."""

    sources: tuple[str, ...]
    source: str
    to: str = ""
    tokens: int = 0
    """Of all of them, where they have sizes."""
    queue_time: float = 0.0
    """Recorded seconds from when it was asked for until it was done, of all of them together."""


class LimitReached(_Event, frozen=True, tag="limit_reached"):
    """A tier's tokens crossed one of its limits (`strategies/tiers/quota.py`)."""

    tier: str
    level: Literal["warning", "soft", "hard"]
    tokens: int
    """What the tier was to hold then: above a hard limit it does not."""
    limit: int
    """The level's, in tokens."""
    up: bool = True
    """False = it is back below."""


class Alarmed(_Event, frozen=True, tag="alarmed"):
    """A reading of the tiers became an alarm (`strategies/tiers/migration/alarms.py`)."""

    reading: str
    value: float
    limit: float
    up: bool = True
    """False = it is none any more."""


Event = (
    Called
    | Summarised
    | Failed
    | OverBudget
    | Dropped
    | Archived
    | Loaded
    | Deleted
    | Recalled
    | Moved
    | LimitReached
    | Alarmed
)
