"""Scenario kind research: a person and an assistant review the evidence on a question in a library of papers."""

from .generator import make

__all__ = ["make"]
