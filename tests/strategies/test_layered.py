"""Layered memory: what is where, when it moves and goes, what each tier gives."""

from itertools import count

import pytest

from ctxbench.scenarios.model import Call, Conversation, Message, Role
from ctxbench.strategies.chain import parse
from ctxbench.strategies.events import Event, Failed, Moved, Recalled
from ctxbench.strategies.layered import Layered
from tests.builders import answering, calling, talk
from tests.strategies.stubs import COUNTER, Stub, events, names, played, written

HOUR = 3600.0


def timed(*said: tuple[float, Role, str]) -> Conversation:
    """A conversation from (hour, role, text)."""
    return Conversation(
        "timed", tuple(Message(f"m{at}", role, text, time=hour * HOUR) for at, (hour, role, text) in enumerate(said))
    )


def recalled(found: list[Event]) -> dict[str, dict[str, float]]:
    """Source → score for each tier."""
    return {
        event.kind: dict(zip(event.sources, event.scores, strict=True))
        for event in found
        if isinstance(event, Recalled)
    }


PETS = talk(
    ("user", "I prefer my cat to sleep inside at night"),
    ("assistant", "so the dog and the cat sleep apart then"),
    ("user", "can you look where the bird is now?"),
    calling("c", "x"),
    answering("r", "x", "the bird is on the roof with a cat"),
    ("assistant", "it sits up there and sings along"),
    ("user", "where does the cat sleep"),
    ("assistant", "inside"),
)


def test_each_tier_gives_what_is_in_it() -> None:
    """Tasks and results match by words × 1.0, the session's talk by vectors × 0.8, preferences by vectors × 0.6.

    The task of m2 shares `where` with the question, a stop word, and is not recalled.
    """
    last = played(Layered(recent=1, language="en"), PETS)[-1]
    found = recalled(list(last.events))
    assert set(found) == {"working", "short", "long"}
    assert found["long"] == {"m0": 0.6}
    assert found["short"]["m1"] == pytest.approx(0.8 * (1 + 0.01) / (1.01 * 2.01) ** 0.5, abs=1e-4)
    assert set(found["working"]) == {"r"}
    assert found["working"]["r"] < 1
    assert names(last) == ["layered", "m6"]
    text = written(last, "layered")
    assert text.startswith("[Relevant memories]\n- [")
    assert "- [preference] user: I prefer my cat to sleep inside at night" in text
    assert "- [tool_results] tool: the bird is on the roof with a cat" in text


def test_a_quote_names_its_type_speaker_and_time() -> None:
    """A recalled message stands behind the type of its memory, its recorded time and its speaker."""
    said = talk(
        Message("a", "user", "I prefer my cat to sleep inside", name="Caroline", time=0.0),
        ("assistant", "ok"),
        ("user", "where does the cat sleep"),
        ("assistant", "inside"),
    )
    text = written(played(Layered(recent=1, language="en"), said)[-1], "layered")
    assert "- [preference] [1970-01-01 00:00] Caroline: I prefer my cat to sleep inside" in text.splitlines()


def test_the_best_of_all_tiers_are_sent_in_order_of_weighted_score() -> None:
    """`limit` holds for all tiers together; the lines are in the order of the weighted scores."""
    last = played(Layered(recent=1, limit=3), PETS)[-1]
    scores = [score for tier in recalled(list(last.events)).values() for score in tier.values()]
    assert len(scores) == 3
    lines = written(last, "layered").splitlines()[1:]
    by_source = {message.id: message.text for message in PETS.messages}
    ranked = sorted(
        ((score, source) for tier in recalled(list(last.events)).values() for source, score in tier.items()),
        reverse=True,
    )
    assert [line.split(": ", 1)[1] for line in lines] == [by_source[source] for _, source in ranked]


def test_the_document_s_search() -> None:
    """As the document has it, short-term memory gives nothing, and working memory what contains the whole question."""
    last = played(Layered(recent=1, search="document"), PETS)[-1]
    assert set(recalled(list(last.events))) == {"long"}
    said = (*PETS.messages[:6], Message("q", "user", "THE BIRD IS"), Message("a", "assistant", "up"))
    last = played(Layered(recent=1, search="document"), Conversation("t", said))[-1]
    assert recalled(list(last.events))["working"] == {"r": 1.0, "m2": 1.0}


def test_below_the_threshold_it_is_not_for_ever() -> None:
    """A preference of importance 8 is in long-term memory up to a threshold of 8, and session history above that."""
    for threshold, tier in ((8.0, "long"), (8.5, "short")):
        last = played(Layered(recent=1, long_importance=threshold), PETS)[-1]
        assert "m0" in recalled(list(last.events))[tier]


def test_what_is_recalled_again_and_again_is_promoted() -> None:
    """Session history that two turns recall is in long-term memory from the third on; calls of one turn count once."""
    said = talk(
        ("user", "well the cat sleeps now"),
        ("assistant", "and the cat is quiet now"),
        ("user", "cat?"),
        calling("c", "x"),
        answering("r", "x"),
        ("assistant", "yes"),
        ("user", "my cat?"),
        ("assistant", "yes"),
        ("user", "the cat?"),
        ("assistant", "yes"),
    )
    steps = played(Layered(recent=1, promote_after=2, limit=2, tiers=("short", "long")), said)
    assert [events(step, Moved) for step in steps[2:]] == [[], [], [Moved(("m1", "m0"), "short", "long")]]
    assert [set(recalled(list(step.events))) for step in steps[1:]] == [{"short"}] * 3 + [{"long"}]
    assert recalled(list(steps[-1].events)) == {"long": {"m1": 0.6, "m0": 0.6}}


