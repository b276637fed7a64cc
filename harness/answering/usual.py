"""What every run has: the shard's probes answered by the embedded reader, and the answers graded by rules."""

from __future__ import annotations

from pathlib import Path

from ...metrics.grading.rules import Rules
from ...metrics.tokens import TokenCounter
from ..loading import Run
from ..models import Models
from .answers import answer_shard
from .offline import Offline
from .parts import was_asked
from .questions import Probes


def answer_usually(folder: Path, shard: int, counter: TokenCounter, models: Models) -> None:
    """Answer and grade a shard whose other parts are all there; what is there already is left as it is."""
    run, name = Run(folder, shard=shard), f"{shard:05d}"
    if was_asked(folder, name):
        answer_shard(run, name, Offline(counter), Rules(), Probes(run, models))
