"""Tests count repeated calls and lost rules after a compaction, for agents with different tools."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from ctxbench.metrics.aftermath import aftermath, without_calls
from ctxbench.scenarios.model import Call, Compaction, Conversation, Message, ToolCall, compacted_start
from ctxbench.scenarios.view import Messages

RULES = (
    "<system-reminder>\nContents of /repo/AGENTS.md:\n- Never push to main.\n- Use pnpm, not npm\n</system-reminder>"
)


def session(*calls: tuple[str, Any, str] | str, first_kept: str | None = None) -> Conversation:
    """Return a session of tool calls (tool, arguments, result). A text among them is the summary of a compaction."""
    messages, compactions = [Message("s", "system", "Never tell a lie."), Message("u", "user", RULES, time=0)], []
    for number, call in enumerate(calls):
        if isinstance(call, str):
            compactions.append(Compaction(messages[-1].id, call, first_kept))
            messages.append(Message(f"u{number}", "user", "Continue.", time=messages[-1].time))
            continue
        tool, arguments, result = call
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        times = {"time": 10.0 * number + 5, "call": Call(started=10.0 * number)}
        messages += [
            Message(f"a{number}", "assistant", calls=(ToolCall(f"t{number}", tool, text),), **times),
            Message(f"r{number}", "tool", result, answers=f"t{number}", time=10.0 * number + 6),
        ]
    messages.append(Message("end", "assistant", "Done.", thinking="So it is.", time=10.0 * len(calls) + 5))
    return Conversation("one", tuple(messages), compactions=tuple(compactions))


def contexts(conversation: Conversation) -> list[Messages]:
    """Return what the agent sent: from a compaction on the system message, the summary and what it kept."""
    sent, places = [], {message.id: at for at, message in enumerate(conversation.messages)}
    for at in conversation.calls():
        history = Messages.prefix(conversation.messages, at)
        done = [compaction for compaction in conversation.compactions if places[compaction.after] < at]
        if done:
            last = done[-1]
            first = places[last.first_kept] if last.first_kept else places[last.after] + 1
            history = Messages.of(compacted_start(last, conversation.messages[:first])) + history[first:]
        sent.append(history)
    return sent


def whys(*calls: tuple[str, Any, str] | str, **more: Any) -> list[str]:
    """Return why each call that was made again was, in order."""
    conversation = session(*calls, **more)
    return [made.why for made in aftermath(conversation, contexts(conversation)).again]


READ = {
    "Claude Code": ("Read", {"file_path": "/repo/src/a.py"}, "x = 1"),
    "a shell": ("shell", {"command": ["bash", "-lc", "cat src/a.py"]}, "x = 1"),
    "an editor": ("str_replace_editor", {"command": "view", "path": "src/a.py"}, "x = 1"),
    "a clerk": ("openDocument", {"id": "DOC-12"}, "Paid."),
    "nested too deep": ("run", "[" * 9000 + "]" * 9000, "x = 1"),
    "arguments that are no JSON": ("run", "print(open('src/a.py'))", "x = 1"),
}


@pytest.mark.parametrize("read", READ.values(), ids=READ)
def test_a_result_that_was_dropped(read: tuple[str, Any, str]) -> None:
    """The agent asks again: the first time as the compaction dropped the result, the second time without need."""
    other = ("ping", {"host": "b"}, "ok")
    assert whys(read, other, "A file was read.", read, read) == ["dropped", "there"]
    assert whys(read, other, read) == []  # nothing was compacted
    assert whys(read, other, "A file was read.", read, first_kept="a0") == ["there"]


@pytest.mark.parametrize(
    ("between", "why"),
    [
        (("Edit", {"file_path": "/repo/src/a.py", "old_string": "1", "new_string": "2"}, "ok"), "changed"),
        (("shell", {"cmd": "sed -i s/1/2/ src/a.py"}, ""), "changed"),
        (("apply_patch", "*** Update File: src/a.py\n-x = 1\n+x = 2", "Done"), "changed"),
        (("Edit", {"file_path": "/repo/src/b.py", "old_string": "1", "new_string": "2"}, "ok"), "dropped"),
        (("Grep", {"pattern": "x", "path": "/repo/src/a.py"}, "1:x = 1"), "dropped"),
    ],
)
def test_a_file_that_was_written(between: tuple[str, Any, str], why: str) -> None:
    """A repeated read could have changed if any call in between may have written that file, by a tool of any name."""
    assert whys(READ["Claude Code"], between, "A file was read.", READ["Claude Code"]) == [why]


def test_a_result_that_could_be_another() -> None:
    """Another result is a change, and a command that names no file depends on all that is written."""
    write, test = ("Write", {"path": "b.py", "content": "y\n"}, "ok"), ("bash", {"command": "make"}, "passed")
    assert whys(("clock", {}, "10:00"), "Summary.", ("clock", {}, "10:05")) == ["changed"]
    assert whys(test, write, "Summary.", test) == ["changed"]
    assert whys(test, "Summary.", test) == ["dropped"]


def test_arguments_in_another_order() -> None:
    """The same arguments are the same call, however they are written."""
    found = whys(("q", '{"a": "A-1", "b": 2}', "r"), "Summary.", ("q", '{"b":2,"a":"A-1"}', "r"))
    assert found == ["dropped"]
    assert whys(("q", {"a": "A-1"}, "r"), "Summary.", ("q", {"a": "A-2"}, "r"), ("p", {"a": "A-1"}, "r")) == []


def test_calls_side_by_side() -> None:
    """The same call twice in one answer asks for the dropped result twice. None is made again because of the other."""
    read = READ["Claude Code"]
    conversation = session(read, "Summary.", read, read)
    messages = list(conversation.messages)
    second = messages.pop(7)
    messages[5] = replace(messages[5], calls=messages[5].calls + second.calls)
    both = replace(conversation, messages=tuple(messages))
    of = aftermath(both, contexts(both))
    assert [made.why for made in of.again] == ["dropped", "dropped"]
    assert [both.messages[at].id for at in of.spared] == ["a2"]
    assert [message.id for message in without_calls(both, of.dropped).messages] == ["s", "u", "a0", "r0", "u1", "end"]


def test_rules_that_were_lost() -> None:
    """System messages are sent again. A file of rules is lost, unless it is in the summary or was kept."""
    read = READ["Claude Code"]
    conversation = session(read, "Summary.", read)
    of = aftermath(conversation, contexts(conversation))
    assert of.lost == {"Never push to main.": "AGENTS.md", "Use pnpm, not npm": "AGENTS.md"}
    conversation = session(read, "The user said: Never push to main.", read)
    assert list(aftermath(conversation, contexts(conversation)).lost) == ["Use pnpm, not npm"]
    said = replace(conversation.messages[1], text="Add to AGENTS.md: never push to main.")
    of_user = replace(conversation, messages=(conversation.messages[0], said, *conversation.messages[2:]))
    assert not aftermath(of_user, contexts(of_user)).lost  # a wish, and no file of rules
    conversation = session(read, "Summary.", read, first_kept="u")
    assert not aftermath(conversation, contexts(conversation)).lost


def test_reasoning_behind_a_summary() -> None:
    """Reasoned answers that were kept stand behind another start than the one that they were given on."""
    conversation = session(READ["a clerk"], READ["a shell"], "Summary.", READ["a shell"], first_kept="a1")
    thinking = [replace(message, thinking="Hm." * (message.role == "assistant")) for message in conversation.messages]
    conversation = replace(conversation, messages=tuple(thinking))
    assert aftermath(conversation, contexts(conversation)).stale == 1


def test_a_conversation_without_calls() -> None:
    """Answers that made no other call are gone with their results, and so is the time that they took."""
    read, other = READ["Claude Code"], ("Read", {"file_path": "/repo/src/b.py"}, "y = 1")
    conversation = session(read, "A file was read.", read, other)
    of = aftermath(conversation, contexts(conversation))
    spared = without_calls(conversation, of.dropped)
    assert [message.id for message in spared.messages] == ["s", "u", "a0", "r0", "u1", "a3", "r3", "end"]
    # From the message before it to its result the call took 20 s.
    assert [message.time for message in spared.messages] == [None, 0, 5, 6, 6, 15, 16, 25]
    assert spared.messages[5].call == Call(started=10)
    assert [conversation.messages[at].id for at in of.spared] == ["a2"]
    assert without_calls(conversation, ()).messages == conversation.messages
