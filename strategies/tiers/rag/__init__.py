"""The RAG tier: passages without limit, searched by vectors, words and entities together (`rag.py`)."""

from ..snapshot_file import SnapshotError
from .rag import RETRIEVERS, Embed, Fusion, Hit, Passage, Rag, RagRules, Retriever, load, passage, save

__all__ = [
    "RETRIEVERS",
    "Embed",
    "Fusion",
    "Hit",
    "Passage",
    "Rag",
    "RagRules",
    "Retriever",
    "SnapshotError",
    "load",
    "passage",
    "save",
]
