"""Grading answers: an item to be graded, its grade, and what a grader is (`item.py`). Graders that need no model are
here, those that do are in `harness/grading/`.
"""

from __future__ import annotations

from .item import Grade, GradedItem, Grader, Kind

__all__ = ["Grade", "Grader", "GradedItem", "Kind"]
