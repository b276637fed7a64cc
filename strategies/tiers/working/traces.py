"""Traces that are made: seeded, so that the same name and seed give the same accesses.

Of design document 004: `mem_002*` are its acceptance load in the three ways in which "80–20" can be read, `load_*` one
load for each profile of its hybrid score (it names the profiles and describes no load: what they are is said at each).
The others are what tells cache policies apart. Sizes are lognormal, 200 tokens on average, as the document has it
(10 000 messages, about 2M tokens).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from ....metrics.language import words
from ....metrics.references import references
from ....metrics.tfidf import Scores, TfIdf
from ....scenarios.model import Conversation, Message
from .trace import Ints, Likeness, Trace

MESSAGES, ACCESSES = 10_000, 1_000
ITEMS, LENGTH = 2_000, 20_000
MEAN = 200
Generator = np.random.Generator
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def mem_002(seed: int) -> Trace:
    """10 000 messages arrive; then 1000 look-ups, 80 % of them to a fifth of the messages, chosen by chance."""
    chance = _chance(1, seed)
    return _acceptance("mem_002", chance, chance.permutation(MESSAGES), _fifth())


def mem_002_recent(seed: int) -> Trace:
    """The same, but the fifth are the newest messages."""
    chance = _chance(1, seed)
    return _acceptance("mem_002_recent", chance, np.arange(MESSAGES)[::-1], _fifth())


def mem_002_pareto(seed: int) -> Trace:
    """The same at every scale: of the 80 %, 80 % to a fifth of the fifth, and so on (Gray et al., SIGMOD 1994)."""
    chance = _chance(1, seed)
    below = (np.arange(MESSAGES + 1) / MESSAGES) ** (np.log(0.8) / np.log(0.2))
    return _acceptance("mem_002_pareto", chance, chance.permutation(MESSAGES), np.diff(below))


def zipf(seed: int, length: int = LENGTH, items: int = ITEMS, exponent: float = 1.0) -> Trace:
    """Popularity by Zipf's law, the same throughout."""
    chance = _chance(2, seed)
    made = _plain("zipf", chance, _zipf(chance, length, items, exponent), items)
    return replace(made, popularity=_weights(items, exponent))


def scan(seed: int, length: int = LENGTH, items: int = ITEMS) -> Trace:
    """Zipf, and every fifth access is to something that is never used again."""
    chance = _chance(3, seed)
    ids = _zipf(chance, length, items)
    once = np.flatnonzero(chance.random(length) < 0.2)
    ids[once] = items + np.arange(len(once))
    return _plain("scan", chance, ids, items + len(once))


def loop(seed: int, length: int = LENGTH, items: int = 1_000) -> Trace:
    """The same items in the same order, again and again: LRU's worst case where they do not all fit."""
    return _plain("loop", _chance(4, seed), np.arange(length) % items, items)


def shifting(seed: int, length: int = LENGTH, items: int = ITEMS, stretches: int = 10) -> Trace:
    """Zipf, and who is popular is drawn anew for each stretch."""
    chance = _chance(5, seed)
    ids = _zipf(chance, length, items)
    for stretch in np.array_split(np.arange(length), stretches):
        ids[stretch] = chance.permutation(items)[ids[stretch]]
    return _plain("shifting", chance, ids, items)


