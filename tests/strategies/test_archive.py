"""The archive: when a result becomes its placeholder, how that reads, and what is offered beside it."""

import json
from dataclasses import replace

import msgspec
import pytest

from ctxbench.harness.invariants import steps
from ctxbench.scenarios.errors import SpecError
from ctxbench.scenarios.model import Message, Tool, ToolCall
from ctxbench.strategies.archive import Archive
from ctxbench.strategies.archive.record import LANGUAGES, Card, Language, identify, is_placeholder, placeholder
from ctxbench.strategies.chain import parse
from ctxbench.strategies.events import Archived, Failed
from tests.strategies.tool_results import COUNTER, LONG, SEARCH, Opening, archives, asking, conversation

CARD = Card("u-1", "c", "", "search_docs", {}, "权限", "权限管理", 52_000, ("a.md", "b.md", "c.md"), 1_734_330_000.0)
DOCUMENT = """📎 [工具结果存档: u-1]
━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━
工具: search_docs
查询: 权限
时间: 2024-12-16 06:20:00
原始长度: 52000字
━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━
内容摘要:
权限管理

主要来源:
- a.md
- b.md
- c.md
━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━
如需查看完整内容，请调用 load_tool_history(uuid="u-1")"""


def test_the_placeholder_is_the_document_s() -> None:
    """001 §3.2's template, character by character."""
    assert placeholder(CARD, "权限管理", "zh", offered=True) == DOCUMENT


def test_the_placeholder_in_english_without_what_is_not_there() -> None:
    """No source, no time, no tool offered: their lines are left out, or say so."""
    card = Card("u-2", "c", "", "search", {}, "gate", "Opens 07:45", 12_000, (), None)
    shown = placeholder(card, "Opens 07:45", "en", offered=False)
    assert shown.splitlines() == [
        "📎 [Archived tool result: u-2]",
        "━" * 37,
        "Tool: search",
        "Query: gate",
        "Time: unknown",
        "Original length: 12000 characters",
        "━" * 37,
        "Summary:",
        "Opens 07:45",
        "━" * 37,
    ]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("offered", [True, False])
@pytest.mark.parametrize("sources", [(), ("a.md", "b.md")])
def test_a_placeholder_is_recognised(language: Language, offered: bool, sources: tuple[str, ...]) -> None:
    """From its first to its last character, in every form; what only quotes one, or has another's uuid, is none."""
    uuid = identify("talk", "t", LONG)
    card = replace(CARD, uuid=uuid, sources=sources)
    shown = placeholder(card, "it opens", language, offered)
    assert is_placeholder(shown)
    assert not is_placeholder("see " + shown)
    assert not is_placeholder(shown + "\nmore")
    assert not is_placeholder(shown.replace(uuid, "u-1"))
    assert not is_placeholder(shown.splitlines()[0])
    if offered:
        other = identify("talk", "t2", LONG)
        assert not is_placeholder(shown.replace(f'"{uuid}"', f'"{other}"'))


def test_a_placeholder_is_never_archived() -> None:
    """An archive of a recording in which there are placeholders leaves them, the way back, as they are."""
    talk = conversation(asking(1, "when?", "gate", LONG), asking(2, "thanks", "x", "y" * 150))
    first = steps(Archive(threshold=3000), talk)[-1].context.messages
    placed = {message.id: message.text for message in first}
    assert identify("talk", "t1", LONG) in placed["t1"]
    recorded = msgspec.structs.replace(talk, messages=(*first, talk.messages[-1]))
    again = steps(Archive(threshold=100, language="en"), recorded)[-1].context.messages
    sent = {message.id: message.text for message in again}
    assert sent["t1"] == placed["t1"]
    assert sent["t2"] == placed["t2"] == "y" * 150  # fresh: not answered yet


def test_one_archive_in_a_chain() -> None:
    """Two would offer one tool for two stores: it is refused, and said why."""
    with pytest.raises(SpecError, match=r"`archive\(threshold=500\)`: only one of its kind may be in a chain"):
        parse("archive(threshold=3000) | none | archive(threshold=500)")


def test_only_what_is_over_the_threshold_is_archived() -> None:
    """10 000 characters stay, 10 001 do not (001 §3.1)."""
    at_it, over = Message("a", "tool", "x" * 10_000), Message("b", "tool", "y" * 10_001)
    operations = archives(Archive(language="zh"))
    assert operations.process(at_it, None) is at_it
    made = operations.process(over, ToolCall("1", "search", '{"query": "why"}'))
    assert made.text.startswith("📎 [工具结果存档: ")
    assert "原始长度: 10001字" in made.text
    assert "查询: why\n" in made.text
    assert operations.load(operations.uuids["b"]) == over.text


