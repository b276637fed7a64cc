"""A text is read in pieces that depend on what stands before their ends, and on nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxbench.harness.models.local import PIECE, starts

LINE = "x" * PIECE

texts = st.lists(st.sampled_from([LINE, "short", "\n", " ", "用户：你好" * 90, "y" * (PIECE - 2)])).map("\n\n".join)


def test_a_piece_ends_after_an_empty_line() -> None:
    """Once it is long enough, a piece ends at the next empty line; what follows the last is in none."""
    assert starts(f"{LINE}\n\nshort\n\n{LINE}\n\nend") == [f"{LINE}\n\n", f"{LINE}\n\nshort\n\n{LINE}\n\n"]
    assert starts("short\n\nshort") == starts(LINE * 9) == starts("") == starts(f"{LINE}\n\n") == []


@given(texts, texts, texts)
def test_what_follows_moves_no_end(before: str, one: str, other: str) -> None:
    """Two texts with the same start have all pieces in common that end in it."""
    first, second = (starts(f"{before}\n\nuser: {end}") for end in (one, other))
    within = [each for each in first if len(each) <= len(before) + 2]
    assert second[: len(within)] == within
