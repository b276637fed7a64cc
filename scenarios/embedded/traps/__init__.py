"""Small conversations that break context libraries."""

from .conversations import TRAPS, make_all

__all__ = ["TRAPS", "make_all"]
