"""What migration asks of a tier: somewhere to put bytes under an id, and to get them back.

    put(id, content, now)    store them; what stood there is replaced
    get(id)                  the bytes as they are now; not an access. Raises KeyError
    id in store              whether it has something there, sound or not
    delete(id, now)          nothing, if it has nothing there
    tokens                   of all that it has, copies that are not cleaned away yet included

A store need not write whole or not at all: an unfinished copy is found by its checksum. And it is never asked whether a
copy is sound: the copy is read back and compared. A store says that it cannot with an OSError or a UserError. Anything
else that it raises is a bug and ends the call; what is journalled by then is enough to go on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol
from zlib import crc32

from ....scenarios.errors import UserError
from ...parts.bounds import at_least
from ..quota import Quota
from .replacing import Replacement

FAULTS = (OSError, UserError)
"""What a store raises when it cannot do what it is asked."""


class TierError(UserError):
    """What was asked of the tiers cannot be done, and nothing has changed. The text says what and why."""


DELAY = 5.0
"""Seconds between a move and the deletion of what was moved (004 §4.3)."""


class Store(Protocol):
    """Where one tier keeps its content."""

    def put(self, id: str, content: bytes, tokens: int, now: float) -> None: ...
    def get(self, id: str) -> bytes: ...
    def __contains__(self, id: str) -> bool: ...
    def delete(self, id: str, now: float) -> None: ...
    @property
    def tokens(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Tier:
    """One tier of a hierarchy: its name, its store, and what it may hold."""

    name: str
    store: Store
    quota: Quota
    delay: float = DELAY
    """Seconds that a copy stays here after its content went elsewhere."""
    durable: bool = True
    """False = what it holds is gone when the process ends. Then the copy that content came from stays where it is."""
    replacement: Replacement | None = None
    """Who leaves. None = the coldest first."""

    def __post_init__(self) -> None:
        at_least(0, delay=self.delay)
        if not self.name or not math.isfinite(self.delay):
            raise ValueError(f"a tier has a name and a finite delay, not {self.name!r} and {self.delay}")


Sum = tuple[int, int]
"""What content must be again to be sound: its bytes, and their CRC-32, which finds every change of one bit."""


def summed(content: bytes) -> Sum:
    """The sum of some content."""
    return len(content), crc32(content)


def sound(store: Store, id: str, wanted: Sum) -> bytes | None:
    """The content that a store has under an id, if it is what it should be."""
    try:
        content = store.get(id)
    except (KeyError, *FAULTS):
        return None
    return content if summed(content) == wanted else None
