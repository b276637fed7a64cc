"""Where a long text is cut, so that a model in this process reads what two texts begin with only once.

The sums of a forward pass depend in their last bits on how many tokens it takes at once. "Read on from wherever the two
texts part" would therefore make an answer depend on what was asked before. Here a text is always read in the same
pieces, whose ends depend on nothing but what stands before them: equal pieces at the start of two texts are the same
state, and that state may be used again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

PIECE = 400
"""Characters that a piece has at least. Smaller ones are shared more often, and read less quickly."""
_GAP = re.compile(r"\n\n(?=\S)")


def starts(text: str) -> list[str]:
    """The text up to the end of its first piece, of its second, and so on; what is behind the last is no piece.

    A piece ends after an empty line: no tokenizer that we know joins what stands on both sides of one.
    """
    found: list[str] = []
    end = 0
    for gap in _GAP.finditer(text):
        if gap.end() - end >= PIECE:
            end = gap.end()
            found.append(text[:end])
    return found


def shared(one: Sequence[str], other: Sequence[str]) -> int:
    """How many pieces two texts begin with together."""
    return next(
        (at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), min(len(one), len(other))
    )
