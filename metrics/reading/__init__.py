"""An extractive question-answering baseline over contexts, without any model."""

from .reader import UNKNOWN, ExtractiveReader, ReaderAnswer

VERSION = 2
"""Version of the answers, raised whenever one can change."""

__all__ = ["UNKNOWN", "VERSION", "ExtractiveReader", "ReaderAnswer"]
