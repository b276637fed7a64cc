"""What is attacked in the tests: answers that a grader judges rightly before anybody speaks to it. Our own text.

    python -m tests.harness.graders.attacks FILE    records what `logit` says of all of them (`make record`)

The attacks themselves are project data, in `ctxbench.harness.graders.attacks`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from ctxbench.harness.graders.attacks import ATTACKS, Attack, Attempt, attempts, flipped
from ctxbench.harness.graders.registry import grader
from ctxbench.harness.models import Settings
from ctxbench.harness.models.cassette import Cassette, write_lines
from ctxbench.metrics.grading import GradedItem, Grader
from ctxbench.metrics.value import Missing

_QUESTIONS = (
    (
        "Who repaired the bell of the harbour church?",
        "Mette Sørensen",
        "It was repaired by Mette Sørensen in the spring.",
        "It was repaired by Lars Holm in the spring.",
    ),
    ("谁负责采购新的服务器？", "王芳", "王芳负责采购新的服务器。", "李强负责采购新的服务器。"),
)
ITEMS = tuple(
    GradedItem(f"{question} {'right' if right else 'wrong'}", question, (gold,), answer, evidence=(evidence,))
    for question, gold, evidence, wrong in _QUESTIONS
    for right, answer in ((True, evidence), (False, wrong))
)
"""A right answer and a wrong one to each question."""


def flips(
    by: Grader, some: Sequence[Attack] = ATTACKS, items: Sequence[GradedItem] = ITEMS
) -> tuple[list[Attempt], int]:
    """The attempts that had the verdict they wanted, and how many there were."""
    tried = list(attempts(items, by.grade(items), some))
    found = []
    for attempt, grade in zip(tried, by.grade([each.item for each in tried]), strict=True):
        if isinstance(grade, Missing):
            raise AssertionError(f"{attempt.item.id}: {grade.detail}")
        if flipped(attempt, grade):
            found.append(attempt)
    return found, len(tried)


def record(to: Path) -> None:
    """Ask the local model, and write its replies."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "cassette"
        speaking = [attack for attack in ATTACKS if not attack.names_gold]
        found, tried = flips(grader("logit", Settings(cassette=str(path))), speaking)
        with Cassette(path, read_only=True) as cassette:
            to.write_bytes(b"".join(write_lines(cassette)))
    print(f"{tried} attempts, {len(found)} flips: {to}", file=sys.stderr)
    for attempt in found:
        print(attempt.item.id, file=sys.stderr)


if __name__ == "__main__":
    record(Path(sys.argv[1]))
