"""How large a cache of messages would have to be: miss ratios by size, of what the recordings of a run go back to.

The accesses are those that really happened (`strategies.tiers.working.recorded`), whatever the run's strategies are.
"""

from __future__ import annotations

import pandas as pd

from ..metrics.caching import most_hits
from ..metrics.value import Missing
from ..scenarios.model import Conversation
from ..strategies.tiers.joined.rules import POLICY
from ..strategies.tiers.working.policies import parse
from ..strategies.tiers.working.recorded import recorded
from ..strategies.tiers.working.trace import Trace, replay
from .loading import Run

SIZES = tuple(1 << power for power in range(11, 18))
"""Tokens: 2K to 128K, the document's."""
POLICIES = (POLICY, "lru", "belady")
"""The tier's own, the usual one, and the one that knows the future."""
BOUND = "bound"
MOST = 3_000
"""Messages whose accesses are looked at: what each refers to takes longest to find."""


def miss_ratios(run: Run) -> pd.DataFrame:
    """A row a policy and size: `policy`, `size` (tokens), `misses` (of `look_ups`), `look_ups`, `conversations`.

    The policy `bound` is what none has less than. Empty where nothing is gone back to.
    """
    traces = [trace for trace in _traces(run) if trace.counted.any()]
    look_ups = sum(int(trace.counted.sum()) for trace in traces)
    rows = [
        (policy, size, sum(_misses(trace, policy, size) for trace in traces) / look_ups, look_ups, len(traces))
        for policy in (*POLICIES, BOUND)
        for size in SIZES
        if look_ups
    ]
    return pd.DataFrame(rows, columns=["policy", "size", "misses", "look_ups", "conversations"])


def _traces(run: Run) -> list[Trace]:
    """Of the first conversations, up to MOST messages; at least of one."""
    messages = run.table("messages")
    made: list[Trace] = []
    read = 0
    for conversation, rows in messages.groupby("conversation", sort=False, observed=True):
        if made and read + len(rows) > MOST:
            break
        made.append(_trace(run.conversation(str(conversation)), dict(zip(rows.id, rows.tokens, strict=True))))
        read += len(rows)
    return made


def _trace(conversation: Conversation, tokens: dict[str, int]) -> Trace:
    return recorded(conversation, lambda message: int(tokens[message.id]))


def _misses(trace: Trace, policy: str, size: int) -> float:
    """Look-ups that miss, counted; of the bound at least so many."""
    look_ups = int(trace.counted.sum())
    if policy == BOUND:
        most = most_hits(trace.ids, trace.tokens, trace.counted, size).hits
        assert not isinstance(most, Missing)
        return look_ups * (1 - most)
    return look_ups - int(replay(trace, parse(policy), size).hits[trace.counted].sum())
