"""An extractive reader of contexts, without any model."""

from .reader import UNKNOWN, ExtractiveReader, ReaderAnswer

VERSION = 1
"""Of what it answers: another number, other answers."""

__all__ = ["UNKNOWN", "VERSION", "ExtractiveReader", "ReaderAnswer"]
