"""`ctxbench lab tiers archive`, as a user runs it, embeddings in codes, and what cannot be measured of few messages."""

import json
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from ctxbench.harness.tier_bench.archive import ArchiveBench, ArchiveMeasurement, Coded, coded
from ctxbench.harness.tier_bench.bench import BenchSetup
from ctxbench.metrics.value import Missing
from ctxbench.reports.tiers import tables
from ctxbench.scenarios.errors import MissingExtra
from ctxbench.scenarios.model import Conversation, Probe
from tests.builders import talk
from tests.harness.command import ctxbench
from tests.harness.runs import recording


def measured(folder: Path, *conversations: Conversation) -> ArchiveMeasurement:
    """Return the measurement of conversations at a low level."""
    file = folder / "said.jsonl"
    file.write_bytes(b"".join(conversation.to_json() + b"\n" for conversation in conversations))
    return ArchiveBench(str(file), level=1).measure(BenchSetup(folder))


def test_the_tables_and_the_json(tmp_path: Path) -> None:
    """Lossless and lossy stand apart, and every coder has a row."""
    path = recording(tmp_path, conversations=2, turns=6, size=40)
    spec = f"archive(recordings='{path.name}', level=3, dictionary='none')"
    printed = ctxbench("lab", "tiers", spec, cwd=tmp_path).stdout
    for title in ("Lossless: messages", "Lossless: texts alone", "Lossy: summaries", "Speed"):
        assert title in printed
    for coder in ("zstd -9", "xz -9e", "brotli 11", "zstd -22 --long", "order-5 model", "archive"):
        assert coder in printed
    found = json.loads(ctxbench("lab", "tiers", spec, "--json", cwd=tmp_path).stdout)
    assert (found[spec]["coding"]["level"], found[spec]["coding"]["dictionary"]) == (3, "none")
    assert sorted(each.name for each in tmp_path.iterdir()) == [path.name]


def test_what_cannot_be_read_is_said_and_the_rest_is_measured(tmp_path: Path) -> None:
    """A broken file is named on standard error, and is in the exit code."""
    path = recording(tmp_path, conversations=1, turns=3, size=9)
    (tmp_path / "broken.jsonl").write_text('{"ctxbench": "1", "id": 7}\n')
    done = ctxbench("lab", "tiers", f"archive(recordings=['{path.name}', 'broken.jsonl'])", cwd=tmp_path, code=2)
    assert "left out: broken.jsonl: no known format fits" in done.stderr
    assert "1 conversation," in done.stdout


def test_few_messages_and_none(tmp_path: Path) -> None:
    """A measurement of nothing gives reasons in place of figures, divides nothing by 0, and still makes its tables."""
    short = measured(tmp_path, talk(("user", "Hi"), ("assistant", "Hello")))
    assert isinstance(short.vectors, Missing)
    empty = measured(tmp_path, talk(("user", ""), name="one"), talk(("user", ""), name="two"))
    assert isinstance(empty.summary, Missing)
    assert tables(short)
    assert tables(empty)


pytest.importorskip("faiss")
SAID = talk(*[("user", f"row {at} holds {at * 7919 % 1000} of the {at % 13} kinds") for at in range(700)])
SAID = replace(SAID, probes=tuple(Probe(f"p{at}", f"which row holds {at * 31}?", ("1",)) for at in range(20)))


def test_16_to_1_and_what_it_loses() -> None:
    """A code is a sixteenth of its vector; it loses recall, and re-ranking gives it back."""
    found = coded([SAID])
    assert isinstance(found, Coded)
    assert found.bytes_each == found.width * 4 // 16
    assert found.recall[0] < min(found.recall[100], found.recall[200])


def test_without_faiss(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is named."""
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingExtra, match=r"pip install 'ctxbench\[tiers\]'"):
        coded([SAID])
