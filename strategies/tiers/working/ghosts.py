"""Who has left lately: ids and sizes without the items, oldest first, up to so many tokens."""

from __future__ import annotations

from collections import OrderedDict

import msgspec


class Ghosts(msgspec.Struct):
    """A queue of those that left."""

    left: dict[str, int] = msgspec.field(default_factory=OrderedDict)
    """Id and tokens."""
    used: int = 0

    def __post_init__(self) -> None:
        self.left = OrderedDict(self.left)  # its front is cheap to take, that of a dict is not

    def __contains__(self, id: str) -> bool:
        return id in self.left

    def __len__(self) -> int:
        return len(self.left)

    def remember(self, id: str, tokens: int, limit: int) -> None:
        """Note that an item left. The oldest are forgotten where they are over `limit` tokens together."""
        if tokens > limit:
            return
        while self.used + tokens > limit:
            self.forget(next(iter(self.left)))
        self.left[id] = tokens
        self.used += tokens

    def forget(self, id: str) -> bool:
        """Whether it was there; it no longer is."""
        tokens = self.left.pop(id, None)
        self.used -= tokens or 0
        return tokens is not None
