"""What is stored in the RAG tier, and the rules by which it is searched."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import msgspec

from ....scenarios.model import Message
from ...parts.units import at_least
from .hnsw import GRAPH, Graph
from .vector_store import Kind

Retriever = Literal["vector", "bm25", "graph"]
RETRIEVERS: tuple[Retriever, ...] = get_args(Retriever)
DAY = 86_400.0


class Passage(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is stored and found."""

    id: str
    text: str
    """What it is searched by."""
    user: str = ""
    time: float | None = None
    """Seconds; None = when it is added."""
    tokens: int = 0
    message: Message | None = None
    """What it was made of, to be had back."""


def passage(message: Message, user: str = "", tokens: int = 0) -> Passage:
    """A message as a passage. Its text is what was said, by whom, and its tool calls, a line each.

    The name is part of it: a question about somebody finds what that person said.
    """
    said = "\n".join((message.text.strip(), *(f"{call.name} {call.arguments}" for call in message.calls))).strip()
    text = f"{message.name}: {said}" if message.name and message.role in ("user", "assistant") else said
    return Passage(message.id, text, user, message.time, tokens, message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fusing:
    """How the retrievers' rankings become one."""

    by: Literal["rrf", "weighted"] = "rrf"
    weights: tuple[float, float, float] = (1.0, 1.0, 1.0)
    """Of vector, bm25 and graph."""
    candidates: int = 100
    """How many passages each retriever ranks."""
    rerank: int = 0
    """How many of the fused are ranked again by the exact scores of all that are asked, weighted; 0 = none."""
    recency: float = 0.0
    """What recency counts beside them when they are: a passage of now 1, one of `half_life` ago ½."""
    half_life: float = 30 * DAY
    floor: float = 0.0
    """The cosine that a passage must be above to be found by `vector`."""

    def __post_init__(self) -> None:
        if self.by not in ("rrf", "weighted"):
            raise ValueError(f"by={self.by!r}: give rrf or weighted")
        if len(self.weights) != len(RETRIEVERS) or not all(0 <= each < math.inf for each in self.weights):
            raise ValueError(f"weights={self.weights!r}: give 0 or more for each of {', '.join(RETRIEVERS)}")
        if self.candidates < 1 or self.rerank < 0 or not self.recency >= 0 or not self.half_life > 0:
            raise ValueError("candidates are 1 or more, rerank and recency 0 or more, half_life above 0")


FUSING = Fusing()


@dataclass(frozen=True, slots=True, kw_only=True)
class RagRules:
    """How passages are stored, and searched where a search does not say otherwise."""

    retrievers: tuple[Retriever, ...] = RETRIEVERS
    words: bool = True
    """Whether content words are entities of the graph too."""
    index: Kind = "auto"
    graph: Graph = GRAPH
    fusing: Fusing = FUSING
    entries: int | None = None
    """How many texts the words that BM25 looks for stand in together, at most: the rarest first. None = no limit."""

    def __post_init__(self) -> None:
        at_least(1, entries=self.entries)
        unknown = [each for each in self.retrievers if each not in RETRIEVERS]
        if unknown or not self.retrievers or len(set(self.retrievers)) < len(self.retrievers):
            raise ValueError(f"retrievers={self.retrievers!r}: give some of {', '.join(RETRIEVERS)}, each once")


RULES = RagRules()
