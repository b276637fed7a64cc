"""The embedded grader `rules`: dates, numbers, names, lists, yes and no, matched by rules. Deterministic, no model."""

from __future__ import annotations

from .grader import VERSION, RulesGrader, answer_kind, is_less_exact

__all__ = ["VERSION", "RulesGrader", "answer_kind", "is_less_exact"]
