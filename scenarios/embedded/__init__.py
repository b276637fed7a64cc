"""Scenarios that come with ctxbench, generated from a seed or written by hand: same seed, same bytes.

    for conversation in scenario("coding", turns=12):
        …

Conversations of one kind come from one generator, whatever their language, and traps from one list: they are one
independent unit, `meta["unit"]` (`scenarios/model.py`). A generator may name another one itself. Those of `questions`
were written one by one, and have none.

A kind is a subject of conversation, in English and Chinese; a scenario is a named set of conversations. Conversations
are generated one by one on demand, and a kind's module is imported for its first conversation.

An accepted answer of a probe stands word for word in its evidence, unless it is worked out from it (a sum, a number of
days): the ids of computed probes are in `meta["computed_probes"]`, with spaces between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import chain, count, islice
from random import Random

import msgspec

from ..errors import SpecError
from ..model import Conversation
from ..spec import nearest

LANGUAGES = ("en", "zh")
Maker = Callable[[int, int, str], Conversation]
"""Function of (seed, user turns, language) that returns a conversation."""


def _kind(name: str) -> Maker:
    def make(seed: int, turns: int, language: str) -> Conversation:
        conversation: Conversation = import_module(f".{name}", __name__).make(seed, turns, language)
        # The two languages of a seed are twins; another seed draws another world, people and order of events.
        return msgspec.structs.replace(conversation, meta={**conversation.meta, "unit": f"{name}-{seed}"})

    return make


KINDS: dict[str, Maker] = {
    name: _kind(name) for name in ("docs_qa", "coding", "customer_service", "assistant", "research", "friends")
}
SMOKE_TURNS = {"docs_qa": 1, "coding": 2, "customer_service": 4, "assistant": 4, "research": 1, "friends": 12}
STANDARD_TURNS = {"docs_qa": 5, "coding": 7, "customer_service": 45, "assistant": 40, "research": 8, "friends": 240}
"""Median of the user turns of a conversation in `standard`, by kind: 12,000 to 40,000 tokens."""
STANDARD_SIZE = 8
"""Conversations of each kind in `standard`, every second one in Chinese, no two with the same seed."""
SPREAD = 0.5
"""Standard deviation of the logarithm of the user turns in `standard`."""
FLEET_TURNS = 8
KIND_TURNS = 40
"""User turns of a scenario that is a single kind."""

SCENARIOS: dict[str, str] = {
    "smoke": "every kind in English and Chinese with a few turns, and the traps but the enormous one; seconds",
    "standard": "48 conversations of all kinds in English and Chinese, as long as real ones: 1.5 million tokens",
    "questions": "10 conversations of 700 to 2100 tokens, 130 questions, English and Chinese: for small local models",
    "traps": "small conversations that break context libraries, each for one reason",
    "docs_qa": "questions on a product, answered from its documentation",
    "coding": "a coding agent in a repository: files read, edited, tests run",
    "customer_service": "a support desk with orders, tickets and policies that change",
    "assistant": "a personal assistant over months: preferences, dates and prices that change",
    "fleet": "customers of one support desk within an hour: they share tools, handbook and prompt cache",
    "research": "a literature review: sources found, compared, written up",
    "friends": "two friends who write to each other for months: who did what, when, and what changed since",
    "mem_001": "the acceptance scenarios of the memory tiers: messages of 200 tokens come in one by one",
    "mem_002": "10 000 messages, 2 million tokens, then 1000 questions, 80 % of them about a fifth of the messages",
    "mem_003": "100 000 tokens of dialogue, to be archived",
}
"""Names that `scenario` takes, each with a one-line description."""
SEEDED = (*KINDS, "standard", "fleet")
"""Scenarios of which every seed makes other conversations, so that there can be any number of them."""


def scenario(
    name: str, turns: int | None = None, seed: int = 0, conversations: int | None = None
) -> Iterator[Conversation]:
    """Return the conversations of a scenario, in a fixed order, each made when it is asked for.

    `turns` is the number of user turns per generated conversation, instead of the scenario's own number; the traps and
    `questions` have neither length nor seed. `conversations` is how many there are, instead of those of one seed: they
    come from this seed, the one after it, and so on. Raises SpecError for a name that is not in SCENARIOS, for less
    than one turn or conversation, and for a number of conversations of a scenario that is not in SEEDED.
    """
    if name not in SCENARIOS:
        raise SpecError(f"unknown scenario {name!r}{nearest(name, SCENARIOS)}; there are {', '.join(SCENARIOS)}")
    if turns is not None and turns < 1:
        raise SpecError(f"a conversation of {turns} turns: ask for 1 or more")
    if conversations is None:
        return map(_in_unit, _conversations(name, turns, seed))
    if name not in SEEDED:
        raise SpecError(f"{name}: how many conversations it has is fixed; any number is made of {', '.join(SEEDED)}")
    if conversations < 1:
        raise SpecError(f"{conversations} conversations: ask for 1 or more")
    every = chain.from_iterable(_conversations(name, turns, each) for each in count(seed))
    return map(_in_unit, islice(every, conversations))


def _in_unit(conversation: Conversation) -> Conversation:
    kind = conversation.id.partition("/")[0]
    if kind == "questions" or "unit" in conversation.meta:
        return conversation
    return msgspec.structs.replace(conversation, meta={**conversation.meta, "unit": kind})


def _conversations(name: str, turns: int | None, seed: int) -> Iterator[Conversation]:
    match name:
        case "smoke":
            yield from _kinds(SMOKE_TURNS, turns, seed)
            yield from (trap for trap in _traps() if trap.id != "traps/enormous_result")
        case "standard":
            yield from _standard(turns, seed)
        case "questions":
            from .questions import make_all

            yield from make_all()
        case "traps":
            yield from _traps()
        case "fleet":
            from .customer_service import fleet

            for language in LANGUAGES:
                yield from fleet(seed, FLEET_TURNS if turns is None else turns, language)
        case "mem_001" | "mem_002" | "mem_003":
            from .memory import memory

            yield from memory(name, seed, turns, LANGUAGES)
        case _:
            yield from _kinds({name: KIND_TURNS}, turns, seed)


def _kinds(lengths: dict[str, int], turns: int | None, seed: int) -> Iterator[Conversation]:
    for name, default in lengths.items():
        for language in LANGUAGES:
            yield KINDS[name](seed, default if turns is None else turns, language)


def _standard(turns: int | None, seed: int) -> Iterator[Conversation]:
    for name, median in STANDARD_TURNS.items():
        # A text seeds by its SHA-512, which is the same in every process; a number made by `hash` would not be.
        rng = Random(f"standard/{name}/{seed}")
        for number in range(STANDARD_SIZE):
            length = max(2, round(median * rng.lognormvariate(0, SPREAD)))
            language = LANGUAGES[number % len(LANGUAGES)]
            # Seed 0 takes the numbers 0 to 7, seed 1 those from 8: no conversation of one set is in the other.
            yield KINDS[name](seed * STANDARD_SIZE + number, length if turns is None else turns, language)


def _traps() -> Iterator[Conversation]:
    from .traps import TRAPS

    return (trap() for trap in TRAPS)
