"""The RAG tier to one file and back: equal behaviour afterwards, or SnapshotError and nothing loaded."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np

from ....metrics.rows import Rows
from ..snapshot_file import SnapshotReader, SnapshotWriter, reading, writing
from .bm25 import Bm25
from .graph import EntityGraph
from .rag import Embed, Rag
from .rules import RULES, Passage, RagRules, Retriever
from .vector_store import VectorStore

KIND = "RAG tier"


class _About(msgspec.Struct, frozen=True):
    """What the contents were made by."""

    retrievers: tuple[Retriever, ...]
    words: bool
    model: str


def save(rag: Rag, path: Path, model: str = "") -> None:
    """Write the tier. `model` names the embedder; another one's vectors are of no use. Raises SnapshotError."""
    with writing(path, KIND) as writer:
        write(rag, writer, model)


def write(rag: Rag, writer: SnapshotWriter, model: str = "") -> None:
    """The same as sections of a file."""
    writer.json("about", _About(rag.rules.retrievers, rag.rules.words, model))
    writer.json("passages", rag.passages)
    writer.json("waiting", rag.waiting)
    if "bm25" in rag.rules.retrievers:
        rag.bm25.save(writer)
    if "graph" in rag.rules.retrievers:
        rag.graph.save(writer)
    if rag.vectors is not None:
        rag.vectors.save(writer)


def load(
    path: Path,
    rules: RagRules = RULES,
    embed: Embed | None = None,
    model: str = "",
    dimension: int | None = None,
) -> Rag:
    """Read the tier, to be searched by these rules. Raises SnapshotError for a file that was not made for them.

    `dimension`: coordinates of the embedder's vectors, where the caller knows; None = whatever the file has.
    """
    with reading(path, KIND) as reader:
        return read(reader, rules, embed, model, dimension)


def read(
    reader: SnapshotReader, rules: RagRules, embed: Embed | None, model: str = "", dimension: int | None = None
) -> Rag:
    """The same from sections of a file."""
    _check(reader, rules, model)
    made = Rag(rules, embed)
    made.passages = reader.json("passages", list[Passage | None])
    _enter(made)
    made.waiting = reader.json("waiting", list[int]) if "vector" in rules.retrievers else []
    if "bm25" in rules.retrievers:
        made.bm25 = Bm25.load(reader, most=rules.entries)
    if "graph" in rules.retrievers:
        made.graph = EntityGraph.load(reader, with_words=rules.words)
    if "vector" in rules.retrievers and reader.has("vectors.kind"):
        made.vectors = VectorStore.load(reader, dimension, rules.index, rules.graph)
    return made


def _check(reader: SnapshotReader, rules: RagRules, model: str) -> None:
    about = reader.json("about", _About)
    lacking = [each for each in rules.retrievers if each not in about.retrievers]
    if lacking:
        raise reader.refuse(f"was written without {', '.join(lacking)}: leave them out, or build it anew")
    if "vector" in rules.retrievers and about.model != model:
        raise reader.refuse(f"its vectors are those of the embedder {about.model!r}, not of {model!r}: build it anew")
    if "graph" in rules.retrievers and about.words != rules.words:
        raise reader.refuse(f"its entities were made with words={about.words}: build it anew")


def _enter(rag: Rag) -> None:
    """What follows from the passages."""
    there = [(number, each) for number, each in enumerate(rag.passages) if each is not None]
    rag.numbers = {each.id: number for number, each in there}
    times, alive = np.zeros(len(rag.passages)), np.zeros(len(rag.passages), np.bool_)
    for number, each in there:
        times[number], alive[number] = each.time, True
        rag.users.setdefault(each.user, Rows(np.int64)).add(np.array([number]))
    rag.times.add(times)
    rag.alive.add(alive)
