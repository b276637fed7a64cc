"""The parts that the joined tiers are made of: stores, clock, quotes, places, gauges."""

import math
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.grounding import QUOTED
from ctxbench.scenarios.model import Message
from ctxbench.scenarios.view import Messages
from ctxbench.strategies.events import Alarmed
from ctxbench.strategies.tiers.archive import ArchiveTier, BlockTable, Coding
from ctxbench.strategies.tiers.heat import Gauges, Readings
from ctxbench.strategies.tiers.jobs import Job, MoveReason, Outcome, Trigger
from ctxbench.strategies.tiers.tiered import insert_recalled
from ctxbench.strategies.tiers.tiered.quotes import Quotes
from ctxbench.strategies.tiers.tiered.tiers import Blocks
from tests.strategies.tiers.tiered.builders import memory

FAST = Coding(level=1, dictionary="none", block_tokens=30)


def content(number: int, text: str = "") -> Message:
    return Message(f"m{number}", "user", text or f"message {number}")


@given(st.lists(st.tuples(st.sampled_from("pdf"), st.integers(0, 5), st.integers(0, 1)), max_size=40))
def test_blocks_are_a_dictionary(steps: list[tuple[str, int, int]]) -> None:
    """Whatever is put, put again with other content, deleted and flushed: it has what a dictionary would."""
    blocks, plain = Blocks(ArchiveTier(BlockTable(), FAST), block=25), dict[str, Message]()
    for now, (what, number, other) in enumerate(steps):
        id = f"m{number}"
        if what == "p":
            plain[id] = content(number, "other" * other)
            blocks.put(id, plain[id], 10, now)
        elif what == "d":
            blocks.delete(id, now)
            plain.pop(id, None)
        else:
            blocks.flush(now)
        assert {id for id in (f"m{each}" for each in range(6)) if id in blocks.sizes} == plain.keys()
        assert {id: blocks.get(id) for id in plain} == plain
        assert blocks.tokens == 10 * len(plain)


def test_what_comes_back_is_not_written_again() -> None:
    """Deleted and put again with the same content, it is where it was: no new file."""
    blocks = Blocks(ArchiveTier(BlockTable(), FAST), block=20)
    for number in range(2):
        blocks.put(f"m{number}", content(number), 10, 0)
    before = blocks.archive.parts
    assert len(list(blocks.archive.items())) == 2
    blocks.delete("m0", 1)
    blocks.put("m0", content(0), 10, 2)
    assert (blocks.get("m0"), blocks.waiting, blocks.archive.parts) == (content(0), {}, before)


def test_what_is_dead_is_cleaned_when_half_of_its_block_is() -> None:
    """Blocks of three messages: one dead is left where it is, two are not."""
    blocks = Blocks(ArchiveTier(BlockTable(), FAST), block=30)
    for number in range(3):
        blocks.put(f"m{number}", content(number), 10, 0)
    for number, messages in ((0, [3, 3]), (1, [3, 3, 1])):
        blocks.delete(f"m{number}", 1)
        for at in range(3):
            blocks.put(f"n{number}{at}", content(10 * number + at, "new"), 10, 1)
        assert sorted(part.messages for part in blocks.archive.parts) == sorted(messages)
    assert blocks.saved is not None


def test_the_clock_never_goes_back() -> None:
    """What goes back stands still; without a time, or with one that is none, a second passes."""
    tiers, _ = memory()
    times = [tiers.tick(each) for each in (None, None, 50.0, 40.0, None, math.nan, math.inf, 60.0)]
    assert times == [1, 2, 50, 50, 51, 52, 53, 60]


WORDS = st.lists(st.sampled_from("abcdef"), max_size=40)


@given(WORDS, WORDS)
def test_a_quote_is_found_if_and_only_if_there_is_one(one: list[str], other: list[str]) -> None:
    """Beside an obvious search for eight words in a row, also of texts of very few words."""

    def rows(words: list[str]) -> set[tuple[str, ...]]:
        return {tuple(words[at : at + QUOTED]) for at in range(len(words) - QUOTED + 1)}

    quotes, text = Quotes(), " ".join(other)
    quotes.add(0, text)
    assert bool(quotes.quoted(" ".join(one), lambda number: text)) == bool(rows(one) & rows(other))


