"""`ctxbench lab tiers working`, as a user runs it, bad specs of every tier, and miss ratios of a run's recordings."""

import json
from pathlib import Path

import pytest

from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder.run import load
from ctxbench.harness.tier_bench.working import BOUND, POLICIES, SIZES, miss_ratios
from tests.builders import talk
from tests.harness.command import ctxbench
from tests.harness.runs import plan

TWO = "policies=['lru', 'lru_k(correlated=20)']"


def test_the_documents_load_beside_its_bounds(tmp_path: Path) -> None:
    """Over 90 % is asked for; the table says that it cannot be had, and by what bound."""
    done = ctxbench("lab", "tiers", f"working(seeds=2, {TWO})", cwd=tmp_path)
    lines = done.stdout.splitlines()
    assert lines[1].startswith("mem_002, cache of 131,072 tokens: 2 seeds, 1,000 look-ups and 1.98M tokens each")
    heads = next(at for at, line in enumerate(lines) if line.startswith("policy"))
    names = [line.split()[0] for line in lines[heads + 1 : heads + 5]]
    assert names == ["lru", "lru_k(correlated=20)", "bound", "popularity"]
    assert "A hit rate over 90.0 % is out of reach here without seeing the future" in done.stdout


def test_two_specs_as_json_twice_the_same(tmp_path: Path) -> None:
    """A scenario's conversations are the samples; the figures are exact, and the same each time."""
    specs = [f"working(trace='{trace}', capacity=3000, seeds=1, {TWO})" for trace in ("smoke", "mem_002")]
    done = ctxbench("lab", "tiers", *specs, "--json", cwd=tmp_path)
    assert done.stdout == ctxbench("lab", "tiers", *specs, "--json", cwd=tmp_path).stdout
    smoke, generated = json.loads(done.stdout).values()
    assert (smoke["load"], smoke["of"], generated["load"]) == ("smoke", "conversation", "mem_002")
    assert "go back to nothing" in done.stderr
    for measured in (smoke, generated):
        assert len(measured["rows"]) == 2
        for row in measured["rows"]:
            assert row["hit_rate"]["mean"] <= measured["bounds"]["hit_rate"] + 1e-9


def test_where_everything_fits_it_says_so(tmp_path: Path) -> None:
    """No policy can be told from another there."""
    done = ctxbench("lab", "tiers", f"working(trace='smoke', {TWO})", cwd=tmp_path)
    assert "Everything fits: nothing is ever evicted" in done.stdout


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("workin", "unknown tier 'workin'; did you mean 'working'"),
        ("working(trace='zpf')", "did you mean 'zipf'?"),
        ("working(trace='no/such.jsonl')", "there is no such file or folder"),
        ("working(policies=['lruk'])", "unknown policy 'lruk'; did you mean 'lru_k'"),
        ("working(policies=['lru_k(k=0)'])", "k must be at least 1, not 0"),
        ("working(capacity=0)", "capacity must be at least 1"),
        ("archive(level=23)", "level must be at least 1 and at most 22"),
        ("archive(recordings='nowhere')", "no such file"),
        ("rag(retrievers=['bm52'])", "did you mean 'bm25'?"),
    ],
)
def test_bad_input_is_one_error(tmp_path: Path, spec: str, said: str) -> None:
    """It names what was wrong and what there is."""
    done = ctxbench("lab", "tiers", spec, cwd=tmp_path, code=2)
    assert said in done.stderr
    assert not done.stdout


def test_recordings_that_go_back_to_nothing_are_an_error(tmp_path: Path) -> None:
    """There is nothing to look up."""
    path = tmp_path / "short.jsonl"
    path.write_text('{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]}\n')
    done = ctxbench("lab", "tiers", f"working(trace='{path}')", cwd=tmp_path, code=2)
    assert "no conversation goes back to an earlier message" in done.stderr


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


def test_one_message_gone_back_to(tmp_path: Path) -> None:
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
    assert (found["lru", 2048], found["lru", 16384]) == (1.0, 0.0)
