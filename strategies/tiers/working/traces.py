"""Traces of accesses, generated or recorded, and their replay under a cache policy.

    result = replay(zipf(seed=0), parse("lru_k"), capacity=131_072)
    rates(result.hits, trace.tokens, trace.counted)          # metrics.hit_rates

Generated traces are seeded. `mem_002*` are the acceptance load of design document 004 in the three ways in which its
"80–20" can be read. `load_*` are ours, one for each profile of its hybrid score. The others tell cache policies apart.
Sizes are lognormal, 200 tokens on average, as in the document (10 000 messages, about 2M tokens).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from ctxbench.metrics.grounding import references
from ctxbench.metrics.language import words
from ctxbench.metrics.tfidf import Scores, TfIdf
from ctxbench.scenarios.model import Conversation, Message

from .belady import Belady
from .hybrid import Hybrid
from .policy import Policy

Ints = NDArray[np.int64]

Flags = NDArray[np.bool_]

Likeness = Callable[[int], NDArray[np.float64]]


@dataclass(frozen=True)
class Trace:
    """Accesses to items, which are numbered from 0."""

    name: str
    ids: Ints  # item of each access
    sizes: Ints  # tokens of each item
    counted: Flags
    """Whether each access is a look-up. Other accesses fill the cache or are messages that arrive."""
    likeness: Likeness | None = None
    """Similarity of every item to the context at an access, 0 to 1, for the hybrid score."""
    popularity: NDArray[np.float64] | None = None
    """Probability of each item at a look-up, if look-ups are independent of each other."""

    @cached_property
    def tokens(self) -> Ints:
        return self.sizes[self.ids]

    @cached_property
    def names(self) -> list[str]:
        texts = [str(item) for item in range(len(self.sizes))]
        return [texts[item] for item in self.ids.tolist()]


@dataclass(frozen=True, slots=True)
class TraceReplay:
    """Result of a trace under a cache."""

    hits: Flags
    evictions: int
    loaded: int  # tokens loaded on counted misses, items that the cache refused included


def replay(trace: Trace, policy: Policy, capacity: int) -> TraceReplay:
    """Replay a trace with an empty cache."""
    cache = policy.sized(capacity)
    if isinstance(cache, Belady):
        cache.foresee(trace.names)
    of_context, likeness = None, np.zeros(0)
    if isinstance(cache, Hybrid) and cache.weights[2] and trace.likeness is not None:
        of_context, cache.similarity = trace.likeness, lambda id: float(likeness[int(id)])
    hits = np.zeros(len(trace.ids), np.bool_)
    evictions = 0
    for at, (id, tokens) in enumerate(zip(trace.names, trace.tokens.tolist(), strict=True)):
        # Similarities are read by evictions alone, so hits need not compute them.
        if of_context is not None and id not in cache.tokens:
            likeness = of_context(at)
        access = cache.access(id, tokens, float(at))
        hits[at] = access.hit
        evictions += len(access.evicted)
    return TraceReplay(hits, evictions, int(trace.tokens[trace.counted & ~hits].sum()))


MESSAGES, ACCESSES = 10_000, 1_000
ITEMS, LENGTH = 2_000, 20_000
MEAN = 200
Generator = np.random.Generator
Floats = NDArray[np.float64]
TRACES: dict[str, Callable[..., Trace]] = {}  # generators by name: each makes the trace of a seed


def generator(stream: int) -> Callable[[Callable[..., Trace]], Callable[..., Trace]]:
    """Return a decorator that enters a generator into `TRACES`, where it takes a seed for its random numbers."""

    def decorate(make: Callable[..., Trace]) -> Callable[..., Trace]:
        @wraps(make)
        def seeded(seed: int, *sizes: int, **named: int) -> Trace:
            return replace(make(np.random.default_rng([stream, seed]), *sizes, **named), name=make.__name__)

        TRACES[make.__name__] = seeded
        return seeded

    return decorate


@generator(1)
def mem_002(chance: Generator, accesses: int = ACCESSES) -> Trace:
    """Generate 10 000 arriving messages, then 1000 look-ups, 80 % of them to a random fifth of the messages."""
    return _acceptance(chance, chance.permutation(MESSAGES), _fifth(), accesses)


@generator(1)
def mem_002_recent(chance: Generator) -> Trace:
    """Generate `mem_002` with the newest messages as the popular fifth."""
    return _acceptance(chance, np.arange(MESSAGES)[::-1], _fifth())


@generator(1)
def mem_002_pareto(chance: Generator) -> Trace:
    """Generate `mem_002` with 80–20 at every scale: 80 % of the 80 % go to a fifth of the fifth, and so on.

    Source: Gray et al., SIGMOD 1994.
    """
    # The share of look-ups to the first x of the messages is x ** (log 0.8 / log 0.2), an exponent of 0.139: x = 0.2
    # has 0.8, x = 0.04 has 0.64. Its differences are the probabilities of the single messages.
    below = (np.arange(MESSAGES + 1) / MESSAGES) ** (np.log(0.8) / np.log(0.2))
    return _acceptance(chance, chance.permutation(MESSAGES), np.diff(below))


@generator(11)
def load_default(chance: Generator) -> Trace:
    """Generate a third of each of the other loads, in turns of 100 accesses."""
    third = LENGTH // 3
    parts: list[tuple[Ints, Flags, Ints]] = []
    first = 0
    for part in (_conversation(chance, third // 3), _knowledge(chance, third), _context(chance, third)):
        ids, counted, topics = part
        parts.append((ids + first, counted, topics + 1000 * len(parts)))
        first += len(topics)
    turns = np.argsort(np.concatenate([np.arange(len(ids)) // 100 for ids, _, _ in parts]), kind="stable")
    ids, counted, topics = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return _load(chance, ids[turns], counted[turns], topics)


@generator(8)
def load_conversation(chance: Generator) -> Trace:
    """Generate arriving messages that each look up two earlier ones: mostly of the last 40, one of ten anywhere."""
    return _load(chance, *_conversation(chance, LENGTH // 3))


@generator(9)
def load_knowledge(chance: Generator) -> Trace:
    """Generate repeated look-ups of knowledge (Zipf 0.9 over 1500 points), a fifth of them chat that is used once."""
    return _load(chance, *_knowledge(chance, LENGTH))


@generator(10)
def load_context(chance: Generator) -> Trace:
    """Generate look-ups in 40 topics of 60 messages. A topic lasts 50 accesses on average; its messages are equal."""
    return _load(chance, *_context(chance, LENGTH))


@generator(2)
def zipf(chance: Generator, length: int = LENGTH, items: int = ITEMS) -> Trace:
    """Generate accesses by Zipf's law; popularity does not change."""
    return replace(_trace(chance, _zipf(chance, length, items), items), popularity=_weights(items, 1.0))


