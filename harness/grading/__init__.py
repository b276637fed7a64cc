"""Graders that need a model, and the registry of all graders (`registry.py`).

item ──▶ text      as a person sees it, which cannot act as anything but text
     ──▶ llm       rubrics by kind of question, a fence around the data, a verdict as JSON or none (verdicts)
     ──▶ logit     one forward pass of a local model
     ──▶ by_ragas  ragas's metrics through our models
`pairwise` compares two answers; `attacks` are texts that speak to a grader, and how a verdict is seen to flip.
"""

from __future__ import annotations

from .registry import KINDS, grader, model_of, prompts

__all__ = ["KINDS", "grader", "model_of", "prompts"]
