"""Retrieval memory: which messages come back, in what order, at what place, and what if they cannot be found."""

from itertools import cycle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.scenarios.model import Conversation, Message
from ctxbench.strategies.chain import parse
from ctxbench.strategies.events import Failed, OverBudget, Recalled
from ctxbench.strategies.parts.memories import SparseVectors, kind_of
from ctxbench.strategies.parts.passages import passages
from ctxbench.strategies.retrieval import Retrieval
from tests.builders import answering, calling, talk
from tests.strategies.stubs import COUNTER, Stub, events, names, played, written

PETS = talk(
    ("system", "s"),
    ("user", "my cat is called Tom and he sleeps"),
    ("assistant", "a fine cat that one is indeed"),
    ("user", "the dog barks all day long outside"),
    ("assistant", "dog noise is rather bad for everyone"),
    ("user", "and fish swim quietly in the bowl"),
    ("assistant", "fish are quiet and never wake you"),
    ("user", "what about the cat"),
    ("assistant", "Tom"),
)


def test_what_is_like_the_question_comes_back() -> None:
    """System messages, the two memories most like the newest question, the last turn; scores are reported."""
    last = played(Retrieval(limit=2, recent=1, importance=0, language="en"), PETS)[-1]
    assert names(last) == ["m0", "retrieval", "m7"]
    assert written(last, "retrieval") == (
        "[Relevant memories]\n- assistant: a fine cat that one is indeed\n- user: my cat is called Tom and he sleeps"
    )
    assert events(last, Recalled) == [Recalled(("m2", "m1"), (1.0, 1.0))]


MAY_8 = 1_683_554_160.0  # 2023-05-08 13:56 UTC


def test_a_quote_says_who_said_it_and_when() -> None:
    """A recalled message stands behind its recorded time and speaker; without them behind its role, without a time."""
    said = talk(
        Message("a", "user", "my cat {x} is called Tom", name="Caroline", time=MAY_8),
        Message("b", "assistant", "the cat Tom it is", time=MAY_8 + 60),
        ("user", "dog"),
        ("assistant", "ok"),
        ("user", "which cat"),
        ("assistant", "Tom"),
    )
    assert written(played(Retrieval(recent=1, language="en"), said)[-1], "retrieval").splitlines()[1:] == [
        "- [2023-05-08 13:56] Caroline: my cat {x} is called Tom",
        "- [2023-05-08 13:57] assistant: the cat Tom it is",
        "- assistant: ok",
        "- user: dog",
    ]


def test_the_recorded_speaker_is_searched_too() -> None:
    """What a named person says about "I" is found by a question that names the person."""
    said = talk(
        Message("a", "user", "I bought a bike", name="Ana"),
        Message("b", "assistant", "I bought a boat", name="Bo"),
        Message("c", "user", "what did Bo buy"),
        ("assistant", "a boat"),
    )
    assert events(played(Retrieval(recent=1, limit=1, importance=0), said)[-1], Recalled)[0].sources == ("b",)  # type: ignore[union-attr]


def test_a_quote_in_a_chinese_conversation_is_in_chinese() -> None:
    """With `auto` the speakers are named in the user's language; a recorded name stays as it is."""
    said = talk(
        Message("a", "user", "我的猫叫汤姆", time=MAY_8),
        Message("b", "assistant", "好的，猫叫汤姆", name="小明", time=MAY_8),
        ("user", "我的猫叫什么"),
        ("assistant", "汤姆"),
    )
    assert set(written(played(Retrieval(recent=1), said)[-1], "retrieval").splitlines()) == {
        "[相关记忆]",
        "- [2023-05-08 13:56] 用户：我的猫叫汤姆",
        "- [2023-05-08 13:56] 小明：好的，猫叫汤姆",
    }


def test_candidates_are_twice_the_limit() -> None:
    """The most similar `limit * search` are candidates; among them importance decides, and beyond them nothing does."""
    said = talk(
        ("user", "I prefer the bird"),
        ("assistant", "cat dog it is then"),
        ("user", "I always like my cat dog dog"),
        ("assistant", "so it is a cat then"),
        ("user", "cat?"),
        ("assistant", "!"),
    )
    by_importance = Retrieval(limit=1, recent=1, importance=1)
    assert events(played(by_importance, said)[-1], Recalled) == [Recalled(("m3",), (0.5,))]
    wider = played(Retrieval(limit=1, recent=1, importance=1, search=3), said)[-1]
    assert events(wider, Recalled) == [Recalled(("m2",), (0.8,))]
    assert events(played(Retrieval(limit=1, recent=1, importance=0), said)[-1], Recalled)[0].sources == ("m3",)  # type: ignore[union-attr]


def test_a_short_history_is_sent_as_it_is() -> None:
    """As long as there are no more than `recent` turns nothing is changed, and nothing embedded."""
    models = Stub()
    steps = played(Retrieval(recent=4), PETS, models)
    assert [names(step) for step in steps] == [[f"m{at}" for at in range(stop)] for stop in (2, 4, 6, 8)]
    assert models.embedded == []


