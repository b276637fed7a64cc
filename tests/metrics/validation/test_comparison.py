"""Recorded calls beside the cache models: by hand, and on the sample recordings to the token."""

from pathlib import Path

import msgspec
import pytest

from ctxbench.harness.engine.plan import RunInputs
from ctxbench.metrics.validation.comparison import ComparedCall
from ctxbench.scenarios.model import Call, Compaction, Conversation, Message, Tool, ToolCall
from ctxbench.scenarios.source import Problems
from tests.metrics.validation.recordings import MODEL, T0, call, compared, reads, replayed, said


def of_folder(folder: Path) -> list[ComparedCall]:
    return compared(*RunInputs((str(folder),)).read(Problems()))


def test_pi_sessions(recordings: Path) -> None:
    """A person at the keyboard: every pause over five minutes is an expiry, as predicted; other misses are named."""
    rows = of_folder(recordings / "pi-sessions")
    assert [row.expired for row in rows if row.expired] == [(True, True)] * 5
    assert (len(rows), sum(row.exact for row in rows)) == (909, 864)
    gone = [row.reason for row in rows if row.reason.startswith("unknown: gone before its lifetime")]
    assert (len(gone), gone.count("unknown: gone before its lifetime, at a user's turn")) == (36, 36)
    assert sum(row.reason == "warmed by a call that reports no usage" for row in rows) == 5


def test_by_hand() -> None:
    """One writes, one reads that and writes more, one after six minutes writes all; our own counts do not matter."""
    rows = compared(
        said("talk", call(0, 5007, 0, 5000, "u0"), call(60, 5307, 5000, 300, "u1"), call(420, 5607, 0, 5600, "u2"))
    )
    assert reads(rows) == [0, 5000, 0]
    assert [row.reason for row in rows] == ["", "", ""]
    assert [row.gap for row in rows] == [None, 60, 360]
    assert [row.expired for row in rows] == [None, None, (True, True)]


def test_marks_of_an_hour() -> None:
    """What is written for an hour is there after ten minutes, and gone after seventy more."""
    rows = compared(
        said(
            "talk",
            call(0, 5000, 0, 5000, "u0", ttl="1h"),
            call(600, 5300, 5000, 300, "u1", ttl="1h"),
            call(4900, 5600, 0, 5600, "u2", ttl="1h"),
        )
    )
    assert reads(rows) == [0, 5000, 0]
    assert [row.predicted.written_1h for row in rows] == [5000, 300, 5600]
    assert [row.expired for row in rows] == [None, None, (True, True)]


def test_runs_that_share_a_system_prompt() -> None:
    """A second run, begun when the first was answered, reads what that wrote up to the system prompt; a third has
    another one."""
    first = said("one", call(0, 3000, 0, 3000, "s", "u0"), system="You help.", asks="one")
    second = said("two", call(10, 3100, 2900, 200, "s", "u0"), system="You help.", asks="two")
    other = said("three", call(20, 3100, 0, 3100, "s", "u0"), system="You do not.", asks="three")
    rows = compared(first, second, other)
    assert [row.predicted.hit for row in rows] == [-1, 1, -1]


def test_prompts_that_begin_alike_within_a_message() -> None:
    """In units of 128 tokens the 1 500 that two first messages have in common are read; of marked prefixes none is."""
    start = "the same words " * 500
    for model, read in (("gpt-4o", 1408), ("claude-sonnet-4-5", 0)):
        talks = []
        for at, end in enumerate(("one", "two")):
            answer = Message("a", "assistant", "yes", call=call(60.0 * at, 1510, 0, None, "u", model=model))
            talks.append(Conversation(end, (Message("u", "user", start + end), answer)))
        assert reads(compared(*talks)) == [0, read]


def test_each_model_and_host_has_a_cache_of_its_own() -> None:
    """In a conversation that changes its model, each reads what it wrote itself; so with another host."""
    rows = compared(
        said(
            "talk",
            call(0, 5000, 0, 5000, "u0"),
            call(10, 5100, 0, 5100, "u1", model="claude-opus-4-5"),
            call(20, 5200, 5000, 200, "u2"),
            call(30, 5300, 0, 5300, "u3", provider="openrouter"),
        )
    )
    assert reads(rows) == [0, 0, 5000, 0]
    assert [row.gap for row in rows] == [None, None, 20, None]


def test_marks_that_are_not_recorded() -> None:
    """Where something was written, there was a mark at the end of the prompt; its lifetime is what the usage says."""
    found, rows = replayed(said("talk", call(0, 5000, 0, 4990, hour=4990), call(600, 5300, 4990, 300, hour=300)))
    assert reads(rows) == [0, 4990]
    assert found.assumed >= {"marks"}


def test_a_mark_on_the_system_prompt_only() -> None:
    """Where always the same number of tokens is read while the prompts grow, the mark was before the messages."""
    found, rows = replayed(
        said("talk", call(0, 5000, 0, 4000), call(60, 6000, 4000, 0), call(120, 7000, 4000, 0), system="You help.")
    )
    assert reads(rows) == [0, 4000, 4000]
    assert [row.predicted.written for row in rows][1:] == [0, 0]
    assert found.assumed >= {"head marks"}


def test_another_thinking_level_breaks_the_messages() -> None:
    """The system prompt is read all the same; back at the first level, what that had written is there again."""
    rows = compared(
        said(
            "talk",
            call(0, 3000, 0, 3000, "s", "u0", effort="off"),
            call(10, 3100, 0, 0, "s", "u1", effort="high"),
            call(20, 3200, 3000, 200, "s", "u2", effort="off"),
            system="You help.",
        )
    )
    assert [row.predicted.hit for row in rows] == [-1, 1, 2]
    assert rows[2].predicted.read == 3000


