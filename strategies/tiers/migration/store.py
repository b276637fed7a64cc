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
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol
from zlib import crc32

from ....scenarios.errors import UserError
from ...parts.units import at_least
from ..quota import Quota

FAULTS = (OSError, UserError)
"""What a store raises when it cannot do what it is asked."""


class TierError(UserError):
    """What was asked of the tiers cannot be done, and nothing has changed. The text says what and why."""


DELAY = 5.0
"""Seconds between a move and the deletion of what was moved (004 §4.3)."""


class ContentStore(Protocol):
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
    store: ContentStore
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


def sound(store: ContentStore, id: str, wanted: Sum) -> bytes | None:
    """The content that a store has under an id, if it is what it should be."""
    try:
        content = store.get(id)
    except (KeyError, *FAULTS):
        return None
    return content if summed(content) == wanted else None


class Replacement(Protocol):
    """Who leaves a tier. It is told of all that comes into the tier, is used there, and is gone from it."""

    def come(self, id: str, tokens: int, now: float, used: bool) -> None:
        """An item is in the tier now. `used`: because somebody wanted it, not because somebody might."""
        ...

    def use(self, id: str, now: float) -> None:
        """An item of the tier is used."""
        ...

    def gone(self, id: str) -> None:
        """An item is not in the tier any more."""
        ...

    def leaving(self, now: float, cold: bool) -> Iterator[str]:
        """Who should leave, the first first; each is chosen when it is asked for. Whoever cannot be moved stays, and is
        named again the next time, unless it is used. `cold`: only what is not worth its place even if there is room.
        """
        ...

    def state(self) -> Any:
        """What it remembers, as plain data."""
        ...

    def restore(self, state: Any) -> None:
        """Remember that instead. Raises ValueError, and then nothing has changed."""
        ...