def test_each_message_is_embedded_once() -> None:
    """A message is embedded when it leaves the recent turns, in one batch with what left with it; a question once."""
    models = Stub()
    played(Retrieval(recent=2), PETS, models)
    lines = [message.text for message in PETS.messages]
    assert models.embedded == [lines[1:3], [lines[5]], lines[3:5], [lines[7]]]


def test_within_a_turn_nothing_changes() -> None:
    """While tools are called in one turn, the memory message stays the same and what is sent only grows."""
    said = (*PETS.messages[:8], calling("c1", "x"), answering("r1", "x"), calling("c2", "y"), answering("r2", "y"))
    models = Stub()
    steps = played(Retrieval(recent=1), Conversation("t", (*said, Message("end", "assistant", "Tom"))), models)[-3:]
    assert [names(step) for step in steps] == [
        ["m0", "retrieval", "m7"],
        ["m0", "retrieval", "m7", "c1", "r1"],
        ["m0", "retrieval", "m7", "c1", "r1", "c2", "r2"],
    ]
    assert len({step.context.messages[1] for step in steps}) == 1
    assert [len(events(step, Recalled)) for step in steps] == [1, 1, 1]
    assert sum(map(len, models.embedded)) == 6 + 3


def test_the_end_keeps_the_older_turns_a_prefix() -> None:
    """At `end` the memories stand before the newest turn."""
    last = played(Retrieval(limit=2, recent=2, place="end"), PETS)[-1]
    assert names(last) == ["m0", "m5", "m6", "retrieval", "m7"]


def test_with_slack_the_older_turns_are_a_prefix() -> None:
    """Turns are dropped two at a time; in between what stood before the memories is sent again, and more after it."""
    said = talk(*[each for n in range(8) for each in (("user", f"cat {n}"), ("assistant", f"dog {n}"))])
    steps = played(Retrieval(recent=2, slack=1, place="end"), said)
    assert [names(step) for step in steps[3:7]] == [
        ["m4", "m5", "retrieval", "m6"],
        ["m4", "m5", "m6", "m7", "retrieval", "m8"],
        ["m8", "m9", "retrieval", "m10"],
        ["m8", "m9", "m10", "m11", "retrieval", "m12"],
    ]


def test_the_end_is_never_between_a_call_and_its_result() -> None:
    """A user who speaks before a result is there does not have the memories put between the two."""
    said = talk(
        ("user", "cat"),
        ("assistant", "ok"),
        ("user", "dog"),
        calling("c", "x"),
        ("user", "hurry"),
        answering("r", "x"),
        ("assistant", "done"),
    )
    for place in ("start", "end"):
        last = played(Retrieval(recent=1, place=place), said)[-1]
        assert names(last) == ["retrieval", "c", "m4", "r"]


def test_calls_and_long_results_are_found_by_passage() -> None:
    """What a tool was asked is remembered, and of a long result the passage that is like the question."""
    result = "\n".join(["the bird sings loudly every morning"] * 20 + ["the fish 42 hides"] + ["dogs are dogs"] * 3)
    said = talk(("user", "look"), calling("c", "x"), answering("r", "x", result), ("user", "fish?"), ("assistant", "!"))
    last = played(Retrieval(limit=1, recent=1, importance=0, max_memory_tokens=30, language="en"), said)[-1]
    assert "the fish 42 hides" in written(last, "retrieval")
    assert COUNTER.text(written(last, "retrieval")) < 45
    first = played(Retrieval(limit=9, recent=1, max_memory_tokens=30, passages=1), said)[-1]
    assert 'tool {"a": 1}' in written(first, "retrieval")
    assert "42" not in written(first, "retrieval")


def test_the_embedder_fails() -> None:
    """Then memories are ranked by the words in common, each failure is reported, and it is tried again."""
    away = cycle([True])
    steps = played(Retrieval(limit=4, recent=1), PETS, Stub(fails=lambda: next(away)))
    assert names(steps[-1]) == ["m0", "retrieval", "m7"]
    assert set(events(steps[-1], Recalled)[0].sources) == {"m1", "m2", "m3", "m5"}  # "cat" or "the" is in these  # type: ignore[union-attr]
    assert [len(events(step, Failed)) for step in steps] == [0, 1, 1, 1]
    assert events(steps[1], Failed) == [Failed("embedding", "the embedder is away", "ranked by words in common")]
    once = iter([True])
    models = Stub(fails=lambda: next(once, False))
    recovered = played(Retrieval(limit=2, recent=1, importance=0), PETS, models)
    assert [len(events(step, Failed)) for step in recovered] == [0, 1, 0, 0]
    assert recovered[-1].context == played(Retrieval(limit=2, recent=1, importance=0), PETS)[-1].context


