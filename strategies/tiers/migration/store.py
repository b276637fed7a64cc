"""The interfaces that migration needs from a tier: a store of bytes by id, and a replacement policy.

    put(id, content, tokens, now)   store content, replacing what is there
    get(id)                         return the content as it is now; not an access. Raises KeyError
    id in store                     whether there is content, intact or not
    delete(id, now)                 delete content, if there is any
    tokens                          of all content, with copies that are not deleted yet

A store need not write atomically: an unfinished copy fails its checksum. Nor is it trusted with a copy: the copy is
read back and compared. A store reports failure with an OSError or a UserError. Any other exception is a bug and ends
the call; the journal has enough by then to continue.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol
from zlib import crc32

from ctxbench.scenarios.errors import UserError

from ...parts.units import at_least
from ..quota import Quota

FAULTS = (OSError, UserError)
"""Exceptions with which a store reports failure."""


class TierError(UserError):
    """The tiers cannot do a request, and nothing has changed. The text says which and why."""


DELAY = 5.0
"""Seconds between a move and the deletion of what was moved (004 §4.3)."""


class ContentStore(Protocol):
    """Storage of one tier."""

    def put(self, id: str, content: bytes, tokens: int, now: float) -> None: ...
    def get(self, id: str) -> bytes: ...
    def __contains__(self, id: str) -> bool: ...
    def delete(self, id: str, now: float) -> None: ...
    @property
    def tokens(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Tier:
    """One tier of a hierarchy: its name, its store and its quota."""

    name: str
    store: ContentStore
    quota: Quota
    delay: float = DELAY
    """Seconds that a copy stays here after its content moved elsewhere."""
    durable: bool = True
    """False = content ends with the process. Then the copy in a durable tier that it came from stays."""
    replacement: Replacement | None = None
    """Policy that chooses victims. None = the coldest first."""

    def __post_init__(self) -> None:
        at_least(0, delay=self.delay)
        if not self.name or not math.isfinite(self.delay):
            raise ValueError(f"a tier has a name and a finite delay, not {self.name!r} and {self.delay}")


Sum = tuple[int, int]
"""Length of intact content, and its CRC-32, which finds every change of one bit."""


def content_sum(content: bytes) -> Sum:
    """Return the length and CRC-32 of content."""
    return len(content), crc32(content)


def read_sound(store: ContentStore, id: str, wanted: Sum) -> bytes | None:
    """Return the content of an id, or None if it is missing or damaged."""
    try:
        content = store.get(id)
    except (KeyError, *FAULTS):
        return None
    return content if content_sum(content) == wanted else None


class Replacement(Protocol):
    """A policy that chooses a tier's victims. It is informed of arrivals, uses and departures."""

    def come(self, id: str, tokens: int, now: float, used: bool) -> None:
        """Take note of an arrival. `used` is False if the item came because its use was predicted."""
        ...

    def use(self, id: str, now: float) -> None:
        """Take note of a use."""
        ...

    def gone(self, id: str) -> None:
        """Take note of a departure."""
        ...

    def leaving(self, now: float, cold: bool) -> Iterator[str]:
        """Yield victims in order, each chosen when it is needed.

        A victim that cannot be moved stays, and is yielded again the next time unless it is used. With `cold`, yield
        only items that are not worth their place even if there is room.
        """
        ...

    def state(self) -> Any:
        """Return the state as plain data."""
        ...

    def restore(self, state: Any) -> None:
        """Restore a state. Raises ValueError and changes nothing."""
        ...
