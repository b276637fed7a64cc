"""Labelled answers and graders made for tests."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ctxbench.harness.graders.llm import GraderUsage
from ctxbench.metrics.grading import Grade, GradedItem
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.labelled import Labelled

SYSTEMS = ("a", "b", "c")


def labelled(
    questions: int = 80, systems: Sequence[str] = SYSTEMS, name: str = "made", seed: int = 0
) -> list[Labelled]:
    """Answers `yes` and `no` to questions that only `yes` is right for; every second question is Chinese."""
    random = np.random.default_rng(seed)
    ease = random.random(questions)
    return [
        Labelled(
            id=f"q{at}-{system}",
            set=name,
            question=f"is {at}?",
            accepted=("yes",),
            candidate=f"{'yes' if right else 'no'} {random.integers(1000)}",
            correct=bool(right),
            group=f"q{at}",
            system=system,
            language="zh" if at % 2 else "en",
        )
        for at in range(questions)
        for system, right in zip(systems, random.random(len(systems)) < ease[at], strict=True)
    ]


@dataclass
class Stub:
    """Grades by a function of the item; takes note of what it is asked."""

    by: Callable[[GradedItem], Grade | Missing]
    name: str = "stub(1)"

    def __post_init__(self) -> None:
        self.batches: list[int] = []

    def grade(self, items: Sequence[GradedItem]) -> list[Grade | Missing]:
        self.batches.append(len(items))
        return [self.by(item) for item in items]


class Paid(Stub):
    """One that pays a cent a grade."""

    def __init__(self, by: Callable[[GradedItem], Grade | Missing]) -> None:
        super().__init__(by, "paid(model='m', prompt='abc')")
        self.used = GraderUsage()

    def grade(self, items: Sequence[GradedItem]) -> list[Grade | Missing]:
        for _ in items:
            self.used.add(100, 10, 0.01)
        return super().grade(items)


def says_yes(item: GradedItem) -> Grade:
    """Right is what begins with yes."""
    right = item.candidate.startswith("yes")
    return Grade(right, float(right))


def unsure(item: GradedItem) -> Grade | Missing:
    """One of ten answers it does not grade, one of ten it grades wrongly."""
    last = item.candidate[-1]
    right = item.candidate.startswith("yes") != (last == "1")
    return Missing("failed", f"no reply in {last} s") if last == "0" else Grade(right, float(right))
