"""Scenario kind customer_service: one long conversation of a business customer with the agent of an online shop.

Cases follow one another: deliveries, returns, damage, addresses, invoices, repairs, credits. The customer corrects
what was said and changes decisions; tool results are JSON of 300 to 4 000 characters full of identifiers.
"""

from __future__ import annotations

from itertools import islice
from random import Random

from ...model import Conversation
from .cases import Cases
from .desk import Desk
from .en import ENGLISH
from .zh import CHINESE


def make(seed: int, turns: int, language: str) -> Conversation:
    """One conversation with this many user turns, in `en` or `zh`: the same arguments give the same bytes."""
    rng = Random(f"customer_service/{seed}/{language}")
    desk = Desk({"en": ENGLISH, "zh": CHINESE}[language], rng, f"customer_service/{language}-{seed}-{turns}", turns)
    cases = Cases(desk)
    for _ in islice(cases.turns(), turns):
        _ask_nothing_known(desk)
        desk.quiz.turn_over()
        if desk.hours.pause():
            desk.verified = False
    return desk.script.done()


def _ask_nothing_known(desk: Desk) -> None:
    if desk.quiz.wants("unanswerable"):
        missing = f"{desk.world.shop_code}-{desk.script.now:%y}-{desk.rng.randint(100_000, 103_999)}"
        desk.probe("unanswerable", "none", (), (), missing=missing, decoy=desk.rng.choice(desk.language.decoys))
