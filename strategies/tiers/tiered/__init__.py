"""The four tiers joined (design document 004): the strategy `tiered`, and the memory below Focus as a component.

`strategy.py` has the parameters, `opened.py` one conversation: what is sent, looked up and called back. `tiers.py` is
the memory: Working, Archive and RAG under one migration, and an index over all that left Focus. `stores.py` and
`by_policy.py` fit the tiers to migration, `merging.py` puts what is called back in its place, `gauges.py` has readings
and alarms, `clock.py` the time, `snapshot.py` all of it in one file. Decision 21 has the figures.
"""

from __future__ import annotations

from .stores import TierRules
from .strategy import Tiered
from .tiers import Tiers

__all__ = ["TierRules", "Tiered", "Tiers"]
