"""The cache policies by name, and as text: `lru_k(k=3, correlated=20)`. The parameters are the identity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ctxbench.scenarios.errors import SpecError
from ctxbench.scenarios.spec import build, parameters, single

from .arc import Arc
from .belady import Belady, BeladySize
from .hybrid import Hybrid
from .lru import Fifo, Lfu, Lru
from .lru_k import LruK, LruKDocument
from .policy import Policy
from .s3_fifo import S3Fifo
from .segmented import Segmented
from .sieve import Sieve
from .two_q import TwoQ
from .w_tiny_lfu import WTinyLfu

POLICIES: dict[str, type[Policy]] = {
    "lru_k": LruK,
    "lru_k_document": LruKDocument,
    "hybrid": Hybrid,
    "segmented": Segmented,
    "fifo": Fifo,
    "lru": Lru,
    "lfu": Lfu,
    "two_q": TwoQ,
    "arc": Arc,
    "s3_fifo": S3Fifo,
    "sieve": Sieve,
    "w_tiny_lfu": WTinyLfu,
    "belady": Belady,
    "belady_size": BeladySize,
}


@dataclass(frozen=True, slots=True)
class PolicyRecipe:
    """A policy and its parameters, without the capacity of the cache."""

    name: str
    parameters: Mapping[str, Any]

    def sized(self, capacity: int) -> Policy:
        """Return an empty cache of this policy. Raises ValueError for a capacity below 1."""
        return POLICIES[self.name](capacity, **self.parameters)

    def __str__(self) -> str:
        items = self.parameters.items()
        texts = [f"{name}={value:g}" if isinstance(value, float) else f"{name}={value!r}" for name, value in items]
        return f"{self.name}({', '.join(texts)})" if texts else self.name


def parse(text: str) -> PolicyRecipe:
    """Parse the text of a policy. Parameters at their defaults are dropped, so one policy has one text.

    Raises SpecError.
    """
    call = single(text, "policy")
    if "capacity" in call.parameters:
        raise SpecError(f"policy {call.name!r}: give the capacity separately, not as a parameter")
    policy = build(type(call)(call.name, {"capacity": 1, **call.parameters}), POLICIES, "policy")
    names = [field.name for field in parameters(type(policy)) if field.name != "capacity"]
    default = POLICIES[call.name](1)
    return PolicyRecipe(
        call.name, {name: getattr(policy, name) for name in names if getattr(policy, name) != getattr(default, name)}
    )
