"""`importance`: scores by hand, the greedy choice beside an obvious version."""

from array import array

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.harness.invariants import messages
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.model import Message
from ctxbench.scenarios.view import Messages
from ctxbench.strategies.parts.units import Dialogue, without
from ctxbench.strategies.tiers.focus import Focus
from ctxbench.strategies.tiers.focus.truncation import (
    BEST,
    Importance,
    ImportanceWeights,
    MessageColumns,
    important_units,
)
from tests.builders import talk
from tests.examples import examples
from tests.strategies.tiers.focus.standalone import Opened, unrecorded

COUNTER = TokenCounter()
DOCUMENT = ImportanceWeights(0.4, 0.3, 0.2, 0.1)


def scored(said: tuple[Message, ...], weights: ImportanceWeights) -> list[float]:
    """Return the scores of messages without system messages."""
    made, dialogue = Importance(services := unrecorded(), weights, 1000), Dialogue(services)
    dialogue.read(Messages.of(said))
    made.read(dialogue.messages, 0)
    return [round(float(each), 4) for each in made.scores(dialogue)]


def test_the_parts_of_a_score() -> None:
    """Each part alone: place, who speaks and how, shape, words in common with the newest user message."""
    said = talk(
        ("user", "We decided on Lyon."),
        ("assistant", "# Plan\nfine"),
        ("user", "hello there"),
        ("assistant", "- one\n- two"),
        ("user", "hello Lyon"),
    ).messages
    assert scored(said, ImportanceWeights(0, 1, 0, 0)) == [0.2, 0.4, 0.6, 0.8, 1.0]
    assert scored(said, ImportanceWeights(0, 0, 1, 0)) == [1.0, 0.0, 0.5, 0.0, 0.5]
    assert scored(said, ImportanceWeights(0, 0, 0, 1)) == [0.0, 1.0, 0.0, 1.0, 0.0]
    assert scored(said, ImportanceWeights(1, 0, 0, 0)) == [0.5, 0.0, 0.5, 0.0, 1.0]
    assert scored(said, DOCUMENT)[4] == round(0.4 + 0.3 + 0.2 * 0.5, 4)


def test_what_is_asked_about_stays() -> None:
    """The old message that the question is about is sent; newer ones that share nothing with it are not."""
    said = [Message("m0", "user", "The flight to Lisbon leaves gate B12.")]
    said += [Message(f"m{at}", "user", f"Number {at}: the weather is quite nice here today.") for at in range(1, 30)]
    said.append(Message("m30", "user", "Lisbon flight gate?"))
    sent = Opened(Focus(limit=140, system=0, functions=0)).send(said)
    assert sent.messages[0].id == "m0"
    assert sent.messages[-1].id == "m30"
    tail = Opened(Focus(limit=140, system=0, functions=0, truncation="tail_cutoff")).send(said)
    assert "m0" not in {message.id for message in tail.messages}


def obvious(said: tuple[Message, ...], room: int) -> list[str]:
    """Make the same choice in the obvious, slow way: units by score, then back in order."""
    made, dialogue = Importance(services := unrecorded(), DOCUMENT, 1000), Dialogue(services)
    dialogue.read(Messages.of(said))
    made.read(dialogue.messages, 0)
    units, scores = dialogue.units, made.scores(dialogue)
    pieces = [list(range(start, stop)) for start, stop in map(units.around, units.starts)]
    cost = {piece[0]: sum(COUNTER.message(said[at]) for at in piece) for piece in pieces}
    taken: list[list[int]] = []

    def opener(piece: list[int]) -> list[int] | None:
        users = [at for at in range(piece[0] + 1) if said[at].role == "user"]
        found = next((each for each in pieces if users and users[-1] in each), None)
        return None if found is piece else found

    ranked = sorted(pieces, key=lambda piece: (-max(scores[at] for at in piece), -piece[0]))
    first = opener(pieces[-1])
    for piece in [pieces[-1], *([first] if first else []), *(p for p in ranked if said[p[0]].role != "tool")]:
        if piece not in taken and cost[piece[0]] <= room:
            taken.append(piece)
            room -= cost[piece[0]]
    taken.sort()
    while (before := opener(taken[0])) is not None:
        if cost[before[0]] <= room:
            taken.insert(0, before)
            break
        if len(taken) == 1:
            break
        room += cost[taken.pop(0)[0]]
    return [said[at].id for piece in taken for at in piece]


@examples(80)
@given(said=messages(), room=st.integers(60, 300))
def test_the_choice_is_the_obvious_one(said: tuple[Message, ...], room: int) -> None:
    """Piece for piece, on any conversation whose newest piece fits."""
    spoken = tuple(message for message in said if message.role != "system")
    history = Messages.of(spoken)
    services = unrecorded()
    reader = Dialogue(services)
    reader.read(history)
    if not spoken or services.total(history[reader.units.starts[-1] :]) > room:
        return
    made = Importance(services, DOCUMENT, 1000)
    made.read(history, 0)
    assert [message.id for message in made.cut(history, reader, room)] == obvious(spoken, room)


@examples(60)
@given(said=messages(), rooms=st.lists(st.integers(60, 300), min_size=1, max_size=5))
def test_a_history_that_grows_is_cut_like_one_read_at_once(said: tuple[Message, ...], rooms: list[int]) -> None:
    """With system messages in between, and results that come late: the same spans as of what is read anew."""
    dialogue, grown = Dialogue(services := unrecorded()), Importance(services, DOCUMENT, 1000)
    for number, room in enumerate(rooms, 1):
        history = Messages.prefix(said, len(said) * number // len(rooms))
        same = dialogue.read(history)
        grown.read(dialogue.messages, same)
        if not dialogue.messages or services.total(dialogue.messages[dialogue.units.starts[-1] :]) > room:
            continue
        sent = grown.cut(history, dialogue, room)
        fresh, anew = Dialogue(other := unrecorded()), Importance(other, DOCUMENT, 1000)
        fresh.read(history)
        anew.read(fresh.messages, 0)
        assert sent.spans == anew.cut(history, fresh, room).spans
        dropped = {message.id for message in dialogue.messages} - {message.id for message in sent}
        assert sent.spans == without(history, dropped, None).spans


@given(st.integers(0, 2**32 - 1), st.integers(1, 8 * BEST), st.integers(0, 6000))
def test_the_best_are_looked_at_first_without_a_difference(seed: int, size: int, more: int) -> None:
    """Many units of few scores and any length: the same choice as by sorting all of them."""
    rng = np.random.default_rng(seed)
    scores, tokens = rng.choice([-1.0, 0.0, 0.25, 0.5, 0.75], size), rng.integers(1, 41, size)
    starts = np.flatnonzero((rng.random(size) < 0.7) | (np.arange(size) == 0))
    best, sizes = np.maximum.reduceat(scores, starts), np.add.reduceat(tokens, starts)
    results, newest, left = scores < 0, len(starts) - 1, more
    stay = {newest}
    for unit in sorted(range(newest), key=lambda unit: (-best[unit], -unit)):
        if best[unit] >= 0 and not results[starts[unit]] and sizes[unit] <= left:
            stay.add(unit)
            left -= int(sizes[unit])
    columns = MessageColumns(scores, tokens, results)
    assert important_units(array("q", starts.tolist()), [], columns, more + int(sizes[newest])) == sorted(stay)
