"""What is kept of an archived tool result, and who it is."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID, uuid5

NAMESPACE = UUID("6f1d3a52-5d0c-5b0e-9d55-2f4a7d1c0001")
"""Of the archive's uuids (any fixed one would do)."""


class StoreError(Exception):
    """The store could not be read or written: locked, full, unreachable. The text says why, in one line."""


class NotArchived(LookupError):
    """No result has this uuid, or none that may be seen from here."""


@dataclass(frozen=True, slots=True)
class Card:
    """All of an archived result but the result: what its placeholder shows and what searches look at."""

    uuid: str
    conversation: str
    message: str
    """Its message's id; empty where the card was read from the table, which does not have it."""
    thread: str
    """Empty = none."""
    tool: str
    arguments: object
    """The call's arguments as JSON values; as their text where that is not JSON; None where there is no call."""
    query: str
    summary: str
    length: int
    """Of the result, in characters."""
    sources: tuple[str, ...]
    created: float | None
    """When the result came, by the recorded clock, in seconds since 1970; None = the recording has no times."""

    @property
    def text(self) -> str:
        """What a question is compared with."""
        return "\n".join((self.tool, self.query, self.summary, *self.sources))


@dataclass(frozen=True, slots=True)
class Visible:
    """Which conversations' archives may be read besides one's own: created before a moment, in a thread or in any."""

    besides: str
    before: float
    thread: str | None = None
    """None = of any."""


def identify(conversation: str, message: str, text: str) -> str:
    """The uuid of a result: the same whenever the same message of the same conversation says the same.

    Version 5, of the SHA-256 over the three, each with its length, so that no two triples are alike.
    """
    digest = hashlib.sha256()
    for part in (conversation, message, text):
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return str(uuid5(NAMESPACE, digest.hexdigest()))


def short(name: str, most: int = 36) -> str:
    """A name that fits a column: itself, or its uuid where it is longer or cannot be stored as it is."""
    if len(name) <= most and name.isprintable():
        return name
    return identify(name, "", "")


def listed(sources: object) -> tuple[str, ...]:
    """The sources column as texts, whoever wrote it."""
    if not isinstance(sources, Sequence) or isinstance(sources, str):
        return ()
    return tuple(each for each in sources if isinstance(each, str))
