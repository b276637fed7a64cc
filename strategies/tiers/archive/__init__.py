"""The Archive tier: messages on disk, in compressed blocks of 64K tokens, each readable alone (design document 004
§2.3).

    with Archive(folder) as archive:
        archive.put([ArchivedMessage("conv-1/m1", 12, message)])
        archive.get("conv-1/m1").message

It works without the harness. `archive.py` is the archive, `store.py` its files and how they replace each other,
`files.py` files with checksums and the index that names them, `part.py` one file and the layout of its messages,
`codec.py` zstd and dictionaries, `quantisation.py` embeddings by product quantisation. Decision 16 has the figures.
"""

from __future__ import annotations

from .archive import ArchiveTier
from .codec import Coding
from .files import ArchiveError, Damaged, MemoryFiles
from .part import ArchivedMessage

__all__ = ["ArchiveError", "ArchiveTier", "ArchivedMessage", "Coding", "Damaged", "MemoryFiles"]
