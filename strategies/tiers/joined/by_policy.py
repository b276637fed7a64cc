"""A cache policy of the Working tier as the one that says who leaves a tier of migration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ..migration import Replacement
from ..working.policy import Policy


class _State(msgspec.Struct, forbid_unknown_fields=True):
    policy: dict[str, Any]
    tokens: dict[str, int]
    out: list[str]


class ByPolicy(Replacement):
    """The policy sees what it would see in a cache of its own: accesses, and evictions one by one, with all that it
    remembers of them. Its capacity is the tier's hard limit.

    Between its eviction and its move an item is out: the policy no longer holds it, and the tier still has it. If it is
    used meanwhile the policy takes it back, as if it were loaded. What could not be moved stays out, and so does what a
    policy evicts unasked (`w_tiny_lfu` turns newcomers away): such items are the first to leave.

    Departs from a cache in one thing: room is made before the policy knows for whom. So ARC and 2Q adapt to an item
    that they remember after the eviction that it causes, not before.
    """

    __slots__ = ("_out", "_tokens", "policy")

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._tokens: dict[str, int] = {}
        """Of all that is in the tier."""
        self._out: dict[str, None] = {}
        """Those that are out, the first to leave first."""

    def come(self, id: str, tokens: int, now: float, used: bool) -> None:
        self._tokens[id] = tokens
        found = (self.policy.access if used else self.policy.preload)(id, tokens, now)
        self._out.update(dict.fromkeys(found.evicted))

    def use(self, id: str, now: float) -> None:
        self._out.pop(id, None)
        found = self.policy.access(id, self._tokens[id], now)
        self._out.update(dict.fromkeys(found.evicted))

    def gone(self, id: str) -> None:
        del self._tokens[id]
        if id in self._out:
            del self._out[id]
        else:
            self.policy.remove(id)

    def leaving(self, now: float, cold: bool) -> Iterator[str]:
        """A policy knows who is to go first, not who is cold: without need nobody leaves."""
        if cold:
            return
        yield from tuple(self._out)
        while evicted := self.policy.expel(now):
            self._out.update(dict.fromkeys(evicted))
            yield from evicted

    def state(self) -> Any:
        return msgspec.to_builtins(_State(self.policy.state(), self._tokens, list(self._out)))

    def restore(self, state: Any) -> None:
        try:
            found = msgspec.convert(state, _State)
        except msgspec.ValidationError as error:
            raise ValueError(f"this is no state of a policy: {error}") from None
        policy = self.policy.restored(found.policy)
        if policy.tokens.keys() | set(found.out) != found.tokens.keys() or policy.tokens.keys() & set(found.out):
            raise ValueError("this is no state of a policy: its items are not those of its tier")
        self.policy, self._tokens, self._out = policy, found.tokens, dict.fromkeys(found.out)
