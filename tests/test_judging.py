"""Each case that was judged wrong once is judged right now, and docs/judging.md shows it."""

from pathlib import Path

import pytest

from tests.judging import OTHERS, PAGE, Case, Made, row


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("judging"))


@pytest.mark.parametrize("case", [case for cases in OTHERS.values() for case in cases], ids=lambda case: case.name)
def test_what_is_said_now_is_right(case: Case, made: Made) -> None:
    """And the page says the same: `python -m tests.judging --write` renews it."""
    now = case.now(made)
    assert now[1], now[0]
    assert row(case, now) in Path(PAGE).read_text()
