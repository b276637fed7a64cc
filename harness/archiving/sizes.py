"""Lossless sizes: the messages under the archive's coding, other coders, and a model's bound."""

from __future__ import annotations

import lzma
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from importlib import import_module

import msgspec
import zstandard

from ...metrics.compression import BOUND_ORDER, adaptive_bytes
from ...metrics.tokens import TokenCounter
from ...metrics.value import Missing
from ...scenarios.model import Conversation
from ...strategies.tiers.archive import Coding, Item
from ...strategies.tiers.archive.coding import KINDS, Dictionary, made_of
from ...strategies.tiers.archive.draft import blocks
from ...strategies.tiers.archive.layout import by_field
from ...strategies.tiers.archive.part import contents
from .rows import PLAIN, Corpus, Later, Size, Taught

_PLAIN_LEVEL = 9
_LONG = 27

Coder = Callable[[bytes], int]


def items_of(conversations: Iterable[Conversation], counter: TokenCounter) -> list[Item]:
    """Every message, under `conversation/message`."""
    return [
        Item(f"{conversation.id}/{message.id}", counter.message(message), message)
        for conversation in conversations
        for message in conversation.messages
    ]


def messages(items: Sequence[Item], coding: Coding) -> Corpus:
    """The messages as recorded: a line of JSON each."""
    return _under_every_coder("messages", [as_json(block) for block in _cut(items, coding)])


def texts(items: Sequence[Item], coding: Coding) -> Corpus:
    """The texts alone, a line each: no ids, times, roles, calls."""
    return _under_every_coder("texts alone", [as_text(block) for block in _cut(items, coding)])


def as_json(items: Sequence[Item]) -> bytes:
    """Messages as lines of JSON."""
    return b"\n".join(msgspec.json.encode(item.message) for item in items)


def as_text(items: Sequence[Item]) -> bytes:
    """The texts of messages, a line each."""
    return b"\n".join(item.message.text.encode() for item in items)


def later(conversations: Sequence[Conversation], coding: Coding, counter: TokenCounter) -> tuple[Later, ...] | Missing:
    """Dictionaries of the first half of the conversations, in the order they were read, tested on the others."""
    half = len(conversations) // 2
    before, after = (_cut(items_of(some, counter), coding) for some in (conversations[:half], conversations[half:]))
    if not before or not after:
        return Missing("undefined", "there is one conversation only, so none that a dictionary is made of")

    def laid(block: Sequence[Item]) -> list[bytes]:
        return contents(block)

    return (
        _taught("messages", as_json, laid, by_field, before, after, coding),
        _taught("texts alone", as_text, lambda block: [as_text(block)], as_text, before, after, coding),
    )


def _taught(
    name: str,
    plainly: Callable[[Sequence[Item]], bytes],
    laid: Callable[[Sequence[Item]], list[bytes]],
    learnt: Callable[[Sequence[Item]], bytes],
    before: Sequence[Sequence[Item]],
    after: Sequence[Sequence[Item]],
    coding: Coding,
) -> Later:
    plain = [plainly(block) for block in after]
    coder = _zstd(_PLAIN_LEVEL)
    rows = []
    for kind in KINDS:
        dictionary = made_of([learnt(block) for block in before], replace(coding, dictionary=kind))
        least = [
            sum(
                min(len(dictionary.compress(each, coding.level, coding.long)) for each in laid(block)) for block in some
            )
            for some in (after, before)
        ]
        itself = len(Dictionary().compress(dictionary.data, coding.level)) if dictionary.data else 0
        rows.append(Taught(kind, least[0], itself, least[1]))
    return Later(
        name, sum(map(len, plain)), sum(map(coder, plain)), sum(coder(plainly(block)) for block in before), tuple(rows)
    )


def _cut(items: Sequence[Item], coding: Coding) -> list[Sequence[Item]]:
    return [block for block, _ in blocks(items, coding.block_tokens)]


def _under_every_coder(name: str, each: Sequence[bytes]) -> Corpus:
    together = b"\n".join(each)
    model = f"order-{BOUND_ORDER} model"
    return Corpus(
        name,
        len(together),
        (
            Size(PLAIN, sum(map(_zstd(_PLAIN_LEVEL), each))),
            Size("zstd -19", sum(map(_zstd(19), each))),
            Size("xz -9e", sum(map(_xz, each))),
            _brotli(each),
            Size("zstd -22 --long", _zstd(22, long=True)(together), alone=False),
            Size(model, sum(map(adaptive_bytes, each)), computed=True),
            Size(f"{model}, all", adaptive_bytes(together), alone=False, computed=True),
        ),
    )


def _zstd(level: int, long: bool = False) -> Coder:
    if not long:
        return lambda data: len(zstandard.ZstdCompressor(level=level).compress(data))
    settings = zstandard.ZstdCompressionParameters.from_level(level, window_log=_LONG, enable_ldm=True)
    return lambda data: len(zstandard.ZstdCompressor(compression_params=settings).compress(data))


def _xz(data: bytes) -> int:
    return len(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME))


def _brotli(each: Sequence[bytes]) -> Size:
    try:
        compress = import_module("brotli").compress
    except ModuleNotFoundError:
        return Size("brotli 11", Missing("unsupported", "brotli is not installed: pip install 'ctxbench[tiers]'"))
    return Size("brotli 11", sum(len(compress(data, quality=11, lgwin=24)) for data in each))
