"""What the tests of adapters share: a conversation of an agent, and a comparison with the library called natively."""

import subprocess
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.chat import chat_message
from ctxbench.scenarios.model import Conversation, Message
from ctxbench.strategies.chain import parse, spec, use_pythons
from ctxbench.strategies.events import Called
from ctxbench.strategies.functions import ChatDict
from tests.builders import answering, calling, conversations, talk
from tests.strategies.stubs import Stub, events, played

COUNT = TokenCounter().text
ARGUMENTS = ("{}", '{"a": 1}', '{"a":1,"b":[null,"ü"]}', "no json", "[1]", '{"INVALID_JSON": "x"}')
SUMMARY = "The parts that were read so far."
SUMMARISING = ("summar", "events_compaction")
"""Words in the names of strategies that ask the summariser."""

Seen = list[tuple[str, str, tuple[str, ...], str | None]]
"""What a provider would see of messages: role, text, ids of calls, and which call a result answers."""

Native = Callable[[Conversation], Callable[[int, int], Seen]]
"""Opens a conversation with the library itself; what it returns takes the places where what is new starts and ends."""


def library(module: str) -> Any:
    """Import a library, whose own deprecations are none of ours; skip the test where it is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(module, exc_type=ImportError)


def dicts(messages: tuple[Message, ...]) -> list[ChatDict]:
    return [{"id": message.id, **chat_message(message)} for message in messages]


@st.composite
def recorded(draw: st.DrawFn) -> list[ChatDict]:
    """Draw the dicts of a conversation, with names and with arguments however they were written."""
    messages = draw(conversations(12)).messages
    return dicts(
        tuple(
            msgspec.structs.replace(
                message,
                name=draw(st.sampled_from(["", "ann"])),
                calls=tuple(
                    msgspec.structs.replace(call, arguments=draw(st.sampled_from(ARGUMENTS))) for call in message.calls
                ),
            )
            for message in messages
        )
    )


def conversion_test(
    module: str, convert: Callable[[list[ChatDict]], Any], back: Callable[[Any], list[ChatDict]]
) -> Callable[[], None]:
    """Make a test that messages come back from a library's form to the letter: ids, names, calls, arguments."""

    @given(messages=recorded())
    def comes_back(messages: list[ChatDict]) -> None:
        assert back(convert(messages)) == messages

    def test() -> None:
        if module:
            library(module)
        comes_back()

    return test


def work(turns: int = 14, line: str = "row {turn} of the file, of many words ", lines: int = 9) -> Conversation:
    """A conversation of an agent: questions, calls with long results, answers."""
    said: list[Any] = [("system", "You help with files.")]
    for turn in range(turns):
        result = answering(f"r{turn}", f"x{turn}", line.format(turn=turn) * lines)
        said += [("user", f"Read part {turn}, please."), calling(f"c{turn}", f"x{turn}"), result]
        said.append(("assistant", f"Part {turn} has {turn * 7} rows."))
    return talk(*said)


def seen(messages: list[ChatDict]) -> Seen:
    """What a provider would see of message dicts: roles, texts, calls and what is answered."""
    return [
        (
            message["role"],
            message["content"],
            tuple(call["id"] for call in message.get("tool_calls", ())),
            message.get("tool_call_id"),
        )
        for message in messages
    ]


def check_native(text: str, native: Native, asks: bool | None = None, conversation: Conversation | None = None) -> None:
    """Check that at every call the messages are those of the library called natively, and that it shortens some.

    They are the same when the library runs in a process of another Python. `asks` says whether the run's model writes
    for it, as it does where a strategy is called a summary.
    """
    conversation = conversation or work()
    (point,) = entry_points(group="ctxbench.strategies", name=text.split("(")[0])
    _check_native(text, native, asks, conversation)
    use_pythons([f"{point.load().library}={sys.executable}"])
    try:
        _check_native(text, native, asks, conversation)
    finally:
        use_pythons([])


def native_test(module: str, natives: dict[str, Native]) -> Callable[[str], None]:
    """Make a test that at every call the messages are the library's own, and that some call differs from all."""

    @pytest.mark.parametrize("text", natives)
    def test(text: str) -> None:
        library(module)
        check_native(text, natives[text])

    return test


def defect(name: str) -> str:
    """Run an example of what a library does wrong natively, and return what it prints."""
    path = Path(__file__).parents[3] / f"docs/examples/defects/{name}.py"
    return subprocess.run([sys.executable, path], capture_output=True, text=True, check=True).stdout


def _check_native(text: str, native: Native, asks: bool | None, conversation: Conversation) -> None:
    native_step = native(conversation)
    strategy = parse(text)
    models, read, shortened = Stub(reply=lambda prompt: SUMMARY), 0, 0
    steps = played(strategy, conversation, models)
    for step in steps:
        sent = seen(dicts(tuple(step.context.messages)))
        assert sent == native_step(read, step.at)
        shortened += sent != seen(dicts(conversation.messages[: step.at]))
        read = step.at
    assert shortened > len(steps) // 3
    called = any(events(step, Called) for step in steps)
    assert called == (any(word in text for word in SUMMARISING) if asks is None else asks)
    assert spec(strategy) == text