def test_the_budget_is_kept_by_recent_turns_and_memories() -> None:
    """With max_tokens all that is sent fits, memories take at most their share, and what does not fit is remembered."""
    said = talk(*[each for n in range(40) for each in (("user", f"cat {n} " * 9), ("assistant", f"dog {n} " * 9))])
    for step in played(Retrieval(max_tokens=300, recent=20), said):
        sent = list(step.context.messages)
        assert sum(map(COUNTER.message, sent)) <= 300
        assert sum(COUNTER.message(message) for message in sent if message.role == "system") <= 60
        assert sent[-1].id == f"m{step.at - 1}"
    assert events(step, Recalled)


def test_a_budget_that_cannot_be_kept_is_refused() -> None:
    """A newest message that does not fit leaves memories."""
    said = talk(
        ("system", "word " * 30), ("user", "cat"), ("assistant", "ok"), ("user", "dog " * 190), ("assistant", "ok")
    )
    alone = played(Retrieval(max_tokens=200, recent=1), said)[-1]
    assert names(alone) == ["m0", "retrieval"]
    assert [event.budget for event in events(alone, OverBudget)] == [200]  # type: ignore[union-attr]


def test_after_facts_nothing_is_embedded_again() -> None:
    """A stage before it that puts another system message in front at every turn does not make it read all again."""
    models = Stub()
    played(parse("facts | retrieval(recent=1)"), PETS, models)
    assert max(sum(texts.count(message.text) for texts in models.embedded) for message in PETS.messages[:7]) <= 2


@pytest.mark.parametrize(
    ("role", "text", "kind"),
    [
        ("tool", "I prefer tea", "tool_results"),
        ("assistant", "总结：一切正常", "session_summary"),
        ("user", "我喜欢靠窗的座位", "preference"),
        ("user", "I prefer window seats", "preference"),
        ("assistant", "最终方案是用 Redis", "recent_decisions"),
        ("user", "We decided to use Redis", "recent_decisions"),
        ("assistant", "1. open it\n2. turn it", "procedure"),
        ("user", "The order is ABC-123 here", "fact"),
        ("user", "how do I do that?", "current_task"),
        ("assistant", "how do you do that", "session_context"),
    ],
)
def test_types_are_told_by_rules(role: str, text: str, kind: str) -> None:
    """Each type of the document, by an example in both languages where there are rules for both."""
    assert kind_of(role, text) == kind  # type: ignore[arg-type]


@given(text=st.text("ab 。.\n你🧑‍", max_size=200), most_tokens=st.integers(3, 20), most=st.integers(1, 9))
def test_passages_are_the_text(text: str, most_tokens: int, most: int) -> None:
    """Passages are stretches of the text in order, none blank, none over its limit, nothing between them but space."""
    made = passages(text, most_tokens, most, COUNTER.text)
    assert len(made) <= most
    assert all(each.strip() and COUNTER.text(each) <= most_tokens for each in made)
    assert "".join("".join(made).split()) == "".join(text.split())[: len("".join("".join(made).split()))]
    if len(made) < most:
        assert "".join("".join(made).split()) == "".join(text.split())


def test_passages_end_where_a_sentence_does() -> None:
    """A text that is too long is cut after a sentence, not in it."""
    text = "The first sentence is here. " * 12
    assert all(each.endswith("here.") for each in passages(text, 20, 9, COUNTER.text))


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 150), min_size=1, max_size=6), st.floats(0, 1))
def test_vectors_by_coordinate_are_compared_like_those_of_a_matrix(seed: int, batches: list[int], share: float) -> None:
    """However many coordinates are 0, and however they come, each vector has the sum of its products, to the bit."""
    rng = np.random.default_rng(seed)
    matrix, sparse = np.zeros((0, 12), np.float32), SparseVectors(12)
    for size in batches:
        vectors = np.where(rng.random((size, 12)) < share, rng.standard_normal((size, 12)), 0).astype(np.float32)
        matrix = np.concatenate((matrix, vectors))
        sparse.add(vectors)
        query = np.where(rng.random(12) < share, rng.standard_normal(12), 0).astype(np.float32)
        products = (matrix.astype(np.float64) * query.astype(np.float64)).cumsum(axis=1)[:, -1]
        assert sparse.products(query).tolist() == products.tolist()


def test_vectors_by_coordinate_are_taken_back() -> None:
    """A restored index lacks what was added after the checkpoint, however often, and nothing else."""
    vectors, query = SparseVectors(3), np.array([1, 1, 0], np.float32)
    vectors.add(np.array([[1, 0, 0]], np.float32))
    restore = vectors.checkpoint()
    for _ in range(2):
        vectors.add(np.array([[2, 0, 0], [3, 0, 0]], np.float32))
        assert vectors.products(query).tolist() == [1, 2, 3]
        restore()
    vectors.add(np.array([[0, 4, 0]], np.float32))
    assert vectors.products(query).tolist() == [1, 4]
