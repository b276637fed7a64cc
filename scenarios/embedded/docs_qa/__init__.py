"""Scenario kind docs_qa: an agent that answers questions from the documentation of an invented product."""

from .generator import make

__all__ = ["make"]
