"""Make conversations of a business customer with the agent of an online shop: one at length, or a fleet of short ones.

Cases follow one another; the customer corrects what was said and changes decisions. Tool results are JSON of 300 to
4 000 characters full of identifiers.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from random import Random

import msgspec

from ...model import Conversation, Message
from .. import docs_qa
from .cases import Cases
from .desk import Desk
from .world import read_language

CUSTOMERS = 8
"""Conversations of a fleet."""
PAUSE = 97.0
"""Seconds between the first questions of two customers of a fleet."""
HANDBOOK = 8000
"""Characters of a fleet's handbook, at most."""


def make(seed: int, turns: int, language: str) -> Conversation:
    """Return one conversation with this many user turns, in `en` or `zh`: the same arguments give the same bytes."""
    rng = Random(f"customer_service/{seed}/{language}")
    desk = Desk(read_language(language), rng, f"customer_service/{language}-{seed}-{turns}", turns)
    cases = Cases(desk)
    for _ in islice(cases.turns(), turns):
        _ask_unknown(desk)
        desk.quiz.turn_over()
        if desk.hours.pause():
            cases.verified = False
    return desk.script.done()


def fleet(seed: int, turns: int, language: str) -> Iterator[Conversation]:
    """Yield conversations of several customers of one desk within an hour, each with so many user turns.

    All begin with the same tools and the same long handbook, so what one writes to the provider's prompt cache the
    next can read: `meta["shares_cache"]` says so. The same arguments give the same bytes.
    """
    name = f"fleet/{language}-{seed}-{turns}"
    handbook, start = _handbook(seed, language), 0.0
    for customer in range(CUSTOMERS):
        conversation = make(seed * CUSTOMERS + customer, turns, language)
        first = min(message.time for message in conversation.messages if message.time is not None)
        start = start or first
        delay = start + customer * PAUSE - first
        yield msgspec.structs.replace(
            conversation,
            id=f"{name}/{customer}",
            messages=(handbook, *(_delayed(message, delay) for message in conversation.messages)),
            meta={**conversation.meta, "shares_cache": name},
        )


def _ask_unknown(desk: Desk) -> None:
    """Offer a probe about an order or a product that the conversation does not have, if one is due."""
    if desk.quiz.wants("unanswerable"):
        missing = f"{desk.world.shop_code}-{desk.script.now:%y}-{desk.rng.randint(100_000, 103_999)}"
        decoy = desk.rng.choice(desk.language.words["decoys"])
        desk.probe("unanswerable", "none", (), (), missing=missing, decoy=decoy)


def _handbook(seed: int, language: str) -> Message:
    """Return what every agent of a fleet is given: the start of a product's documentation."""
    documentation = docs_qa.make(seed, 1, language)
    page = next(message.text for message in documentation.messages if message.role == "tool")
    return Message("handbook", "system", page[:HANDBOOK].rpartition("\n")[0])


def _delayed(message: Message, seconds: float) -> Message:
    """Return a message that comes so much later."""
    call = message.call
    if call is not None and call.started is not None:
        call = msgspec.structs.replace(call, started=call.started + seconds)
    time = None if message.time is None else message.time + seconds
    return msgspec.structs.replace(message, time=time, call=call)
