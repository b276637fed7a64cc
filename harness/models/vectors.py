"""Embedders that take time or money, behind a cassette: a text that was embedded once is not embedded again.

A vector's key is the SHA-256 of the model's name, the text, and whether it is a question. What is charged is the tokens
of the texts in the run's encoding at today's prices, kept or not, so that it is the same in every run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ...metrics.models import model_map
from ...metrics.prices import BUNDLED, Usage
from ...metrics.tokens import TokenCounter
from ...strategies.base import ModelError
from ...strategies.events import Called
from . import Embedded
from .cassette import Cassette, Entry, canonical, key_of
from .provider import Provider
from .recorded import Mode
from .spending import Purse

Vectors = NDArray[np.float32]

_BATCH = 64
"""Texts of one call. A run that is stopped has kept all batches but one."""
_READS = 8191
"""Tokens that a model reads where the map does not say."""


class Maker(Protocol):
    """What turns texts into vectors, one row a text, of any length. Raises ModelError."""

    def vectors(self, texts: Sequence[str], query: bool, counter: TokenCounter) -> Vectors:
        """One vector a text."""
        ...


class Kept:
    """An embedder of the run. `auto` looks vectors up and makes the rest, `replay` never makes any, `record` always
    does. In `replay` the maker may be None. `free` ones are not charged."""

    def __init__(self, name: str, maker: Maker | None, cassette: Cassette, mode: Mode, free: bool = False) -> None:
        self.name, self._maker, self._cassette, self._mode, self._free = name, maker, cassette, mode, free
        self._made: set[str] = set()

    def embed(self, texts: Sequence[str], query: bool, counter: TokenCounter) -> Embedded:
        """One unit vector a text. Raises ModelError, and then nothing is charged but what was made is kept."""
        keys = [self._key(text, query) for text in texts]
        known = set(keys) if self._mode != "record" else self._made & set(keys)
        found = self._cassette.get_many(sorted(known))
        missing = [(key, text) for key, text in dict(zip(keys, texts, strict=True)).items() if key not in found]
        for at in range(0, len(missing), _BATCH):
            found |= self._make(missing[at : at + _BATCH], query, counter)
        rows = [np.frombuffer(found[key], np.float32) for key in keys]
        if len({len(row) for row in rows}) > 1:
            raise ModelError(f"{self.name}: its vectors have several lengths: record them anew with another --cassette")
        return Embedded(np.stack(rows) if rows else np.zeros((0, 0), np.float32), self._called(texts, counter))

    def _key(self, text: str, query: bool) -> str:
        text = text.encode("utf-8", "replace").decode()
        return key_of(canonical({"kind": "embedding", "model": self.name, "text": text, "query": query}))

    def _make(self, some: Sequence[tuple[str, str]], query: bool, counter: TokenCounter) -> dict[str, bytes]:
        if self._mode == "replay" or self._maker is None:
            raise ModelError(
                f"{self.name}: {self._cassette.path.name} has no vector of {len(some)} texts: "
                "record them once with --cassette-mode auto"
            )
        self._cassette.to_be_written()
        made = _unit(self.name, self._maker.vectors([text for _, text in some], query, counter))
        entries = [Entry(key, "embedding", self.name, row.tobytes()) for (key, _), row in zip(some, made, strict=True)]
        self._cassette.put_many(entries, replace=self._mode == "record")
        self._made |= {key for key, _ in some}
        return self._cassette.get_many([key for key, _ in some])  # another process may have been first

    def _called(self, texts: Sequence[str], counter: TokenCounter) -> Called | None:
        if self._free or not texts:
            return None
        tokens = sum(map(counter.text, texts))
        return Called("embedder", self.name, tokens, cost=_cost(self.name, tokens))


class Remote:
    """An embedding model of any provider, paid from the purse. A text that is longer than it reads is cut."""

    def __init__(self, name: str, provider: Provider, purse: Purse) -> None:
        self._name, self._provider, self._purse = name, provider, purse
        entry = model_map().get(name) or model_map().get(name.rpartition("/")[2]) or {}
        self._reads = int(entry.get("max_input_tokens") or _READS)

    def vectors(self, texts: Sequence[str], query: bool, counter: TokenCounter) -> Vectors:  # noqa: ARG002
        """One vector a text, as the provider made it."""
        said = [self._cut(text, counter) for text in texts]
        most = sum(map(counter.text, said))
        taken = self._purse.take(self._name, _cost(self._name, most))
        try:
            found = self._provider.embed(self._name, said)
        except ModelError:
            self._purse.give_back(taken)
            raise
        used = most if found.tokens is None else found.tokens
        self._purse.pay(taken, _cost(self._name, used))
        return np.array(found.vectors, np.float32)

    def _cut(self, text: str, counter: TokenCounter) -> str:
        """The start that the model surely reads (its tokens are not quite ours); a blank text is refused: a dash."""
        limit = self._reads * 9 // 10
        while (tokens := counter.text(text)) > limit:
            text = text[: min(len(text) - 1, len(text) * limit // tokens)]
        return text if text.strip() else "-"


def _cost(name: str, tokens: int) -> float | None:
    return BUNDLED.cost(name, Usage(tokens, 0))


def _unit(name: str, vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not (np.isfinite(lengths) & (lengths > 0)).all():
        raise ModelError(f"{name}: made a vector that has no direction")
    return np.ascontiguousarray(vectors / lengths, np.float32)
