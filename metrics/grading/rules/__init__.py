"""The embedded grader `rules`: dates, numbers, names, lists, yes and no, matched by rules. Deterministic, no model."""

from __future__ import annotations

from .grader import VERSION, RulesGrader

__all__ = ["VERSION", "RulesGrader"]
