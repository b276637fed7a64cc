"""The Working tier: a message cache sized in tokens. `tier.Working` is the component, `policies` lists its policies."""

from .tier import CAPACITY, CachedMessage, Put, Working

__all__ = ["CAPACITY", "CachedMessage", "Put", "Working"]
