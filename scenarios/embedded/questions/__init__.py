"""Conversations of less than a thousand tokens, with questions that a small local model can answer."""

from .conversations import CONVERSATIONS, make, make_all

__all__ = ["CONVERSATIONS", "make", "make_all"]
