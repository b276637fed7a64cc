"""Scenarios mem_001 to mem_003: what the memory tiers are accepted by."""

from .generator import memory

__all__ = ["memory"]
