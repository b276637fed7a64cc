"""The Archive tier measured: what recordings take on disk, beside other coders and a bound, and how fast they are read.

`rows.py` says what is measured. Lossless and lossy figures are rows of their own; times are apart from both, since no
two runs have the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from ...metrics.tokens import TokenCounter
from ...scenarios.errors import RunError
from ...scenarios.model import Conversation
from ...strategies.tiers.archive import Coding
from .lossy import coded, summarised
from .rows import Archived
from .sizes import items_of, later, messages, texts
from .speed import written

Say = Callable[[str], None]


def archived(conversations: Sequence[Conversation], coding: Coding, counter: TokenCounter, say: Say) -> Archived:
    """Measure the tier on these conversations."""
    items = items_of(conversations, counter)
    if not items:
        raise RunError("no message was read: name recordings or a scenario")
    say("coding with zstd, xz, brotli and the models")
    whole, prose = messages(items, coding), texts(items, coding)
    say("writing the archive and reading it")
    with TemporaryDirectory(prefix="ctxbench-archive-") as folder:
        size, speed = written(items, coding, Path(folder))
    say("dictionaries of the earlier conversations")
    taught = later(conversations, coding, counter)
    say("summaries and embeddings")
    return Archived(
        coding=coding,
        conversations=len(conversations),
        messages=len(items),
        tokens=sum(item.tokens for item in items),
        archive=size,
        lossless=(whole, prose),
        later=taught,
        summary=summarised(items, coding, counter),
        vectors=coded(conversations, counter),
        speed=speed,
    )
