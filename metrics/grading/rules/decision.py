"""From what was found to a score: the numbers that were fitted, and how.

Fitted by `python -m tests.metrics.grading.fit_rules FOLDER`, which prints these constants, on one half of EVOUNA-NQ and
of HalluQA (by question). The other halves were graded once, at the end (docs/decisions/0023-rules-grader.md).
"""

from __future__ import annotations

import hashlib
from math import exp

THRESHOLD = 0.5
"""The score from which an answer is correct."""

DATES = {4: 0.99, 3: 0.91, 2: 0.74, 1: 0.07, 0: 0.16}
"""How often people found an answer right whose date is the same, finer, coarser, another, or that has none."""
NUMBERS = {2: 0.99, 1: 0.18, 0: 0.08}
"""The same, where the number is there, where only others are, and where there is none."""

ENOUGH = 0.3
"""The share of its own words from which an answer has some of what is accepted."""
RIVALLED = 0.55
"""Up to this share, a name beside another one is another name: of 59 such answers people found 46 % right."""
BELOW = 0.4
"""The score of what has enough in common, but not what matters."""
WEIGHTS = {
    "share": 0.42,
    "fresh": 1.89,
    "enough": 1.37,
    "whole": 1.89,
    "within": 0.81,
    "lost_number": -1.38,
    "name_missed": -1.19,
    "rival": -0.8,
    "refused": -0.24,
    "denies_too": 2.15,
    "denial_missed": -1.1,
}
"""Of the logistic regression for everything else."""
BIAS = -1.58

FITTED_ON = frozenset(["evouna-nq", "halluqa-zh"])
"""The labelled sets of which half was fitted on."""
_SEED = b"ctxbench rules 1:"


def half(question: str) -> int:
    """0 for the questions of FITTED_ON that the constants were fitted on, 1 for those that were only graded."""
    return hashlib.sha256(_SEED + question.encode("utf-8", "surrogatepass")).digest()[0] & 1


def likely(features: dict[str, float]) -> float:
    """The logistic regression's answer: how likely people are to find this right."""
    return 1 / (1 + exp(-BIAS - sum(WEIGHTS[name] * value for name, value in features.items())))
