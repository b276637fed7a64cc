"""A context as a chat that providers take, and as plain text for a model with a small window.

What a recording says beside the text is written into it: who speaks, where messages have names, and the day where it
changes. What no provider takes (a result whose call is not there, a call without its result) becomes text. Nothing is
cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from ...metrics.reading.times import day_of, written
from ...scenarios.model import Message, ToolCall


def as_chat(context: Sequence[Message], instruction: str) -> tuple[Message, ...]:
    """The context as messages of a chat, with the instruction as the last one."""
    pairs = list(zip(context, _texts(context), strict=True))
    made: list[Message] = []
    at = 0
    while at < len(pairs):
        message, text = pairs[at]
        stop = at + (message.role != "tool")
        while stop < len(pairs) and pairs[stop][0].role == "tool":
            stop += 1
        made += _with_results(message, text, [pair for pair in pairs[at:stop] if pair[0].role == "tool"])
        at = stop
    return (*made, Message("", "user", instruction))


def _with_results(message: Message, text: str, results: Sequence[tuple[Message, str]]) -> Iterator[Message]:
    """A message and the tool results right behind it: those of its calls first, then the others, as text."""
    answers = dict[str, tuple[Message, str]]()
    for result, said in results:
        answers.setdefault(result.answers or "", (result, said))
    if message.role != "tool":
        calls = tuple(_readable(call) for call in message.calls if call.id in answers)
        lost = [f"[calls {call.name}({call.arguments})]" for call in message.calls if call.id not in answers]
        text = "\n".join(filter(None, [text, *lost]))
        if text or calls:
            yield Message("", message.role, text, calls)
        taken = [answers[call.id] for call in calls]
        yield from (Message("", "tool", said, answers=result.answers) for result, said in taken)
        results = [pair for pair in results if not any(pair[0] is result for result, _ in taken)]
    for result, said in results:
        yield Message("", "user", f"[result of the tool {result.name or 'unknown'}]\n{said}")


def as_text(context: Sequence[Message], instruction: str) -> str:
    """The context as one text, a message after the other, and the instruction after it."""
    parts = []
    for message, text in zip(context, _texts(context), strict=True):
        calls = [f"[calls {call.name}({call.arguments})]" for call in message.calls]
        who = f"tool {message.name}".strip() if message.role == "tool" else message.role
        parts.append(f"{who}: " + "\n".join(filter(None, [text, *calls])))
    return "\n\n".join([*parts, instruction])


def _texts(context: Sequence[Message]) -> Iterator[str]:
    """The text of each message, with its speaker's name, and the day before the first message of a day."""
    before = None
    for message in context:
        text = message.text
        if message.name and message.role in ("user", "assistant") and text:
            text = f"{message.name}: {text}"
        day = day_of(message.time) if message.time is not None else None
        if day is not None and day != before and message.role in ("user", "assistant") and text:
            before, text = day, f"[{written(day)}]\n{text}"
        yield text


def _readable(call: ToolCall) -> ToolCall:
    """A call whose arguments are a JSON object, which some providers insist on."""
    try:
        if isinstance(msgspec.json.decode(call.arguments), dict):
            return call
    except msgspec.DecodeError:
        pass
    return replace(call, arguments=msgspec.json.encode({"arguments": call.arguments}).decode())
