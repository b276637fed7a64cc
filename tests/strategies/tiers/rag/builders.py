"""A small tier for tests: the offline embedder, and talks that everybody can follow."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ctxbench.harness.models.embedding import lexical
from ctxbench.strategies.tiers.rag import Passage, Rag, RagRules

RULES = RagRules()

SAID = (
    ("m1", "Anna Berg rents a cabin in Lofoten for 3,400 kroner."),
    ("m2", "The cabin has no heating, so bring blankets."),
    ("m3", "The quarterly report AB-1234 is due on March 14."),
    ("m4", "Our new office is in Bergen, near the harbour."),
    ("m5", "我们下周搬到北京的新办公室。"),
)


def embed(texts: Sequence[str], query: bool) -> NDArray[np.float32]:
    return lexical(texts, query)


def tier(rules: RagRules = RULES) -> Rag:
    made = Rag(rules, embed if "vector" in rules.retrievers else None)
    made.add([Passage(*each) for each in SAID])
    return made