@pytest.mark.parametrize("store", [True, False])
def test_stored_summaries_are_long_term_memories(store: bool) -> None:
    """A later stage of the chain stores each summary. From the next turn on all but the newest so far are recalled; the
    newest is sent anyway. Without `store` there is none.
    """
    summaries = count(1)
    models = Stub(reply=lambda prompt: f"round {next(summaries)}: the fish has bowl {len(prompt.material)}")
    said = [(role, f"{role} says nothing of note, number {at}") for at in range(6) for role in ("user", "assistant")]
    chain = f"layered(recent=2) | session_summary(token_threshold=20, preserve_recent=1, store={store})"
    conversation = talk(*said, ("user", "where is the fish"), ("assistant", "in its bowl"))
    last = played(parse(chain), conversation, models)[-1]
    newest = next(summaries) - 1
    note = written(last, "layered")
    assert f"round {newest}:" in written(last, "session_summary")
    assert newest > 2
    lines = [line for line in note.splitlines() if line.startswith("- [session_summary] system: round")]
    rounds = {int(line.split("round ")[1].split(":")[0]) for line in lines}
    assert rounds == (set(range(1, newest - 1)) if store else set())


def test_session_history_expires() -> None:
    """After 24 hours it is gone, and said to be; preferences stay. A recall gives it 24 hours more, up to 7 days."""
    said = timed(
        (0, "user", "the cat sleeps well"),
        (0.1, "assistant", "I see, a cat it is"),
        (0.2, "user", "I prefer the dog outside"),
        (0.3, "assistant", "all right, the dog"),
        (23, "user", "cat?"),
        (23.1, "assistant", "yes"),
        (46, "user", "cat?"),
        (46.1, "assistant", "yes"),
        (75, "user", "dog?"),
        (75.1, "assistant", "yes"),
    )
    steps = played(Layered(recent=1, limit=2, tiers=("short", "long"), promote_after=9), said)
    gone = [event.sources for step in steps for event in events(step, Moved)]  # type: ignore[union-attr]
    assert gone[0] == ("m3",)  # not recalled at 23 h, so it died at 24.3 h
    assert "m1" in recalled(list(steps[3].events))["short"]  # recalled at 23 h: alive at 46 h
    assert set(recalled(list(steps[4].events))) == {"long"}  # at 75 h all are gone but the preference
    assert all(event.source == "short" and event.to == "" for step in steps for event in events(step, Moved))  # type: ignore[union-attr]


def test_seven_days_are_the_end() -> None:
    """However often it is recalled, session history is gone 7 days after it was said."""
    turns = [(20 * n, role, "cat?") for n in range(1, 12) for role in ("user", "assistant")]
    said = timed((0, "user", "the cat sleeps well"), (0, "assistant", "good"), *turns)  # type: ignore[arg-type]
    steps = played(Layered(recent=1, limit=30, tiers=("short",), promote_after=99), said)
    alive = [any("m0" in tier for tier in recalled(list(step.events)).values()) for step in steps[1:]]
    assert alive == [20 * n < 168 for n in range(1, 12)]


def test_a_session_that_ends_leaves_session_history() -> None:
    """After hours of silence the working memory of before becomes session history; without times it never does."""
    said = timed(
        (0, "user", "can you find the cat"),
        (0.1, "assistant", "I am on it"),
        (0.2, "user", "thanks a lot for that"),
        (0.3, "assistant", "sure"),
        (9, "user", "cat?"),
        (9.1, "assistant", "yes"),
    )
    steps = played(Layered(recent=1, limit=1), said)
    assert [events(step, Moved) for step in steps] == [[], [], [Moved(("m0",), "working", "short")]]
    assert set(recalled(list(steps[-1].events))) == {"short"}
    timeless = Conversation("t", tuple(Message(each.id, each.role, each.text) for each in said.messages))
    steps = played(Layered(recent=1, limit=1), timeless)
    assert not any(events(step, Moved) for step in steps)
    assert set(recalled(list(steps[-1].events))) == {"working"}


def test_a_message_without_a_time_has_that_of_the_one_before() -> None:
    """Where only model calls have a time, memories are as old as the call before them."""
    texts = ["the cat is here now", "yes it is there", "and the cat stays now", "good for it", "dog?", "yes"]
    said = [
        Message(f"m{at}", "user", text)
        if at % 2 == 0
        else Message(f"m{at}", "assistant", text, call=Call(started=(at // 2) * 30 * HOUR))
        for at, text in enumerate(texts)
    ]
    steps = played(Layered(recent=1, tiers=("short",)), Conversation("t", tuple(said)))
    assert [events(step, Moved) for step in steps] == [
        [],
        [Moved(("m0", "m1"), "short")],
        [Moved(("m2", "m3"), "short")],
    ]


def test_the_embedder_fails() -> None:
    """Session and long-term memory are then searched by words, and the failure is reported."""
    last = played(Layered(recent=1), PETS, Stub(fails=lambda: True))[-1]
    assert events(last, Failed) == [Failed("embedding", "the embedder is away", "ranked by words in common")]
    assert set(recalled(list(last.events))) == {"working", "short", "long"}


def test_the_budget_is_kept() -> None:
    """With max_tokens all that is sent fits."""
    said = talk(*[each for n in range(40) for each in (("user", f"cat {n} " * 9), ("assistant", f"dog {n} " * 9))])
    for step in played(Layered(max_tokens=300, recent=20), said):
        assert sum(map(COUNTER.message, step.context.messages)) <= 300
        assert step.context.messages[-1].id == f"m{step.at - 1}"
