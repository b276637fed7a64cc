"""Scenario kind coding: a coding agent in the repository of an invented Python service."""

from .generator import make

__all__ = ["make"]
