"""Compression of blocks: zstd at a level, with a dictionary made of earlier blocks, and the length of its window.

A raw dictionary is the text of earlier blocks itself, as if it preceded the content. A trained one is zstd's selection
from them. Decision 16 has the figures for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import zstandard

Kind = Literal["none", "trained", "raw"]

FAST = 3
"""Level of small parts, which are written again soon."""
TRAINED_BYTES = 112_640
"""Size of a trained dictionary: zstd's own default."""
# Bytes of a segment of a trained dictionary. By default zstd takes few segments, and stops at 900 bytes in all.
_SEGMENT = 256
_SAMPLE = 2048  # bytes of a training sample
# Logarithms of the longest match distance: a block and the largest dictionary; zstd's `--long`.
_WINDOW, _LONG_WINDOW = 24, 27


@dataclass(frozen=True, slots=True)
class Coding:
    """How blocks are written. Reading does not need it, and the blocks of an archive may differ in it."""

    level: int = 19
    dictionary: Kind = "raw"
    dictionary_bytes: int = 1 << 20
    """Largest size of a raw dictionary."""
    long: bool = False
    """zstd's long-distance matching over 128 MB."""
    block_tokens: int = 65_536
    summary: float = 0.0
    """Tokens of an extractive summary stored beside each block, as a share of the block's tokens; 0 = none."""


class Dictionary:
    """A zstd dictionary, ready to use. An empty one compresses without a dictionary."""

    def __init__(self, data: bytes = b"", kind: Kind = "none") -> None:
        self.data, self.kind = data, kind
        self._decompressor = zstandard.ZstdDecompressor(dict_data=self._zstd(), max_window_size=1 << _LONG_WINDOW)

    def __deepcopy__(self, _: object) -> Dictionary:
        return self  # it never changes

    def compress(self, content: bytes, level: int, long: bool = False) -> bytes:
        """Compress content to one frame. The same content gives the same bytes."""
        window = _LONG_WINDOW if long else _WINDOW
        settings = zstandard.ZstdCompressionParameters.from_level(level, window_log=window, enable_ldm=long)
        return zstandard.ZstdCompressor(compression_params=settings, dict_data=self._zstd()).compress(content)

    def decompress(self, frame: bytes) -> bytes:
        """Return the content of one frame."""
        return self._decompressor.decompress(frame)

    def _zstd(self) -> zstandard.ZstdCompressionDict | None:
        if not self.data:
            return None
        kind = zstandard.DICT_TYPE_RAWCONTENT if self.kind == "raw" else zstandard.DICT_TYPE_FULLDICT
        return zstandard.ZstdCompressionDict(self.data, dict_type=kind)


def build_dictionary(contents: Sequence[bytes], coding: Coding) -> Dictionary:
    """Make a dictionary of contents in order of age, newest last. A raw dictionary is the end of them."""
    if coding.dictionary == "raw" and contents:
        # The end is what stands nearest to the content, and zstd takes fewer bits for matches at short distances.
        return Dictionary(b"\n".join(contents)[-coding.dictionary_bytes :], "raw")
    if coding.dictionary == "none" or not contents:
        return Dictionary()
    samples: list[bytes | bytearray | memoryview] = [
        content[at : at + _SAMPLE] for content in contents for at in range(0, len(content), _SAMPLE)
    ]
    size = min(TRAINED_BYTES, sum(map(len, contents)) // 4)
    try:
        trained = zstandard.train_dictionary(size, samples, k=_SEGMENT, d=8)
    except (zstandard.ZstdError, ValueError):  # too little material, or all of it alike
        return Dictionary()
    return Dictionary(trained.as_bytes(), "trained")