@given(st.lists(st.integers(0, 3), max_size=20), st.integers(0, 20))
def test_quotes_are_put_back(kinds: list[int], asked: int) -> None:
    """Restoring a checkpoint undoes what was added and deleted since, the first time and a second time."""
    quotes, texts = Quotes(), [" ".join("abcdefghijkl"[at : at + 9]) for at in range(3)]
    living: dict[int, str] = {}
    before, restore = dict(quotes.prints), quotes.checkpoint()
    for number, kind in enumerate(kinds):
        if number == asked:
            before, restore = dict(quotes.prints), quotes.checkpoint()
        if kind < len(texts):
            living[number] = texts[kind]
            quotes.add(number, texts[kind])
        elif living:
            quotes.delete(*living.popitem())
    for more in (texts, texts[:1]):
        restore()
        assert quotes.prints == before
        for number, text in enumerate(more, len(kinds)):
            quotes.add(number, text)


def test_forms_are_no_quotes() -> None:
    """What a third text says too is a form; deleted texts are forgotten; Chinese characters are words."""
    said = "the pump on the upper floor was checked this morning and is fine"
    quotes, texts = Quotes(), dict[int, str]()
    for number in range(2):
        texts[number] = f"{number} {said}"
        quotes.add(number, texts[number])
        assert quotes.quoted(f'who wrote "{said}"?', texts.__getitem__) == list(range(number + 1))
    quotes.delete(0, texts[0])
    assert quotes.quoted(said, texts.__getitem__) == [1]
    for number in range(2, 4):
        texts[number] = f"{number} {said}"
        quotes.add(number, texts[number])
    assert quotes.quoted(said, texts.__getitem__) == []
    texts[9] = "我们商定周五之前把上层水泵修好"
    quotes.add(9, texts[9])
    assert quotes.quoted("谁说过“周五之前把上层水泵修好”？", texts.__getitem__) == [9]


@given(st.sets(st.integers(0, 29)), st.sets(st.integers(0, 29)), st.integers(0, 30), st.integers(0, 30))
def test_what_is_called_back_stands_in_its_place(sent: set[int], more: set[int], cut: int, written: int) -> None:
    """All in the order in which it was said, whatever the history is made of; what is written keeps its neighbour."""
    stores = [tuple(Message(f"m{at}", "user", "x") for at in range(30)), (Message("new", "system", "w"),)]
    history = Messages.of(stores[0][:cut]) + Messages.of(stores[0][cut:])
    here = sorted(sent)
    chosen = Messages()
    for number, at in enumerate(here):
        if number == written:
            chosen = chosen + Messages.of(stores[1])
        chosen = chosen + history[at : at + 1]
    found = [message.id for message in insert_recalled(history, chosen, sorted(more - sent))]
    places = [int(id[1:]) for id in found if id != "new"]
    assert places == sorted(sent | more)
    if written < len(here):
        following = found[found.index("new") + 1 :]
        assert f"m{here[written]}" in following
        assert all(first != second for first, second in pairwise(found))


def test_an_alarm_is_told_when_it_begins_and_when_it_ends() -> None:
    """Once each, and a reading that was not taken changes nothing."""
    gauges, told = Gauges(), list[Alarmed]()
    for used in (0.5, 0.96, 0.97, None, 0.5):
        gauges.judge(Readings(focus_utilisation=used), told.append)
    assert told == [Alarmed("focus utilisation", 0.96, 0.95), Alarmed("focus utilisation", 0.5, 0.95, up=False)]
    for at in range(100):
        gauges.look(at % 2 == 0)
        assert gauges.due() == (at == 99)
    readings = gauges.read(5, 0.5, None, 0.1, (), "rag")
    assert (readings.hit_rate, readings.promotion, readings.storage_pressure) == (0.5, None, 0.1)


def test_a_retrieval_is_a_promotion_out_of_the_lowest_tier() -> None:
    """Of three promotions the one from RAG waited four seconds; a demotion and a move that failed are none."""
    jobs = [
        Job("a", "rag", "working", Trigger.EXPLICIT_ACCESS, 1),
        Job("b", "archive", "working", Trigger.CACHE_MISS, 3),
        Job("c", "working", "archive", Trigger.HARD_PRESSURE, 5),
    ]
    failed = Outcome(Job("d", "rag", "working", Trigger.EXPLICIT_ACCESS, 0), MoveReason.STALE)
    readings = Gauges().read(5, 0.5, None, 0.1, (*map(Outcome, jobs), failed), "rag")
    assert (readings.retrieval, readings.promotion, readings.demotion) == (4, 3, 0)
    told = list[Alarmed]()
    Gauges().judge(readings, told.append)
    assert Alarmed("retrieval latency", 4, 0.5) in told
