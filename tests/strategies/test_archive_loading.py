"""What brings archived results back, how much of them, and what the model gets that calls the tool."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.strategies.archive import KEYWORDS, Archive, keyword_pattern
from ctxbench.strategies.archive.record import identify, query_of, sources_of, summary_of
from ctxbench.strategies.events import Archived, Event, Failed, Loaded
from ctxbench.strategies.parts.passages import relevant_passages
from tests.strategies.tool_results import COUNTER, Fake, Opening, asking, at_file, conversation

FERRY = "The ferry to Norderney leaves at 09:30 from quay four. " * 220
MUSEUM = "The museum shows coins of the Hanse until 14 March. " * 220
TALK = conversation(
    asking(1, "ferry times?", "ferry", FERRY),
    asking(2, "and the museum?", "museum coins", MUSEUM),
    asking(3, "Earlier you had a quay for the ferry: which?", "none", "short"),
    asking(4, "What do the coins in the museum show?", "none", "short"),
    asking(5, "thanks", "none", "short"),
)


def loads(events: tuple[Event, ...]) -> list[Loaded]:
    return [event for event in events if isinstance(event, Loaded)]


def whole(sent: dict[str, str]) -> list[str]:
    return [name for name in ("t1", "t2") if not sent[name].startswith("📎")]


def test_the_model_trigger_loads_nothing_by_itself() -> None:
    """In replay the recorded model does not call the tool: placeholders stay."""
    opened = Opening(Archive(), TALK)
    assert [whole(opened.at(name)) for name in ("c3", "a3", "c4", "c5")] == [[], [], [], []]


def test_a_keyword_loads_for_its_turn_only() -> None:
    """`Earlier` brings back what shares its words, whole, in its place, for each call of the turn; then it is gone."""
    opened = Opening(Archive(trigger="keyword"), TALK)
    first = opened.at("c3")
    assert whole(first) == ["t1"]
    assert first["t1"] == FERRY
    assert loads(opened.events) == [Loaded(identify("talk", "t1", FERRY), "keyword", len(FERRY))]
    assert whole(opened.at("a3")) == ["t1"]
    assert opened.events == ()
    assert whole(opened.at("c4")) == []


def test_similarity_loads_what_is_near_enough() -> None:
    """The nearest card at or above `similarity`; below it nothing; `limit` of them at most."""
    model = Fake(words=("ferry", "museum"))
    opened = Opening(Archive(trigger="semantic", similarity=0.9), TALK, model)
    assert whole(opened.at("c4")) == ["t2"]
    assert whole(opened.at("c5")) == []  # "thanks" has no direction: cosine 0
    every = Opening(Archive(trigger="semantic", similarity=-1, limit=2), TALK, model)
    assert whole(every.at("c5")) == ["t1", "t2"]


def test_hybrid_is_either_and_the_tool() -> None:
    """A keyword where the meaning is too far, the meaning where there is no keyword, and the model may still call."""
    opened = Opening(Archive(trigger="hybrid", similarity=0.99), TALK, Fake(words=("museum", "coins")))
    assert whole(opened.at("c3")) == ["t1"]
    assert whole(opened.at("c4")) == ["t2"]
    assert opened.context.tools[-1].name == "load_tool_history"
    assert opened.calls(json.dumps({"uuid": identify("talk", "t1", FERRY)})) == FERRY


def test_when_the_embedder_fails_keywords_decide() -> None:
    """It is said, and no message is lost."""
    opened = Opening(Archive(trigger="semantic"), TALK, Fake())
    assert whole(opened.at("c3")) == ["t1"]
    assert Failed("embedding", "it is down", "keywords decide what is loaded") in opened.events
    assert whole(opened.at("c4")) == []


@pytest.mark.parametrize(
    ("text", "yes"),
    [
        ("你之前说的配置", True),
        ("刚才那个", True),
        ("You said so", True),
        ("an earlyearlier word", False),
        ("now", False),
    ],
)
def test_keywords(text: str, yes: bool) -> None:
    """001 §4.2's words anywhere in Chinese text, English ones as whole words."""
    assert (keyword_pattern(KEYWORDS).search(text) is not None) is yes


def test_what_cannot_be_loaded_stays_a_placeholder(tmp_path: Path) -> None:
    """The store is gone when the turn asks for it: the placeholder is sent, and it is said."""
    strategy = at_file(tmp_path, trigger="keyword", fresh=False)
    opened = Opening(strategy, TALK)
    opened.at("a2")
    (tmp_path / "archive.db").write_text("these are no rows" * 100)
    assert whole(opened.at("c3")) == []
    assert opened.events == (
        Failed("load", f"{strategy.store}: file is not a database (name another store)", "the placeholder is sent"),
    )


def test_partial_loading() -> None:
    """At most `load_tokens`: the passages that the question is about, in order, gaps marked."""
    text = "\n".join(f"Room {at} is kept by {name}." for at, name in enumerate(["Ada", "Bo", "Cy"] * 400))
    talk = conversation(asking(1, "who?", "rooms", text), asking(2, "Earlier: who keeps room 777?", "x", "y"))
    opened = Opening(Archive(trigger="keyword", load_tokens=300, language="en"), talk)
    shown = opened.at("c2")["t1"]
    assert "Room 777 is kept by Ada." in shown
    assert COUNTER.text(shown) <= 300
    assert shown.startswith("📎 [Archived tool result: ")
    assert "…\n" in shown


