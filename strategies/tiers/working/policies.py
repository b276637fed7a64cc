"""The cache policies by name, and as text: `lru_k(k=3, correlated=20)`. The parameters are the identity."""

from __future__ import annotations

from ctxbench.scenarios import spec
from ctxbench.scenarios.errors import SpecError

from .arc import Arc
from .belady import Belady, BeladySize
from .hybrid import Hybrid
from .lru import Fifo, Lfu, Lru
from .lru_k import LruK, LruKDocument
from .policy import Policy
from .s3_fifo import S3Fifo
from .segmented import Segmented
from .w_tiny_lfu import WTinyLfu

POLICIES: dict[str, type[Policy]] = {
    "lru_k": LruK,
    "lru_k_document": LruKDocument,
    "hybrid": Hybrid,
    "segmented": Segmented,
    "fifo": Fifo,
    "lru": Lru,
    "lfu": Lfu,
    "arc": Arc,
    "s3_fifo": S3Fifo,
    "w_tiny_lfu": WTinyLfu,
    "belady": Belady,
    "belady_size": BeladySize,
}


def parse(text: str) -> Policy:
    """Return the policy of a text, for `sized`. Raises SpecError."""
    policy: Policy = spec.parse(text, POLICIES, "policy")
    if policy.capacity != 1:
        raise SpecError(f"policy {text!r}: give the capacity separately, not as a parameter")
    return policy


def text_of(policy: Policy) -> str:
    """Return a policy as text, without parameters at their defaults and its capacity: one policy has one text."""
    name = next(name for name, kind in POLICIES.items() if kind is type(policy))
    default = type(policy)(policy.capacity)
    texts = [
        f"{key}={value:g}" if isinstance(value, float) else f"{key}={value!r}"
        for key in (field.name for field in spec.parameters(type(policy)))
        if (value := getattr(policy, key)) != getattr(default, key)
    ]
    return f"{name}({', '.join(texts)})" if texts else name
