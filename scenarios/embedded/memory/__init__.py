"""Scenarios mem_001 to mem_003: the acceptance tests of the memory tiers."""

from .generator import memory

__all__ = ["memory"]
