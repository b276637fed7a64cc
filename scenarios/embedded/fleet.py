"""Scenario fleet: several customers of one support desk within an hour.

Each has a conversation of its own, of the kind customer_service. All begin with the same tools and the same long
handbook, so what one writes to the provider's prompt cache the next can read: `meta["shares_cache"]` says so.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ..model import Conversation, Message
from . import customer_service, docs_qa

CUSTOMERS = 8
PAUSE = 97.0
"""Seconds between the first questions of two customers."""
HANDBOOK = 8000
"""Characters of the handbook, at most."""


def fleet(seed: int, turns: int, language: str) -> Iterator[Conversation]:
    """The conversations of one desk, each with so many user turns; the same arguments give the same bytes."""
    handbook, began = _handbook(seed, language), 0.0
    for customer in range(CUSTOMERS):
        made = customer_service.make(seed * CUSTOMERS + customer, turns, language)
        first = min(message.time for message in made.messages if message.time is not None)
        began = began or first
        shift = began + customer * PAUSE - first
        name = f"fleet/{language}-{seed}-{turns}/{customer}"
        yield msgspec.structs.replace(
            made,
            id=name,
            messages=(handbook, *(_shifted(message, shift) for message in made.messages)),
            meta={**made.meta, "shares_cache": f"fleet/{language}-{seed}-{turns}"},
        )


def _handbook(seed: int, language: str) -> Message:
    """What every agent of the desk is given: the start of the product's documentation."""
    page = next(message.text for message in docs_qa.make(seed, 1, language).messages if message.role == "tool")
    return Message("handbook", "system", page[:HANDBOOK].rpartition("\n")[0])


def _shifted(message: Message, seconds: float) -> Message:
    """The same, so much later."""
    call = message.call
    if call is not None and call.started is not None:
        call = msgspec.structs.replace(call, started=call.started + seconds)
    time = None if message.time is None else message.time + seconds
    return msgspec.structs.replace(message, time=time, call=call)
