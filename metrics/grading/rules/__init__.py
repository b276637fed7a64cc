"""The embedded grader `rules`: dates, numbers, names, lists, yes and no, matched by rules. Deterministic, no model."""

from __future__ import annotations

from .grader import VERSION, Rules

__all__ = ["VERSION", "Rules"]
