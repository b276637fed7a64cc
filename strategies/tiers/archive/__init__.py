"""The Archive tier: messages on disk, in compressed blocks of 64K tokens, each readable alone (design document 004
§2.3).

    with Archive(folder) as archive:
        archive.put([Item("conv-1/m1", 12, message)])
        archive.get("conv-1/m1").message

It needs nothing of the harness. `archive.py` is the archive, `store.py` its files and how they replace each other,
`part.py` one file, `layout.py` and `shapes.py` how messages are laid out to be compressed, `coding.py` zstd and
dictionaries, `vectors.py` embeddings by product quantisation. Decision 16 has the figures.
"""

from __future__ import annotations

from .archive import ArchiveTier
from .codec import Coding
from .errors import ArchiveError, Damaged
from .files import MemoryFiles
from .part import ArchivedMessage

__all__ = ["ArchiveTier", "ArchiveError", "Coding", "Damaged", "ArchivedMessage", "MemoryFiles"]