@generator(3)
def scan(chance: Generator, length: int = LENGTH, items: int = ITEMS) -> Trace:
    """Generate Zipf accesses in which every fifth is to an item that is never used again."""
    ids = _zipf(chance, length, items)
    once = np.flatnonzero(chance.random(length) < 0.2)
    ids[once] = items + np.arange(len(once))
    return _trace(chance, ids, items + len(once))


def _zipf(chance: Generator, length: int, items: int, exponent: float = 1.0) -> Ints:
    return chance.choice(items, length, p=_weights(items, exponent)).astype(np.int64)


def _weights(items: int, exponent: float) -> Floats:
    weights = np.arange(1, items + 1) ** -exponent
    probabilities: Floats = weights / weights.sum()
    return probabilities


def _fifth() -> Floats:
    """Return probabilities: 80 % for the first fifth, evenly."""
    hot = MESSAGES // 5
    return np.repeat([0.8 / hot, 0.2 / (MESSAGES - hot)], [hot, MESSAGES - hot])


def _acceptance(chance: Generator, order: Ints, popularity: Floats, accesses: int = ACCESSES) -> Trace:
    """Generate the arrival of all messages, then look-ups; the first of `order` has the first popularity."""
    looked_up = order[chance.choice(MESSAGES, accesses, p=popularity)]
    ids = np.concatenate([np.arange(MESSAGES), looked_up])
    trace = _trace(chance, ids, MESSAGES, np.arange(len(ids)) >= MESSAGES)
    # `popularity` is by rank and `order` gives the message of each rank; argsort inverts it to each message's rank.
    return replace(trace, popularity=popularity[np.argsort(order)])


