"""The four tiers together (design document 004): the strategy `tiered`, and the memory below Focus as a component.

`session.py` has the strategy and one conversation under it: what is sent, looked up and recalled. `tiers.py` is the
memory: Working, Archive and RAG under one migration, and an index over all messages that left Focus. `stores.py` fits
the tiers to migration, `quotes.py` finds quoted messages, `snapshot.py` writes everything to one file. Decision 21 has
the figures.
"""

from __future__ import annotations

from .session import Tiered
from .tiers import Tiers

__all__ = ["Tiered", "Tiers"]
