"""C15: which facts are chosen, by similarity and confidence or by confidence alone (design document 002)."""

from __future__ import annotations

import numpy as np

from ...metrics.retrieval import recall
from ...metrics.statistics.bootstrap import Floats
from ...metrics.statistics.interval import Interval
from ...metrics.value import Missing
from .claim import Claim, Claimed, Measured, Row
from .figures import of_sums, paired
from .inputs import Inputs

LIMIT = 15
"""Facts that are injected, in both: 002's number before the change."""
OURS = f"facts(limit={LIMIT})"
SURE = f"facts(similarity=0.0, confidence=1.0, limit={LIMIT})"
SIMILAR = f"facts(similarity=1.0, confidence=0.0, limit={LIMIT})"
WEIGHTS = {OURS: "0.6 similarity + 0.4 confidence", SURE: "confidence alone", SIMILAR: "similarity alone"}


def weighed(inputs: Inputs) -> Measured:
    """Evidence recall: of the messages that an answer rests on, those that an injected fact was taken from."""
    found = {name: _recalls(inputs, name) for name in WEIGHTS}
    rows = []
    for other, decides in ((SURE, True), (SIMILAR, False)):
        rows.append(
            Row(
                setting=f"{WEIGHTS[OURS]} − {WEIGHTS[other]}",
                figure=f"difference in evidence recall of {LIMIT} facts",
                unit="points",
                found=paired(found[other], found[OURS], "ratio"),
                claimed=Claimed(least=0.0, above=True),
                of=inputs.of,
                decides=decides,
            )
        )
    for name, sums in found.items():
        rows.append(_plain(name, of_sums(sums, "ratio"), inputs))
    return Measured(
        tuple(rows),
        f"At most {LIMIT} facts and 2,000 tokens in all three. Facts are taken from what users and final answers say, "
        "so evidence in tool results is found by none.",
        "More conversations with probes about what was said, not about what tools returned.",
    )


def _plain(name: str, found: Interval | Missing, inputs: Inputs) -> Row:
    return Row(
        setting=WEIGHTS[name],
        figure=f"evidence recall of {LIMIT} facts",
        unit="share",
        found=found,
        of=inputs.of,
        decides=False,
    )


def _recalls(inputs: Inputs, strategy: str) -> Floats:
    """By conversation of the run: the recalls of its probes with evidence, summed, and how many these are."""
    run = inputs.run_of(strategy)
    at = {name: place for place, name in enumerate(inputs.figures.digests)}
    sums = np.zeros((len(at), 2))
    rows = run.probes(strategy)
    for conversation, evidence, recalled in zip(rows.conversation, rows.evidence, rows.recalled, strict=True):
        found = recall([] if recalled is None else list(recalled), list(evidence), LIMIT)
        if not isinstance(found, Missing):
            sums[at[str(conversation)]] += found, 1
    return sums


CLAIMS = (
    Claim(
        "C15",
        "Similarity and confidence pick more relevant facts than confidence alone",
        "002",
        "evidence recall of the facts injected for each probe, at the same number of facts and tokens",
        weighed,
        (OURS, SURE, SIMILAR),
    ),
)
