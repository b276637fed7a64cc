"""The Working tier: a cache of messages by tokens. `tier.Working` is the component, `policies` its policies."""

from .tier import CAPACITY, CachedMessage, Put, Working

__all__ = ["CAPACITY", "CachedMessage", "Put", "Working"]
