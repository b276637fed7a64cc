"""Where marks are put, by hand."""

import pytest

from ctxbench.metrics.cache.requests import PLACEMENTS, MessageSizes, RequestStep, requests
from ctxbench.metrics.tokens import PRIMING

ROLES = ("system", "system", "user", "assistant", "tool", "tool", "assistant", "user")
TOKENS = (2000, 500, 10, 10, 10, 10, 10, 10)
WHOLE = [(0, 8)]


def step(kept: int, added: list[tuple[int, int]], sent: list[int], *marks: int) -> RequestStep:
    return RequestStep(kept, added, (), sum(TOKENS[each] for each in sent) + PRIMING, marks, 0.0, 0.0, 7, 1)


def blocks(placement: str, steps: list[RequestStep]) -> list[list[int]]:
    """Messages after which a mark is put, at each step; blocks 0 and 1 are the tools."""
    place = PLACEMENTS[placement]()
    return [[mark.block - 2 for mark in place(asked)] for asked in requests(steps, MessageSizes(TOKENS, ROLES, 0))]


@pytest.mark.parametrize(
    ("placement", "marks"),
    [
        *(("automatic", [7]), ("hour", [7]), ("marked", []), ("document", [0]), ("system", [1])),
        *(("tail", [1, 5, 7]), ("anchor", [1, 7])),
    ],
)
def test_a_whole_prompt(placement: str, marks: list[int]) -> None:
    """Two system messages, one of them long, a row of two results, a question at the end."""
    assert blocks(placement, [step(0, WHOLE, list(range(8)))]) == [marks]


def test_the_strategy_s_own_marks() -> None:
    """They go before the automatic one; of more than four the last four count."""
    steps = [step(0, WHOLE, list(range(8)), 0, 1, 2, 3, 5)]
    assert blocks("automatic", steps) == blocks("marked", steps) == [[1, 2, 3, 5]]


def test_the_anchor_stands_before_what_is_rewritten() -> None:
    """A prompt that dropped its third message, as the one before it did, is marked before that; else at its end."""
    steps = [
        step(0, [(0, 5)], list(range(5))),
        step(2, [(3, 6)], [0, 1, 3, 4, 5]),
        step(2, [(4, 6)], [0, 1, 4, 5]),
        step(4, [(6, 8)], [0, 1, 4, 5, 6, 7]),
    ]
    assert blocks("anchor", steps) == [[1, 4], [1, 4], [1], [1, 5]]
