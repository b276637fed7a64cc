"""Miss ratios of a run's recordings: worked by hand, bounded, and empty where nothing is gone back to."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder.run import load
from ctxbench.harness.tier_bench.working import BOUND, POLICIES, SIZES, miss_ratios
from tests.builders import talk
from tests.harness.runs import plan


def test_they_fall_with_the_size_down_to_the_bound(tmp_path: Path) -> None:
    """No policy is below the bound, belady is not above LRU, a larger cache does not miss more; all look-ups count."""
    execute(plan("mem_001", strategies=("none",)), tmp_path / "run")
    found = miss_ratios(load(tmp_path / "run"))
    table = found.pivot(index="size", columns="policy", values="misses")
    assert list(table.index) == list(SIZES)
    assert set(table.columns) == {*POLICIES, BOUND}
    assert (table[BOUND] <= table["belady"] + 1e-9).all()
    assert (table["belady"] <= table["lru"] + 1e-9).all()
    assert (table.diff().dropna() <= 1e-9).all().all()
    assert found.look_ups.nunique() == 1
    assert found.look_ups.iloc[0] > 0


def test_what_goes_back_to_nothing_has_none(tmp_path: Path) -> None:
    """Two greetings refer to nothing: the table is empty, and has its columns."""
    path = tmp_path / "said.jsonl"
    said = talk(("user", "Hi."), ("assistant", "Hello."), ("user", "Bye."), ("assistant", "Bye."))
    path.write_bytes(said.to_json() + b"\n")
    execute(plan(path, strategies=("none",)), tmp_path / "run")
    found = miss_ratios(load(tmp_path / "run"))
    assert found.empty
    assert "misses" in found


@pytest.mark.parametrize("size", [2048, 16384])
def test_one_message_gone_back_to(tmp_path: Path, size: int) -> None:
    """A long message is quoted after some 3,000 tokens of others: a small cache misses it, a large one does not."""
    quote = "the spare key of the boat house lies under the third green stone"
    others = [
        (role, " ".join(f"{role}{turn}x{number}" for number in range(180)))
        for turn in range(6)
        for role in ("assistant", "user")
    ]
    path = tmp_path / "said.jsonl"
    path.write_bytes(talk(("user", quote), *others, ("assistant", f"You said: {quote}.")).to_json() + b"\n")
    execute(plan(path, strategies=("none",)), tmp_path / "run")
    found = miss_ratios(load(tmp_path / "run")).set_index(["policy", "size"]).misses
    assert found["lru", size] == (1.0 if size == 2048 else 0.0)
