"""Bills by conversation: of pieces of a run as of the whole, and read again from beside it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import pandas as pd
import pytest

from ctxbench.harness.bill import conversations, pieces
from ctxbench.harness.bill.bill import bill
from ctxbench.harness.bill.conversations import conversation_bills
from ctxbench.harness.bill.requests import RunRequests
from ctxbench.harness.bill.simulation import Scheme, simulated
from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder.run import Run, load
from ctxbench.metrics.prices import BUNDLED, Prices
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.model import Call, Conversation, Usage
from tests.harness.runs import plan, recording

SCHEMES = [Scheme(model) for model in ("claude-sonnet-5", "gpt-5.6")]
STRATEGIES = ("none", "window(max_tokens=400)", "summary(every=2)")


def run_of(folder: Path, meta: dict[str, str] | None = None) -> Run:
    """A run of eight conversations in three shards, whose first prompts say that something stood before them."""
    path = recording(folder, conversations=8, turns=6)
    said = [msgspec.json.decode(line, type=Conversation) for line in path.read_bytes().splitlines()]
    lines = []
    for number, each in enumerate(said):
        messages = list(each.messages[1:])
        for at, tokens in ((1, 500), (3, 900 + 40 * number)):
            usage = Usage(input=tokens, output=10)
            messages[at] = msgspec.structs.replace(messages[at], call=Call(model="claude-sonnet-5", usage=usage))
        lines.append(msgspec.structs.replace(each, messages=tuple(messages), meta=meta or {}).to_json())
    path.write_bytes(b"\n".join(lines))
    execute(plan(path, strategies=STRATEGIES), folder / "run")
    return load(folder / "run")


@pytest.fixture
def small_pieces(small_shards: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of a shard each."""
    monkeypatch.setattr("ctxbench.harness.bill.requests.AT_ONCE", 1)


@pytest.mark.usefixtures("small_pieces")
def test_pieces_have_the_bill_of_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rows to the last digit, though token factors and hidden prefixes are estimated from all of a run."""
    run = run_of(tmp_path)
    assert len(list(RunRequests(run).pieces())) == 3
    assert RunRequests(run).hidden
    cut = conversation_bills(run, SCHEMES)
    monkeypatch.setattr("ctxbench.harness.bill.requests.AT_ONCE", 1_000_000)
    whole = bill(run, SCHEMES).conversations()
    pd.testing.assert_frame_equal(cut, whole, check_exact=True)
    assert whole.cost_own.gt(0).any()


@pytest.mark.usefixtures("small_pieces")
def test_they_are_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next command reads the same rows, and bills nothing; under other prices they are made anew."""
    run = run_of(tmp_path)
    first = conversation_bills(run, SCHEMES)
    billed = []
    monkeypatch.setattr(conversations, "bill", lambda *values: billed.append(values) or bill(*values))
    pd.testing.assert_frame_equal(conversation_bills(load(run.folder), SCHEMES), first, check_exact=True)
    assert not billed
    monkeypatch.setattr(pieces, "cores", lambda: 1)
    batch = conversation_bills(run, SCHEMES, Prices(batch=True))
    assert billed
    assert 0 < batch.cost.sum() < first.cost.sum()


def digests(run: Run) -> dict[str, str]:
    """Digests of the tables that are stored beside a run; they are removed."""
    files = sorted((run.folder / "bills").glob("*.parquet"))
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    for path in files:
        path.unlink()
    return found


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("of_calls", [False, True])
def test_workers_store_the_same_bytes(of_calls: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bills by conversation and usages by call do not depend on the number of processes; each is counted once."""
    run = run_of(tmp_path)
    stored, counts = [], []
    for number in (1, 2, 3):
        monkeypatch.setattr(pieces, "cores", lambda number=number: number)
        if of_calls:
            counted: list[int] = []
            simulated(RunRequests(load(run.folder)), SCHEMES, lambda counted=counted: counted.append(1))
            counts.append(len(counted))
        else:
            conversation_bills(load(run.folder), SCHEMES)
        stored.append(digests(run))
    assert len(stored[0]) == 3 * len(SCHEMES) + (0 if of_calls else len(SCHEMES))
    assert stored[1] == stored[0]
    assert stored[2] == stored[0]
    assert counts == [8 * len(STRATEGIES)] * 3 * of_calls


@pytest.mark.usefixtures("small_pieces")
def test_a_shared_cache_is_not_cut(tmp_path: Path) -> None:
    """Conversations that share a cache are billed together, whatever shards they are in."""
    run = run_of(tmp_path, {"shares_cache": "desk"})
    assert len(list(RunRequests(run).pieces())) == 1
    pd.testing.assert_frame_equal(conversation_bills(run, SCHEMES), bill(run, SCHEMES).conversations())


def test_a_model_without_a_price(tmp_path: Path) -> None:
    """It is not free."""
    execute(plan(recording(tmp_path, conversations=1, turns=2), strategies=("none",)), tmp_path / "run")
    with pytest.raises(RunError, match="gpt-9000"):
        conversation_bills(load(tmp_path / "run"), [Scheme("gpt-9000")], BUNDLED)
