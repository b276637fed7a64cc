"""What grading took."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Used:
    """Of all that a grader was asked, replayed or not: at today's prices, so that it is the same in every run."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    dollars: float = 0.0
    unpriced: int = 0
    """Calls whose price is not known."""

    def add(self, input_tokens: int, output_tokens: int = 0, cost: float | None = 0.0) -> None:
        """One answered call more."""
        self.calls += 1
        self.input_tokens += input_tokens
        self.output_tokens += output_tokens
        self.dollars += cost or 0.0
        self.unpriced += cost is None

    def take(self, other: Used) -> None:
        """All that another has."""
        self.calls += other.calls
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        self.dollars += other.dollars
        self.unpriced += other.unpriced
