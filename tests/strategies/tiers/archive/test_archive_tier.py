"""The archive as a whole, against a dict; its blocks, its dictionary, deleting, damage."""

from tempfile import TemporaryDirectory

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ctxbench.harness.probes import checkpoint
from ctxbench.scenarios.model import Message
from ctxbench.strategies.tiers.archive import ArchivedMessage, ArchiveTier, BlockTable, Coding, Damaged
from tests.examples import examples
from tests.strategies.tiers.archive.builders import MESSAGES, SMALL, item, items

IDS = st.integers(0, 30).map(lambda number: f"talk/{number}")


class AgainstADict(RuleBasedStateMachine):
    """An archive does what a dict does, whatever is put, deleted, cleaned, sealed, closed and opened again."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.there: dict[str, ArchivedMessage] = {}
        self.now = 0.0

    @initialize(dictionary=st.sampled_from(["none", "raw"]))
    def begin(self, dictionary: str) -> None:
        self.coding = Coding(level=1, block_tokens=60, dictionary=dictionary, dictionary_bytes=2000)  # type: ignore[arg-type]
        self.archive = self.opened()

    @rule(new=st.lists(st.tuples(IDS, st.integers(0, 30), MESSAGES), max_size=6, unique_by=lambda each: each[0]))
    def put(self, new: list[tuple[str, int, Message]]) -> None:
        free = [ArchivedMessage(*each) for each in new if each[0] not in self.there]
        assert self.archive.put(free) == len(free)
        assert self.archive.put(free) == 0
        self.there |= {each.id: each for each in free}

    @rule(ids=st.lists(IDS, max_size=5), later=st.floats(-3, 9))
    def delete(self, ids: list[str], later: float) -> None:
        self.now += later
        assert self.archive.delete(ids, self.now) == len({id for id in ids if self.there.pop(id, None)})

    @rule()
    def clean(self) -> None:
        self.archive.clean(self.now)

    @rule()
    def seal(self) -> None:
        self.archive.seal()

    @rule()
    def open_again(self) -> None:
        self.archive.close()
        self.archive = self.opened()

    @invariant()
    def is_the_same(self) -> None:
        if hasattr(self, "archive"):
            assert {each.id: each for each in self.archive.items()} == self.there
            assert sum(part.tokens for part in self.archive.parts) == sum(each.tokens for each in self.there.values())
            for id in list(self.there)[:2]:
                assert self.archive.get(id) == self.there[id]
            assert self.archive.size == sum(map(len, self.archive.store.all().values())) or not self.archive.parts

    def opened(self) -> ArchiveTier:
        return ArchiveTier(BlockTable(f"{self.folder.name}/archive.db"), self.coding)

    def teardown(self) -> None:
        self.archive.close()
        self.folder.cleanup()


TestAgainstADict = AgainstADict.TestCase
TestAgainstADict.settings = examples(40, steps=12)


def test_it_is_put_back() -> None:
    """A restored archive has neither the puts nor the deletions after the checkpoint, in its files as well."""
    archive = ArchiveTier(BlockTable(), SMALL)
    archive.put(items(5))
    files, restore = archive.store.all(), checkpoint(archive.get, None)
    for _ in range(2):
        archive.put([item(7)])
        archive.delete(["talk/m1"], now=0.0)
        archive.clean(9.0)
        assert ("talk/m7" in archive, "talk/m1" in archive) == (True, False)
        restore()
        assert list(archive.items()) == items(5)
        assert archive.store.all() == files


def test_the_same_id_twice() -> None:
    """The same message again is no second one; another under its id is refused, and nothing of that call is stored."""
    archive = ArchiveTier(BlockTable(), SMALL)
    archive.put(items(3))
    assert archive.put([item(1)]) == 0
    for bad in ([item(8), item(1, "other")], [item(8), item(8, "other")], [ArchivedMessage("", 1, item(8).message)]):
        with pytest.raises(ValueError, match="give every message an id of its own"):
            archive.put(bad)
    assert list(archive.items()) == items(3)


def test_damage_costs_one_block_only() -> None:
    """Messages of other blocks are read; those of this one raise, and never come back wrong."""
    archive = ArchiveTier(BlockTable(), Coding(level=1, block_tokens=40, dictionary="none"))
    archive.put(items(8))
    store = archive.store
    for name in ("part-000001", "index"):
        data = store.read(name) or b""
        store.replace({name: data[:-1] + bytes([data[-1] ^ 1])}, ())
    with pytest.raises(Damaged, match="index is altered or missing"):
        ArchiveTier(store)
    assert archive.get("talk/m7") == item(7)
    with pytest.raises(Damaged, match="part-000001 is altered or missing"):
        archive.get("talk/m0")


def test_blocks_hold_as_many_tokens_as_they_may() -> None:
    """Messages of 10 tokens fill blocks of 40; what is left over is no block until it is sealed."""
    archive = ArchiveTier(BlockTable(), SMALL)
    archive.put(items(10))
    assert [(part.messages, part.sealed) for part in archive.parts] == [(4, True), (4, True), (2, False)]
    archive.seal()
    assert [part.sealed for part in archive.parts] == [True, True, True]
    assert list(archive.items()) == items(10)


def test_the_same_blocks_however_the_messages_came() -> None:
    """One by one or all at once: the same messages stand in the same blocks."""
    cuts = []
    for sizes in ([10], [1] * 10, [3, 3, 4]):
        archive = ArchiveTier(BlockTable(), SMALL)
        left = items(10)
        for size in sizes:
            archive.put(left[:size])
            left = left[size:]
        cuts.append([part.messages for part in archive.parts if part.sealed])
    assert cuts == [[4, 4]] * 3


def test_a_message_larger_than_a_block_is_a_block() -> None:
    """It stands alone, and comes back whole."""
    archive = ArchiveTier(BlockTable(), SMALL)
    archive.put([item(0), item(1, "long " * 999, 999), item(2)])
    assert [part.messages for part in archive.parts] == [1, 1, 1]
    assert archive.get("talk/m1").message.text == "long " * 999


def test_what_the_dictionary_was_made_of_takes_almost_nothing() -> None:
    """The text of the first blocks is stored once, in the dictionary."""
    texts = [f"{number * 7919 % 10007} is what {number * 104729 % 9973} had said" for number in range(12)]
    archive = ArchiveTier(BlockTable(), SMALL)
    archive.put([item(at, text) for at, text in enumerate(texts)])
    taught = [part for part in archive.parts if part.taught]
    assert len(taught) == 2
    assert all(part.content.size < part.raw_bytes / 4 for part in taught)


def test_deleted_text_is_nowhere_once_it_is_cleaned() -> None:
    """Not in a block, not in the dictionary: not before the delay, and all of it after."""
    secret = "the password is hunter-2-correct-horse"

    def found(archive: ArchiveTier) -> bool:
        contents = [archive.content(part) for part in archive.parts]
        return any(secret.encode() in each for each in [*contents, archive.dictionary.data])

    archive = ArchiveTier(BlockTable(), SMALL)
    archive.put([item(0, secret), *items(12)[1:]])
    assert archive.delete(["talk/m0", "talk/m0", "nobody"], now=100.0) == 1
    assert "talk/m0" not in archive
    assert archive.clean(now=104.9) == 0
    assert found(archive)
    archive.clean(now=105.0)
    assert not found(archive)
    assert list(archive.items()) == items(12)[1:]
    assert archive.put([item(0, "another")]) == 1


def test_all_deleted() -> None:
    """An archive of nothing is an archive, and its dictionary is gone as well."""
    archive = ArchiveTier(BlockTable(), SMALL)
    archive.put(items(12))
    archive.delete([each.id for each in items(12)], now=0.0)
    assert archive.clean(now=9.0) > 0
    assert (archive.parts, archive.dictionary.data) == ((), b"")
    assert list(archive.store.all()) == ["index"]
