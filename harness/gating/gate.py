"""From what was compared and a policy to whether it passes. Pure functions: printing and exit codes are elsewhere.

fails       worse, lost; cannot tell, if the policy says so
must mend   incomparable: nobody can say whether it passes until the baseline is made anew
passes      better, same, new; cannot tell, if the policy does not say otherwise
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

from ...metrics.statistics.verdict import Word
from .comparing import Compared, Comparison, compare
from .measured import Measured
from .policy import REST, Policy
from .unpaired import Unpaired, strategies

FAILS: tuple[Word, ...] = ("worse", "lost")

Result = Literal["passes", "fails", "must be mended"]
CODES: dict[Result, int] = {"passes": 0, "fails": 1, "must be mended": 2}
"""Exit codes."""


@dataclass(frozen=True, slots=True)
class Gate:
    """The gate's answer."""

    compared: Compared
    policy: Policy
    not_guarded: tuple[str, ...]
    """Metrics of the baseline of which the policy asks nothing."""
    unknown: tuple[str, ...]
    """Metrics and strategies that the policy names and the baseline does not have: nobody can say whether they got
    worse."""

    @property
    def failing(self) -> tuple[Comparison, ...]:
        """The comparisons that fail it."""
        words = (*FAILS, "cannot tell") if self.policy.cannot_tell == "fail" else FAILS
        return tuple(each for each in self.compared.comparisons if each.verdict.word in words)

    @property
    def gone(self) -> tuple[Unpaired, ...]:
        """Conversations and strategies that were measured and are not any more: they fail it too."""
        return tuple(each for each in self.compared.unpaired if each.word == "lost")

    @property
    def incomparable(self) -> tuple[Comparison | Unpaired, ...]:
        """What is another thing than in the baseline."""
        metrics = [each for each in self.compared.comparisons if each.verdict.word == "incomparable"]
        return (*metrics, *(each for each in self.compared.unpaired if each.word == "incomparable"))

    @property
    def result(self) -> Result:
        """What fails is said first: it stays true when the baseline is made anew."""
        if self.failing or self.gone:
            return "fails"
        return "must be mended" if self.incomparable or self.unknown else "passes"


def gate(baseline: Measured, run: Measured, policy: Policy) -> Gate:
    """Compare a run with a baseline. Raises RunError if there is nothing to compare."""
    guarded = policy.strategies or tuple(baseline.sums)
    pairs = [(name, name) for name in guarded if name in baseline.sums and name in run.sums]
    compared = compare(baseline, run, pairs, policy.rule)
    apart = [each for each in (_of(found, guarded) for found in strategies(baseline, run)) if each.names]
    asked = {name for name in policy.metrics if name != REST}
    left = () if REST in policy.metrics else tuple(sorted(name for name in baseline.metrics if name not in asked))
    unknown = (*sorted(asked - baseline.metrics.keys()), *(name for name in guarded if name not in baseline.sums))
    return Gate(replace(compared, unpaired=(*apart, *compared.unpaired)), policy, left, unknown)


def _of(found: Unpaired, guarded: Collection[str]) -> Unpaired:
    """What is lost, of the strategies that are guarded; all that is new."""
    if found.word == "new":
        return found
    return found._replace(names=tuple(name for name in found.names if name in guarded))