def pairs(seed: int, length: int = LENGTH, items: int = ITEMS) -> Trace:
    """Zipf, each item again within 20 accesses: a burst that says nothing of the time after it."""
    chance = _chance(6, seed)
    return _plain("pairs", chance, twice(chance, _zipf(chance, length // 2, items)), items)


def partners(seed: int, length: int = LENGTH, items: int = ITEMS) -> Trace:
    """Nearly uniform, but after each item comes its partner, nine times of ten: what a preload can learn."""
    chance = _chance(7, seed)
    partner = chance.permutation(items)
    first = _zipf(chance, length // 2, items, 0.3)
    second = np.where(chance.random(len(first)) < 0.9, partner[first], chance.integers(0, items, len(first)))
    return _plain("partners", chance, np.column_stack([first, second]).ravel(), items)


def load_conversation(seed: int) -> Trace:
    """Messages arrive one by one, and each looks up two earlier ones: mostly among the last 40, one of ten anywhere."""
    chance = _chance(8, seed)
    return _load("load_conversation", chance, *_conversation(chance, LENGTH // 3))


def load_knowledge(seed: int) -> Trace:
    """Knowledge is asked for again and again (Zipf 0.9 over 1500 points), between chat that is used once (a fifth)."""
    chance = _chance(9, seed)
    return _load("load_knowledge", chance, *_knowledge(chance, LENGTH))


def load_context(seed: int) -> Trace:
    """40 topics of 60 messages. A topic lasts 50 accesses on average; all its messages are equally likely."""
    chance = _chance(10, seed)
    return _load("load_context", chance, *_context(chance, LENGTH))


def load_default(seed: int) -> Trace:
    """A third of each of the other loads, by turns of 100 accesses."""
    chance = _chance(11, seed)
    third = LENGTH // 3
    parts: list[tuple[Ints, Flags, Ints]] = []
    first = 0
    for part in (_conversation(chance, third // 3), _knowledge(chance, third), _context(chance, third)):
        ids, counted, topics = part
        parts.append((ids + first, counted, topics + 1000 * len(parts)))
        first += len(topics)
    turns = np.argsort(np.concatenate([np.arange(len(ids)) // 100 for ids, _, _ in parts]), kind="stable")
    ids, counted, topics = (np.concatenate(each) for each in zip(*parts, strict=True))
    return _load("load_default", chance, ids[turns], counted[turns], topics)


def twice(chance: Generator, ids: Ints, within: int = 20) -> Ints:
    """Each access, and the same item again at most `within` accesses later."""
    place = 2 * np.arange(len(ids))
    order = np.argsort(np.concatenate([place, place + chance.integers(1, within, len(ids))]), kind="stable")
    return np.concatenate([ids, ids])[order]


TRACES: dict[str, Callable[[int], Trace]] = {
    make.__name__: make
    for make in (
        *(mem_002, mem_002_recent, mem_002_pareto),
        *(load_default, load_conversation, load_knowledge, load_context),
        *(zipf, scan, loop, shifting, pairs, partners),
    )
}
"""By name; each makes the trace of a seed."""


def _chance(stream: int, seed: int) -> Generator:
    return np.random.default_rng([stream, seed])


def _sizes(chance: Generator, items: int) -> Ints:
    """Tokens of messages: lognormal, a median of 140, 200 on average, at least 4."""
    return np.maximum(np.rint(chance.lognormal(np.log(MEAN) - 0.36, 0.85, items)), 4).astype(np.int64)


def _zipf(chance: Generator, length: int, items: int, exponent: float = 1.0) -> Ints:
    return chance.choice(items, length, p=_weights(items, exponent)).astype(np.int64)


def _weights(items: int, exponent: float) -> Floats:
    weights = np.arange(1, items + 1) ** -exponent
    made: Floats = weights / weights.sum()
    return made


def _fifth() -> Floats:
    """80 % for the first fifth, evenly."""
    hot = MESSAGES // 5
    return np.repeat([0.8 / hot, 0.2 / (MESSAGES - hot)], [hot, MESSAGES - hot])


def _acceptance(name: str, chance: Generator, order: Ints, popularity: Floats) -> Trace:
    """All messages arrive; then look-ups, the first of the order with the first popularity."""
    asked = order[chance.choice(MESSAGES, ACCESSES, p=popularity)]
    ids = np.concatenate([np.arange(MESSAGES), asked])
    made = _trace(name, chance, ids, np.arange(len(ids)) >= MESSAGES, MESSAGES, None)
    return replace(made, popularity=popularity[np.argsort(order)])


def _plain(name: str, chance: Generator, ids: Ints, items: int) -> Trace:
    return _trace(name, chance, ids, np.ones(len(ids), np.bool_), items, None)


def _trace(name: str, chance: Generator, ids: Ints, counted: Flags, items: int, like: Likeness | None) -> Trace:
    sizes = _sizes(chance, items)
    return Trace(name, ids.astype(np.int64), sizes, np.arange(len(ids), dtype=np.float64), counted, like)


def _conversation(chance: Generator, messages: int) -> tuple[Ints, Flags, Ints]:
    """Arrivals and look-ups, which of them count, and the topic of each item."""
    near = chance.geometric(1 / 12, (messages, 2))
    far = (chance.random((messages, 2)) * np.arange(messages)[:, None]).astype(np.int64)
    new = np.arange(messages)[:, None]
    back = np.where(chance.random((messages, 2)) < 0.1, far, np.maximum(new - near, 0))
    ids = np.column_stack([new, back]).ravel()
    return ids, np.tile([False, True, True], messages), np.arange(messages) // 50


def _knowledge(chance: Generator, length: int) -> tuple[Ints, Flags, Ints]:
    points = 1_500
    ids = chance.permutation(points)[_zipf(chance, length, points, 0.9)]
    once = np.flatnonzero(chance.random(length) < 0.2)
    ids[once] = points + np.arange(len(once))
    return ids, np.ones(length, np.bool_), np.arange(points + len(once)) % 40


def _context(chance: Generator, length: int) -> tuple[Ints, Flags, Ints]:
    topics, each = 40, 60
    begins = chance.random(length) < 1 / 50
    drawn = chance.integers(0, topics, length)
    topic = drawn[np.maximum.accumulate(np.where(begins, np.arange(length), 0))]
    return topic * each + chance.integers(0, each, length), np.ones(length, np.bool_), np.arange(topics * each) // each


def _load(name: str, chance: Generator, ids: Ints, counted: Flags, topics: Ints) -> Trace:
    """With a likeness as an embedder would see it: messages of a topic are near each other, with much noise."""
    _, topic = np.unique(topics, return_inverse=True)
    centres = chance.normal(size=(int(topic.max()) + 1, 32))
    vectors = centres[topic] + 0.7 * chance.normal(size=(len(topic), 32))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return _trace(name, chance, ids, counted, len(topic), lambda at: (vectors @ vectors[ids[at]] + 1) / 2)


def recorded(conversation: Conversation, count: Callable[[Message], int], seconds: bool = False) -> Trace:
    """The trace of one conversation; items are its messages by their places. `count` gives a message's tokens.

    The clock is the number of the access; with `seconds` it is the recorded time, where a message without one has that
    of the message before, and nothing goes back.
    """
    messages = conversation.messages
    ids: list[int] = []
    counted: list[bool] = []
    times: list[float] = []
    looked_up = {at: list(each) for at, each in groupby(references(conversation), key=lambda reference: reference.at)}
    now = 0.0
    for at, message in enumerate(messages):
        now = max(now, message.time or now)
        of_message = [each.to for each in looked_up.get(at, ()) if each.kind != "probe"]
        of_probes = [each.to for each in looked_up.get(at, ()) if each.kind == "probe"]
        arrives = [] if message.role == "system" else [at]
        ids += [*of_message, *arrives, *of_probes]
        counted += [True] * len(of_message) + [False] * len(arrives) + [True] * len(of_probes)
        times += [now] * (len(ids) - len(times))
    clock = np.array(times if seconds else range(len(ids)), np.float64)
    sizes = np.array([count(message) for message in messages], np.int64)
    return Trace(
        conversation.id,
        np.array(ids, np.int64),
        sizes,
        clock,
        np.array(counted, np.bool_),
        _likeness(conversation, ids),
    )


def _likeness(conversation: Conversation, ids: list[int]) -> Likeness:
    """TF-IDF cosine of every message with the one that is accessed. The index is made when it is first asked for."""
    said: list[list[str]] = []
    index = TfIdf()

    def likeness(at: int) -> Scores:
        if not said:
            said.extend(words(message.text) for message in conversation.messages)
            index.add(said)
        return index.cosine(said[ids[at]])

    return likeness