@pytest.mark.parametrize(("model", "read"), [("claude-sonnet-4-5", 5_000), ("claude-opus-4-5", 5_200)])
def test_a10_reasoning_of_the_turn_before(model: str, read: int) -> None:
    """A10: of user, [think1, call1], result1, [think2, text2], user2, a model that strips earlier turns reads up to
    user1 (5,000 tokens); one that keeps them, up to result1 (5,200)."""
    asked = [
        call(0, 5_000, 0, 5_000, model=model),
        call(10, 5_200, 5_000, 200, model=model),
        call(20, 5_300, read, 5_300 - read, model=model),
    ]
    said = (
        Message("u1", "user", "why?"),
        Message("a1", "assistant", thinking="I look.", calls=(ToolCall("c", "look"),), time=T0 + 2, call=asked[0]),
        Message("r1", "tool", "that", answers="c", time=T0 + 3),
        Message("a2", "assistant", "so", thinking="I see.", time=T0 + 12, call=asked[1]),
        Message("u2", "user", "and then?", time=T0 + 13),
        Message("a3", "assistant", "this", time=T0 + 22, call=asked[2]),
    )
    assert reads(compared(Conversation("talk", said))) == [0, 5_000, read]


def test_other_tools_break_everything() -> None:
    """A call that was offered other tools reads nothing."""
    rows = compared(said("talk", call(0, 3000, 0, 3000, "u0"), call(10, 3100, 0, 3100, "u1", tools=())))
    assert reads(rows) == [0, 3000]
    tools = (Tool("look"),)
    rows = compared(said("talk", call(0, 3000, 0, 3000, "u0", tools=tools), call(10, 3100, 0, 3100, "u1")))
    assert reads(rows) == [0, 0]


def test_a_call_that_reports_nothing() -> None:
    """Stopped, perhaps before it got to the cache, it writes nothing; else its prompt, as long as we count it."""
    for stop, at_least in (("aborted", 5000), ("stop", 5001)):
        silent = Call(MODEL, started=T0 + 10, stop=stop)
        rows = compared(said("talk", call(0, 5000, 0, 5000), silent, call(20, 5300, 5000, 300)))
        assert rows[1].predicted.read >= at_least
        assert (rows[1].predicted.read == 5000) == (stop == "aborted")


@pytest.mark.parametrize(
    ("wrong", "field", "what"),
    [
        (call(10, 5100, 5000, 100, *"abcde"), "marks", "5 cache breakpoints, of which a provider takes 4"),
        (
            msgspec.structs.replace(call(10, 250_000, 5000, 100), model="claude-haiku-4-5"),
            "usage.input",
            "a prompt of 250,000 tokens, and claude-haiku-4-5 takes 200,000",
        ),
        (call(10, None, 5000, 100), "usage.input", "nothing says how long its prompt was"),
        (call(-60, 5100, 5000, 100), "started", "the clock ran backwards"),
        (call(None, 5100, 5000, 100), "started", "it has no time"),
    ],
)
def test_a_call_that_cannot_be_compared(wrong: Call, field: str, what: str) -> None:
    """It is named with its file, line and field, and the calls around it are compared."""
    names = [Message(each, "user", each) for each in "abcde"]
    talk = said("talk", call(0, 5000, 0, 5000), wrong, call(20, 5200, 5000, 200), call(30, 5300, 5200, 100))
    found, rows = replayed(Conversation(talk.id, (*names, *talk.messages), source=talk.source))
    assert len(rows) == 3
    [problem] = found.left_out
    assert str(problem).startswith(f"talk.jsonl:1: messages[8].call.{field}: a1: ")
    assert what in problem.what
    assert problem.remedy


def test_starts_that_are_not_recorded() -> None:
    """A call began when the message before it was there; where nothing says when that was, when it was answered."""
    talk = said("talk", call(0, 5000, 0, 5000), call(None, 5300, 5000, 300))
    times = [None, T0 + 2, T0 + 60, T0 + 90]
    messages = [Message(m.id, m.role, m.text, time=t, call=m.call) for m, t in zip(talk.messages, times, strict=True)]
    found, rows = replayed(Conversation("talk", tuple(messages)))
    assert [row.gap for row in rows] == [None, 60]
    assert found.assumed >= {"no start"}


def test_conversations_without_times_come_one_after_the_other() -> None:
    """The second run of the same task reads what the first wrote, and nothing is said to be wrong."""
    one, two = (said(name, call(None, 5000, 0, 5000), call(None, 5100, 5000, 100), asks="x") for name in ("1", "2"))
    found, rows = replayed(one, two)
    assert reads(rows) == [0, 5000, 5000, 5100]
    assert found.assumed >= {"no time"}
    assert not found.left_out


def test_a_compaction() -> None:
    """After it the prompt begins anew with the summary; what was marked in the system prompt is read."""
    rows = compared(
        said(
            "talk",
            call(0, 9000, 0, 9000, "s", "u0"),
            call(10, 9100, 9000, 100, "s", "u1"),
            call(20, 4000, 0, 0, "s", "u2"),
            system="You help.",
            compactions=(Compaction("a1", "They talked."),),
        )
    )
    assert reads(rows)[:2] == [0, 9000]
    assert rows[2].predicted.hit == 1


def test_models_without_a_rule_are_counted() -> None:
    """Nothing is predicted where no rule is known, and it is said of how many calls."""
    found, rows = replayed(said("talk", call(0, 10, None, None, model="nobody/knows")))
    assert not rows
    assert found.without_rule == {"nobody/knows": 1}
