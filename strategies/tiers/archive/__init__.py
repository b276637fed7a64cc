"""The Archive tier: messages in compressed blocks of 64K tokens, each readable alone (design document 004 §2.3).

    archive = ArchiveTier(BlockTable("archive.db"))
    archive.put([ArchivedMessage("conv-1/m1", 12, message)])
    archive.get("conv-1/m1").message

It works without the harness. `archive.py` is the archive, `part.py` one block, the layout of its messages and the index
of all, `codec.py` zstd and dictionaries, `quantisation.py` embeddings by product quantisation. Its files are rows of
the archive's store (`strategies/archive/store.py`). Decision 16 has the figures.
"""

from __future__ import annotations

from ...archive.store import BlockTable
from .archive import ArchiveTier, Damaged
from .codec import Coding
from .part import ArchivedMessage

__all__ = ["ArchiveTier", "ArchivedMessage", "BlockTable", "Coding", "Damaged"]
