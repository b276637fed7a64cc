"""C16, C17: how wrong the usual estimate of tokens is, and how long counting takes (design document 002)."""

from __future__ import annotations

from collections import defaultdict
from time import perf_counter

from ...metrics.estimate import estimates
from ...metrics.tokens import text_counter
from .claim import Claim, Claimed, Measured, Row, shown
from .figures import of_groups
from .inputs import Inputs

ENCODING = "cl100k_base"
"""002's."""
OFF = 0.25
SIZES = {"a fact: 1 to 200 characters": (1, 200), "201 to 2,000": (201, 2_000), "2,001 to 20,000": (2_001, 20_000)}
REST = "over 20,000"
TEXTS, ROUNDS = 400, 5
"""Texts of each size that are timed, and how often each: the fastest counts."""


def estimate(inputs: Inputs) -> Measured:
    """C16. The error of `len // 4` summed over a conversation's texts, by language and kind."""
    rows = _errors(inputs, ENCODING, True)
    if inputs.counter.encoding != ENCODING:
        rows += _errors(inputs, inputs.counter.encoding, False)
    every = estimates((message for said in inputs.said for message in said.messages), text_counter(ENCODING))
    single = "; ".join(
        f"{each.language} {each.content} {shown(each.p10, 'share')} to {shown(each.p90, 'share')}" for each in every
    )
    return Measured(
        tuple(rows),
        f"The estimate less the exact count, as a share of it. Of single texts, 10th to 90th percentile: {single}.",
        "An estimate that knows the language, or an exact count.",
    )


def _errors(inputs: Inputs, encoding: str, decides: bool) -> list[Row]:
    count = text_counter(encoding)
    sums: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for said in inputs.said:
        for each in estimates(said.messages, count):
            sums[f"{each.language} {each.content}"].append((each.total * each.tokens, float(each.tokens)))
    return [
        Row(
            setting=f"{name}, {encoding}",
            figure="error of len // 4",
            unit="share",
            found=of_groups(pairs),
            claimed=Claimed(least=-OFF, most=OFF),
            of=f"{len(pairs)} conversations",
            decides=decides,
        )
        for name, pairs in sorted(sums.items())
    ]


def counted(inputs: Inputs) -> Measured:
    """C17. Each text on its own, without what the harness remembers."""
    count = text_counter(inputs.counter.encoding)
    rows = []
    for name, texts in _by_size(inputs).items():
        pairs = [(sum(_fastest(count, text) for text in some), float(len(some))) for some in texts]
        rows.append(
            Row(
                setting=name,
                figure="time to count a text",
                unit="us",
                found=of_groups(pairs),
                claimed=Claimed(most=100.0),
                of=f"{sum(map(len, texts))} texts",
                decides=name.startswith("a fact"),
                timed=True,
            )
        )
    return Measured(
        tuple(rows),
        "What 002 counts is facts, a line each. Less than 10 µs is faster than claimed. tiktoken is not timed: ours "
        "(quicktok) counts the same, faster.",
        "A faster machine, or shorter texts.",
    )


def _by_size(inputs: Inputs) -> dict[str, list[list[str]]]:
    """By size and conversation, some texts."""
    made: dict[str, list[list[str]]] = {name: [] for name in (*SIZES, REST)}
    most = max(1, TEXTS // max(1, len(inputs.said)))
    for said in inputs.said:
        each: dict[str, list[str]] = defaultdict(list)
        for text in dict.fromkeys(message.text for message in said.messages if message.text):
            size = next((name for name, (low, high) in SIZES.items() if low <= len(text) <= high), REST)
            if len(each[size]) < most:
                each[size].append(text)
        for size, texts in each.items():
            made[size].append(texts)
    return {size: texts for size, texts in made.items() if texts}


def _fastest(count: object, text: str) -> float:
    """Microseconds."""
    assert callable(count)
    best = float("inf")
    for _ in range(ROUNDS):
        began = perf_counter()
        count(text)
        best = min(best, perf_counter() - began)
    return best * 1e6


CLAIMS = (
    Claim(
        "C16",
        "`len // 4` is off by up to ±25 %",
        "002",
        "its error by language and kind of text, against exact counts",
        estimate,
    ),
    Claim("C17", "Counting tokens takes 10–100 µs", "002", "benchmark by length of text", counted),
)