@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize("trigger", ["model", "keyword"])
def test_no_placeholder_is_longer_than_its_result(fresh: bool, trigger: str) -> None:
    """Whatever the threshold, a result of no more tokens than its placeholder is sent whole, and is not stored."""
    results = {f"t{at}": "".join(f"Gate {n} opens at 07:{n}. " for n in range(10, 10 + 4 * at)) for at in range(1, 12)}
    talk = conversation(*[asking(at, "when?", "gate", results[f"t{at}"]) for at in range(1, 12)])
    opened = Opening(Archive(threshold=20, fresh=fresh, trigger=trigger), talk)
    for turn in range(2, 12):
        sent = opened.at(f"c{turn}")
        replaced = {name for name in results if name in sent and sent[name] != results[name]}
        assert all(COUNTER.text(sent[name]) < COUNTER.text(results[name]) for name in replaced)
        assert replaced == set(opened.view.uuids) == {f"t{at}" for at in range(turn - len(replaced), turn)}  # type: ignore[attr-defined]
    assert 3 < len(replaced) < 9


def test_a_fresh_result_is_whole_until_it_is_answered() -> None:
    """§5's table: the turn that called the tool pays for the result once; from then on it is the same placeholder."""
    talk = conversation(asking(1, "when?", "gate", LONG), asking(2, "thanks", "x", "short"))
    opened = Opening(Archive(), talk)
    assert opened.at("a1")["t1"] == LONG
    first = opened.at("c2")
    assert first["t1"].startswith("📎")
    assert opened.events == (Archived("t1", identify("talk", "t1", LONG), len(LONG)),)
    last = opened.at("a2")
    assert last["t1"] == first["t1"]
    assert last["t2"] == "short"
    assert opened.events == ()


def test_within_one_turn_only_the_unanswered_results_are_whole() -> None:
    """An agent's turn of several calls carries the newest results only, parallel ones together."""
    two = (ToolCall("x", "search"), ToolCall("y", "search"))
    talk = conversation(
        [
            Message("u", "user", "compare"),
            Message("c1", "assistant", calls=(ToolCall("w", "search"),)),
            Message("t1", "tool", LONG + "1", answers="w"),
            Message("c2", "assistant", calls=two),
            Message("t2", "tool", LONG + "2", answers="x"),
            Message("t3", "tool", LONG + "3", answers="y"),
            Message("end", "assistant", "done"),
        ]
    )
    sent = Opening(Archive(), talk).at("end")
    assert [sent[name].startswith("📎") for name in ("t1", "t2", "t3")] == [True, False, False]


def test_the_tool_and_its_note_stand_from_the_first_call_on() -> None:
    """Right after the leading system messages, the same at every call: what is before the history stays cached."""
    talk = conversation(asking(1, "when?", "gate", LONG), asking(2, "and?", "x", "short"))
    made = steps(Archive(language="zh"), talk)
    for step in made:
        assert [message.id for message in step.context.messages][:3] == ["s", "archive:note", "u1"]
        assert step.context.tools is made[0].context.tools
    note, tool = made[0].context.messages[1], made[0].context.tools[-1]
    assert note.text.startswith("## 历史工具结果管理")
    assert tool.name == "load_tool_history"
    schema = json.loads(tool.parameters)
    assert schema["required"] == ["uuid"]
    assert schema["properties"]["uuid"]["description"] == "要加载的工具结果 UUID（从占位符中获取）"


def test_where_the_recording_lists_no_tools_the_first_call_shows_them() -> None:
    """A recording that has calls but no schemas: the tool is offered after the first call."""
    talk = conversation(asking(1, "when?", "gate", "short"), tools=())
    assert [len(step.context.tools) for step in steps(Archive(), talk)] == [0, 1]


def test_keyword_and_semantic_offer_no_tool() -> None:
    """Triggers can be compared: without the tool there is no note, and no placeholder tells to call it."""
    talk = conversation(asking(1, "when?", "gate", LONG), asking(2, "thanks", "x", "short"))
    opened = Opening(Archive(trigger="keyword"), talk)
    sent = opened.at("a2")
    assert "archive:note" not in sent
    assert "load_tool_history" not in sent["t1"]
    assert opened.context.tools == SEARCH


def test_a_conversation_s_own_tool_of_that_name_stays() -> None:
    """The recording's `load_tool_history` is not shadowed, and it is said once."""
    own = (Tool("load_tool_history", "mine"),)
    made = steps(Archive(), conversation(asking(1, "when?", "gate", LONG), tools=own))
    assert all(step.context.tools == own for step in made)
    assert [type(event) for step in made for event in step.events] == [Failed]


def test_what_a_stage_before_rewrites_is_read_again() -> None:
    """`window | archive`: the start of the history moves at every call, and placeholders stay what they were."""
    turns = [asking(at, f"q{at}", "gate", LONG + str(at)) for at in range(1, 6)]
    talk = conversation(*turns)
    made = steps(parse("window(messages=6) | archive"), talk)
    texts: dict[str, set[str]] = {}
    for step in made:
        for message in step.context.messages:
            if message.text.startswith("📎"):
                texts.setdefault(message.id, set()).add(message.text)
    assert set(texts) == {"t1", "t2", "t3", "t4"}
    assert all(len(each) == 1 for each in texts.values())
    assert sum(isinstance(event, Archived) for step in made for event in step.events) == 4