def _trace(
    chance: Generator, ids: Ints, items: int, counted: Flags | None = None, like: Likeness | None = None
) -> Trace:
    """Return a trace of these accesses, all of them look-ups unless `counted` says otherwise.

    Sizes are lognormal, a median of 140 tokens, 200 on average, at least 4.
    """
    # The mean of a lognormal is exp(μ + σ²/2), and 0.85² / 2 = 0.36: so the mean is 200 and the median 200 / e^0.36 =
    # 140.
    drawn = np.rint(chance.lognormal(np.log(MEAN) - 0.36, 0.85, items))
    counted = np.ones(len(ids), np.bool_) if counted is None else counted
    return Trace("", ids.astype(np.int64), np.maximum(drawn, 4).astype(np.int64), counted, like)


def _conversation(chance: Generator, messages: int) -> tuple[Ints, Flags, Ints]:
    """Generate arrivals and look-ups, whether each counts, and the topic of each item."""
    # Two columns, one a look-up. Mean 12 back: 1 - (11/12)^40 = 97 % lie within the last 40 messages.
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
    topics, size = 40, 60
    begins = chance.random(length) < 1 / 50
    drawn = chance.integers(0, topics, length)
    # Each access takes the topic drawn at the last place where one began; accumulate carries that place forward.
    topic = drawn[np.maximum.accumulate(np.where(begins, np.arange(length), 0))]
    return topic * size + chance.integers(0, size, length), np.ones(length, np.bool_), np.arange(topics * size) // size


def _load(chance: Generator, ids: Ints, counted: Flags, topics: Ints) -> Trace:
    """Add similarities as an embedder would see them: messages of a topic are near each other, with much noise."""
    _, topic = np.unique(topics, return_inverse=True)
    # Noise of 0.7 a coordinate: the cosine of two messages of a topic is about 1 / (1 + 0.49) = 0.67, of others 0.
    centres = chance.normal(size=(int(topic.max()) + 1, 32))
    vectors = centres[topic] + 0.7 * chance.normal(size=(len(topic), 32))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return _trace(chance, ids, len(topic), counted, lambda at: (vectors @ vectors[ids[at]] + 1) / 2)


def recorded(conversation: Conversation, count: Callable[[Message], int]) -> Trace:
    """Return the trace of one conversation; its items are the messages by their places.

    `count` gives the tokens of a message.
    """
    messages = conversation.messages
    ids: list[int] = []
    counted: list[bool] = []
    looked_up = {at: list(group) for at, group in groupby(references(conversation), key=lambda reference: reference.at)}
    for at, message in enumerate(messages):
        # What a message goes back to is looked up to write it, so before it arrives; a probe asks afterwards.
        by_message = [reference.to for reference in looked_up.get(at, ()) if reference.kind != "probe"]
        by_probes = [reference.to for reference in looked_up.get(at, ()) if reference.kind == "probe"]
        # System messages are in every prompt and never in a cache.
        arrival = [] if message.role == "system" else [at]
        ids += [*by_message, *arrival, *by_probes]
        counted += [True] * len(by_message) + [False] * len(arrival) + [True] * len(by_probes)
    texts: list[Sequence[str]] = []
    index = TfIdf()

    def likeness(at: int) -> Scores:
        """Return the TF-IDF cosine of every message with the accessed one. The index is built at the first call."""
        if not texts:
            texts.extend(words(message.text) for message in messages)
            index.add(texts)
        return index.cosine(texts[ids[at]])

    return Trace(
        conversation.id,
        np.array(ids, np.int64),
        np.array([count(message) for message in messages], np.int64),
        np.array(counted, np.bool_),
        likeness,
    )
