"""The RAG tier: passages without limit, found by vectors, words and entities together. `rag.py` says how."""

from ..snapshot_file import SnapshotError
from .rag import Embed, Hit, Rag
from .rules import RETRIEVERS, Fusing, Passage, RagRules, Retriever, passage
from .snapshot import load, save

__all__ = [
    "RETRIEVERS",
    "Embed",
    "Fusing",
    "Hit",
    "Passage",
    "Rag",
    "Retriever",
    "RagRules",
    "SnapshotError",
    "load",
    "passage",
    "save",
]
