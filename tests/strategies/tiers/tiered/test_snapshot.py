"""All four tiers to one file and back: the same calls do the same, and a file that is not right is refused."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.scenarios.embedded import scenario
from ctxbench.scenarios.model import Message
from ctxbench.strategies.events import Event, LimitReached
from ctxbench.strategies.tiers.archive.part import checksum
from ctxbench.strategies.tiers.jobs import Trigger
from ctxbench.strategies.tiers.tiered import Tiered
from ctxbench.strategies.tiers.tiered.snapshot import HEAD, SnapshotError, load, save
from ctxbench.strategies.tiers.tiered.tiers import Tiers
from tests.examples import examples
from tests.strategies.tiers.tiered.builders import Talk, memory

RULES = [
    Tiered(working=60, archive=160),
    Tiered(working=60, archive=160, policy="lru_k(correlated=2)", preload=True, tune=True, collect=True),
    Tiered(working=60, archive=80, rag=60, archive_policy="fifo", policy="hybrid", retrievers=("bm25", "graph")),
    Tiered(tiers=3, working=60, archive=80, policy="arc"),
]
SHARED = "/dev/shm" if Path("/dev/shm").is_dir() else None
STEPS = st.lists(st.tuples(st.sampled_from("sskrrfq"), st.integers(0, 20), st.integers(0, 2)), max_size=50)


def unheard(event: Event) -> None:
    """Nobody listens."""


class Bench:
    """Tiers, and what was done with them."""

    def __init__(self, rules: Tiered) -> None:
        self.events: list[Event] = []
        self.tiers = Tiers(rules, self.events.append)

    def act(self, what: str, number: int, version: int) -> object:
        tiers, id = self.tiers, f"m{number}"
        now = tiers.tick(None)
        if what == "s":
            tiers.add(Message(id, "user", f"number {number} has the value V-{number}{version}"), 10, now)
        elif what == "k":
            tiers.keep({f"m{each}" for each in range(number)}, now)
        elif what == "r" and id in tiers:
            return tiers.read(id, list(Trigger)[version], now)
        elif what == "f" and id in tiers:
            tiers.migration.forget(id, now)
        elif what == "q":
            return tiers.search(f"value of V-{number}{version}", 3), tiers.containing((f"V-{number}{version}",))
        tiers.run(now, number / 20)
        return None


@pytest.mark.parametrize("rules", RULES, ids=lambda rules: rules.policy)
@examples(25)
@given(steps=STEPS, cut=st.integers(0, 50))
def test_the_same_calls_do_the_same(rules: Tiered, steps: list[tuple[str, int, int]], cut: int) -> None:
    """At any point: the same answers and events after it, and in the end the same file, but for what was due."""
    one, other = Bench(rules), Bench(rules)
    for step in steps[:cut]:
        one.act(*step)
    with TemporaryDirectory(dir=SHARED) as folder:
        save(one.tiers, Path(folder) / "a")
        other.tiers = load(Path(folder) / "a", other.events.append)
        save(other.tiers, Path(folder) / "b")
        first = [(Path(folder) / name).read_bytes() for name in "ab"]
        one.events.clear()
        for step in steps[cut:]:
            assert one.act(*step) == other.act(*step)
        assert one.events == other.events
        for name, each in (("a", one), ("b", other)):
            now = each.tiers.tick(1_000)
            each.tiers.run(now, 0.5)
            save(each.tiers, Path(folder) / name)
        assert (Path(folder) / "a").read_bytes() == (Path(folder) / "b").read_bytes()
        assert len(first[0]) >= len(first[1])


MORE = [
    {},
    {"truncation": "importance", "policy": "lru_k_document", "preload": True},
    {"retrievers": ("vector", "bm25")},
]


@pytest.mark.parametrize("more", MORE)
def test_a_conversation_goes_on(tmp_path: Path, more: dict[str, object]) -> None:
    """Saved between two calls and gone on with by a new process: the same contexts and events to the end."""
    tiered = Tiered(limit=2_000, working=2_000, archive=8_000, recall=600, **more)  # type: ignore[arg-type]
    conversation = next(scenario("mem_002", turns=90))
    calls = list(conversation.calls())
    whole = [(sent.ids, sent.events) for sent in Talk(tiered, conversation).play()]
    talk = Talk(tiered, conversation)
    half = [(sent.ids, sent.events) for sent in talk.play(calls[:60])]
    save(talk.opened.tiers, tmp_path / "tiers")
    talk.resume(load(tmp_path / "tiers", talk.services.record, talk.services.embed))
    half += [(sent.ids, sent.events) for sent in talk.play(calls[60:])]
    first = half[60][1]
    half[60] = half[60][0], tuple(e for e in first if not (isinstance(e, LimitReached) and e.tier == "focus"))
    assert half == whole


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder in memory if possible, for tests that write thousands of files."""
    with TemporaryDirectory(dir=SHARED) as name:
        yield Path(name)


@pytest.fixture
def small(folder: Path) -> Path:
    """Write a snapshot with content in every tier."""
    tiers, _ = memory(Tiered(working=20, archive=20))
    for at in range(8):
        now = tiers.tick(None)
        tiers.add(Message(f"m{at}", "user", f"message {at}"), 8, now)
        tiers.keep({f"m{at}"}, now)
        tiers.run(now, 0.5)
    assert tiers.focus
    assert all(tiers.migration.ids(tier) for tier in ("working", "archive", "rag"))
    save(tiers, folder / "small")
    return folder / "small"


def test_altered_and_cut_files_are_refused(small: Path, folder: Path) -> None:
    """No cut and no altered byte is loaded."""
    raw, broken = small.read_bytes(), folder / "broken"
    for at in range(0, len(raw), 7):
        for data in (raw[:at], raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]):
            broken.write_bytes(data)
            with pytest.raises(SnapshotError, match="write it again"):
                load(broken, unheard)


def test_files_of_something_else(tmp_path: Path) -> None:
    """A file that is not there, one of another kind, one that says what cannot be."""
    with pytest.raises(SnapshotError, match="cannot be read"):
        load(tmp_path / "none", unheard)
    (tmp_path / "text").write_text("hello, this is something else altogether")
    with pytest.raises(SnapshotError, match="does not begin with 'ctxbench memory tiers"):
        load(tmp_path / "text", unheard)
    body = HEAD + msgspec.msgpack.encode({"rules": {"limit": 0}})
    (tmp_path / "wrong").write_bytes(body + checksum(body).to_bytes(4))
    with pytest.raises(SnapshotError, match="cannot be restored: Expected `int` >= 1"):
        load(tmp_path / "wrong", unheard)


def test_a_file_that_cannot_be_written(small: Path) -> None:
    """It is named, and nothing is left."""
    with pytest.raises(SnapshotError, match="cannot be written"):
        save(memory()[0], small.parent / "no" / "tiers")