@given(st.text(max_size=400), st.text(max_size=40), st.integers(1, 60))
def test_passages_are_within_their_budget(text: str, question: str, budget: int) -> None:
    """Any text, any question: at most the budget, and all of the text where it fits."""
    shown = relevant_passages(text, question, budget, COUNTER.text)
    assert COUNTER.text(shown) <= budget
    if COUNTER.text(text) <= budget:
        assert shown == text


def test_another_conversation_s_result_comes_before_the_turn(tmp_path: Path) -> None:
    """Reuse across conversations: as a system message of its own, for its turn, where nothing has a place for it."""
    old = conversation(asking(1, "ferry?", "ferry", FERRY, time=1e9), name="old")
    Opening(at_file(tmp_path, fresh=False), old).at("a1")
    here = conversation(asking(1, "last time: the ferry?", "x", "y", time=2e9), asking(2, "ok", "x", "y", time=2e9))
    opened = Opening(at_file(tmp_path, trigger="keyword", scope="all"), here)
    sent = opened.at("a1")
    uuid = identify("old", "t1", FERRY)
    assert list(sent) == ["s", f"archive:{uuid}", "u1", "c1", "t1"]
    assert sent[f"archive:{uuid}"].endswith(FERRY)
    assert list(opened.at("c2")) == ["s", "u1", "c1", "t1", "a1", "u2"]


ANSWERS = {
    "not json": "The arguments cannot be read",
    "[]": "The arguments cannot be read",
    '{"uuid": 7}': "The arguments cannot be read",
    "{}": "The arguments cannot be read",
    '{"uuid": "00000000-0000-0000-0000-000000000000"}': "There is no archived result",
    '{"uuid": "x\\u0000\\ud800 OR 1=1"}': "There is no archived result",
}


@pytest.mark.parametrize("arguments", ANSWERS)
def test_a_call_that_names_nothing(arguments: str) -> None:
    """The model is told what was wrong, and it is counted."""
    opened = Opening(Archive(), TALK)
    opened.at("c3")
    assert ANSWERS[arguments] in opened.calls(arguments)
    assert [event.what for event in opened.events if isinstance(event, Failed)] == ["load"]


def test_the_tool_gives_the_whole_result() -> None:
    """A model that calls it with the uuid of a placeholder gets what the tool gave."""
    opened = Opening(Archive(), TALK)
    uuid = opened.at("c3")["t2"].split("result: ")[1][:36]
    assert opened.calls(json.dumps({"uuid": f" {uuid.upper()} "})) == MUSEUM
    assert opened.events == (Loaded(uuid, "model", len(MUSEUM)),)


def test_a_summary_by_a_model(tmp_path: Path) -> None:
    """With `summariser` the model is shown the result, and asked once; its failure leaves the extracted summary."""
    model = Fake(reply=lambda _: "Ferry at 09:30.\n" * 100)
    opened = Opening(at_file(tmp_path, summariser="run", fresh=False), TALK, model)
    shown = opened.at("a1")["t1"]
    assert "\nFerry at 09:30." in shown
    assert [prompt.material for prompt in model.prompts] == [(FERRY,)]
    assert [message.id for message in model.prompts[0].about] == ["t1"]
    assert len(shown) < 700
    failing = Opening(Archive(summariser="openai/x", fresh=False), TALK, Fake())
    assert "Norderney" in failing.at("a1")["t1"]
    assert [type(event) for event in failing.events] == [Failed, Archived]


@pytest.mark.parametrize(
    ("arguments", "query"),
    [
        ({"query": "gate\n hours"}, "gate hours"),
        ({"path": "/a", "lines": [1, 2]}, "path=/a; lines=[1, 2]"),
        ("raw text", "raw text"),
        (["a"], '["a"]'),
        ({}, ""),
        (None, ""),
        ({"q": "x" * 600}, "x" * 499 + "…"),
    ],
)
def test_the_query_is_made_of_the_arguments(arguments: object, query: str) -> None:
    """One argument by itself, several by name, at most 500 characters in one line."""
    assert query_of(arguments, 500) == query


def test_sources() -> None:
    """Addresses, then paths, then titles, each in the order they are named, at most three."""
    text = '# Guide\nsee /srv/b.md and /srv/a.md, /srv/b.md\n{"title": "Ports"}\nhttps://example.org/x'
    assert sources_of(text, 3) == ("https://example.org/x", "/srv/b.md", "/srv/a.md")
    assert sources_of(text, 9)[3:] == ("Guide", "Ports")
    assert sources_of("nothing here", 3) == ()


@given(st.text(max_size=300), st.integers(1, 80))
def test_a_summary_is_within_its_length(text: str, most: int) -> None:
    """Any text, in characters, and nothing that a database or a tokenizer would refuse."""
    made = summary_of(text, most)
    assert len(made) <= most
    made.encode()
    assert "\x00" not in made
