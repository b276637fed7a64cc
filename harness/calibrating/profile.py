"""What is kept of a grader's calibration: figures and counts, no text of the labelled set."""

from __future__ import annotations

import msgspec

from ...metrics.grading.agreement import Agreement, Estimate
from ...metrics.grading.corrected import Known, corrected
from ...metrics.statistics.bootstrap import Ends
from ...metrics.value import Missing, Value
from .labels import Sample

SCHEMA = 1
"""To be raised when a profile of before would be read wrongly."""


class Threshold(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A threshold of the grader's scores, learned on one half of the questions and tried on the other.

    It is the one with the highest kappa. `own_…` is the grader's own verdict on the same other half. All are Missing if
    there is none.
    """

    threshold: Value
    learned_on: int
    """Answers."""
    tried_on: int
    accuracy: Estimate
    kappa: Estimate
    own_accuracy: Estimate
    own_kappa: Estimate


class Flips(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How often one attack had the verdict that it wanted."""

    attack: str
    tried: int
    flipped: int
    interval: Ends | Missing
    missing: int = 0
    """Attacked answers that were not graded."""


class Injection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Answers that speak to the grader (`harness/grading/attacks.py`)."""

    answers: int
    raised: tuple[int, int]
    """Of attacks on answers graded wrong: tried, and turned to right."""
    lowered: tuple[int, int]
    """The same of answers graded right."""
    missing: int
    share: Estimate
    """Of attacks, those that turned the verdict; the interval is by question."""
    attacks: tuple[Flips, ...]


class Cost(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the grader's model calls cost, replayed or not, at the prices of the bundled map."""

    calls: int
    input_tokens: int
    output_tokens: int
    dollars: float
    unpriced: int = 0
    """Calls whose price is not known: they are not in the dollars."""


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How well a grader agrees with the labels of one set."""

    schema: int = SCHEMA
    grader: str
    """Its name, with all that its grades depend on."""
    set: str
    digest: str
    """Of the whole labelled set."""
    labelled_by: str
    """`people`, `model`, or `people and model`."""
    only: dict[str, str] = {}
    """The part of the set that was graded: `{"language": "zh"}`."""
    sample: Sample | None = None
    date: str = ""
    """As the user gave it."""
    asked: int
    """Answers that the grader was given."""
    missing: dict[str, int]
    """Answers without a grade, by reason. They are in no other figure."""
    whole: Agreement
    held_out: Agreement | None = None
    """Over the answers that the grader was not fitted on; None if it was fitted on none of this set."""
    by: dict[str, dict[str, Agreement]]
    """By language, kind or system, where there are several."""
    threshold: Threshold
    injection: Injection | None = None
    cost: Cost | None = None
    """None = it asks no model."""

    @property
    def quoted(self) -> Agreement:
        """What is said of the grader elsewhere: nothing that it was fitted on."""
        return self.held_out or self.whole

    @property
    def graded(self) -> int:
        """Answers with a grade."""
        return self.whole.answers

    def to_json(self) -> bytes:
        """The same bytes for the same figures."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"


def corrected_by(profile: Profile, share: float, answers: float) -> Estimate:
    """The share of right answers where the grader calls `share` of `answers` right (`metrics/grading/corrected.py`).

    `answers` that are not independent are to be given as the number that they are worth.
    """
    known = Known.of(profile.quoted)
    return Estimate(known, known) if isinstance(known, Missing) else corrected(share, answers, known)
