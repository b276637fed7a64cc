"""Pairs of answers that differ by little, of `near_misses.toml`."""

from pathlib import Path

import msgspec


class Pair(msgspec.Struct, frozen=True):
    """A question, what is accepted, answers that are right and answers that are wrong."""

    question: str
    accepted: tuple[str, ...]
    right: tuple[str, ...]
    wrong: tuple[str, ...]


_TEXT = Path(__file__).with_name("near_misses.toml").read_bytes()
_LISTS = msgspec.toml.decode(_TEXT, type=dict[str, tuple[Pair, ...]])
PAIRS, FOREIGN = _LISTS["pairs"], _LISTS["foreign"]
