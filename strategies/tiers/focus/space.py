"""How the limit is shared out: system messages, tool schemas, conversation (design document 004 §2.1, §3.2)."""

from __future__ import annotations

from typing import NamedTuple

from ....metrics.tokens import PRIMING


class Used(NamedTuple):
    """Tokens of a request, by what they are for."""

    system: int
    """Its system messages that were said, never cut."""
    functions: int
    """The schemas of the tools offered."""
    conversation: int
    """All other messages, and what was written in place of those left out."""

    @property
    def total(self) -> int:
        """What a provider counts: 3 tokens more prime the reply. Nothing, where nothing is sent."""
        return PRIMING + sum(self) if any(self) else 0


class Space(NamedTuple):
    """The limit and its reserves, in tokens."""

    limit: int
    system: int
    functions: int

    def room(self, system: int, functions: int) -> int:
        """Tokens that the conversation may take, with so many of the system and of tool schemas. May be below 0."""
        return self.limit - self.reserved(system, functions)

    def reserved(self, system: int, functions: int) -> int:
        """What is not the conversation's: the reserves, or what is over them, and what primes the reply."""
        return PRIMING + max(self.system, system) + max(self.functions, functions)
