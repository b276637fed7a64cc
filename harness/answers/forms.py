"""How a question and its context are put to an answer model: as a chat, or as one text for a model without tools.

A chat has instruction and question as its last message. A text has the instruction, then the conversation, and the
question at the end: all questions on one context share their beginning, which a local model then reads once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256

import msgspec
from msgspec.structs import replace

from ctxbench.metrics.language import language_of, word_lists
from ctxbench.metrics.times import day_of, written
from ctxbench.scenarios.model import Message, Tool, ToolCall

from ..models import Reply
from ..models.recorded import ModelRequest, messages_of, offered
from .answer import Question

_TEXTS = word_lists(__package__, "prompts")
NOT_AVAILABLE: str = _TEXTS["not_available"]
"""Tells a model that called a tool of the recorded agent that it cannot be run."""


def _prompt(name: str, keys: Sequence[str]) -> str:
    return f"{name}@{sha256(''.join(_TEXTS[key] for key in keys).encode()).hexdigest()[:12]}"


CHAT_PROMPT = _prompt("answer", [key for key in _TEXTS if not key.startswith("text_")])
"""Names the prompt by its digest: recorded answers to another prompt are told from these."""
_TEXT = ("text_instruction_en", "text_instruction_zh", "text_question_en", "text_question_zh")
_TOOL = ("text_tool_question_en", "text_tool_question_zh", "not_available")
TEXT_PROMPT = _prompt("answer_text", _TEXT)
"""The same for a model that is asked with one text."""
TEXT_TOOL_PROMPT = _prompt("answer_text_tool", _TEXT + _TOOL)
"""The same where it is offered a strategy's tool."""
PROMPTS = CHAT_PROMPT, TEXT_PROMPT, TEXT_TOOL_PROMPT


class ChatForm:
    """Messages of a chat, with tools as providers take them."""

    def __init__(self, question: Question) -> None:
        self._question = question

    def request(self, model: str, reply: int) -> ModelRequest:
        """Return the first request."""
        instruction: str = _TEXTS[f"question_{language_of(self._question.text)}"]
        asked = as_chat(self._question.context, instruction.replace("{question}", self._question.text))
        return ModelRequest(model, asked, 0.0, reply, self._question.tools, prompt=CHAT_PROMPT)

    def calls(self, request: ModelRequest, reply: Reply) -> tuple[ToolCall, ...]:  # noqa: ARG002
        """Return the calls that the provider reported."""
        return reply.calls

    def after(self, request: ModelRequest, reply: Reply, results: Sequence[str], *, silent: bool) -> ModelRequest:
        """Return the chat with the reply and the results behind it."""
        chat = [*messages_of(request.asked), Message("", "assistant", reply.text, reply.calls)]
        chat += [Message("", "tool", text, answers=call.id) for call, text in zip(reply.calls, results, strict=True)]
        return replace(request, asked=tuple(chat), silent=silent)

    def last(self, request: ModelRequest) -> ModelRequest:
        """Return the request with tools that may not be called."""
        return replace(request, silent=True) if request.tools else request


class TextForm:
    """One text. A strategy's tool is called by writing the call, as in `load_tool_history(uuid="…")`."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._called: list[ToolCall] = []
        self._loaded: list[str] = []
        self._tools = {tool.name: tool for tool in question.own_tools}

    def request(self, model: str, reply: int) -> ModelRequest:
        """Return the first request."""
        prompt = TEXT_TOOL_PROMPT if self._tools else TEXT_PROMPT
        return ModelRequest(model, self._text(silent=False), 0.0, reply, prompt=prompt)

    def calls(self, request: ModelRequest, reply: Reply) -> tuple[ToolCall, ...]:
        """Return the first call that stands in the reply. Where no tool was offered, the text is the answer."""
        for found in () if request.silent else _CALL.finditer(reply.text):
            if (tool := self._tools.get(found["name"])) is not None:
                # A value without a name is that of the first parameter.
                arguments = {found["key"] or _first_parameter(tool): found["value"]}
                return (ToolCall("", tool.name, msgspec.json.encode(arguments).decode()),)
        return ()

    def after(self, request: ModelRequest, reply: Reply, results: Sequence[str], *, silent: bool) -> ModelRequest:
        """Return the text with the results behind the conversation."""
        calls = self.calls(request, reply)
        if any(call in self._called for call in calls):  # it would go on for as long as it may
            return self.last(request)
        self._called += calls
        self._loaded += [f"tool {call.name}: {text}" for call, text in zip(calls, results, strict=True)]
        return replace(request, asked=self._text(silent=silent), silent=silent)

    def last(self, request: ModelRequest) -> ModelRequest:
        """Return the request without the offer of a tool."""
        # Where none was called, it is the request of a strategy without tools, whatever this one has.
        prompt = request.prompt if self._called else TEXT_PROMPT
        return replace(request, asked=self._text(silent=True), silent=True, prompt=prompt)

    def _text(self, *, silent: bool) -> str:
        language = language_of(self._question.text)
        offers = self._tools and not silent
        question: str = _TEXTS[f"text_tool_question_{language}" if offers else f"text_question_{language}"]
        parameters = {name: _first_parameter(tool) for name, tool in self._tools.items()}
        calls = ", ".join(f'{name}({parameter}="...")' for name, parameter in parameters.items())
        question = question.replace("{call}", calls).replace("{parameter}", ", ".join(parameters.values()))
        asked = question.replace("{question}", self._question.text)
        start = _TEXTS[f"text_instruction_{language}"]
        return "\n\n".join([start, as_text(self._question.context), *self._loaded, asked])


_CALL = re.compile(r"(?<!\w)(?P<name>\w++)\(\s*+(?:(?P<key>\w+)\s*[=:]\s*)?[\"'“]?(?P<value>[^\"'”()]*)[\"'”]?\s*\)")


def _first_parameter(tool: Tool) -> str:
    schema = offered([tool])[0]["function"]["parameters"]
    return next(iter(schema.get("properties") or {}), "input")


def as_chat(context: Sequence[Message], instruction: str) -> tuple[Message, ...]:
    """Return the context as messages of a chat, with the instruction as the last one."""
    texts, chat, at = list(_texts(context)), list[Message](), 0
    while at < len(context):
        # A message and the tool results right behind it: those of its calls first, then the others, as text.
        message, stop = context[at], at + (context[at].role != "tool")
        results = list[int]()
        while stop < len(context) and context[stop].role == "tool":
            results.append(stop)
            stop += 1
        if message.role != "tool":
            # The first result of a call is its answer; any other is shown as a text below.
            answers = {context[result].answers or "": result for result in reversed(results)}
            calls = tuple(_readable(call) for call in message.calls if call.id in answers)
            lost = [_written(call) for call in message.calls if call.id not in answers]
            text = "\n".join(filter(None, [texts[at], *lost]))
            if text or calls:
                chat.append(Message("", message.role, text, calls))
            in_place = [answers[call.id] for call in calls]
            chat += [Message("", "tool", texts[result], answers=context[result].answers or "") for result in in_place]
            results = [result for result in results if result not in in_place]
        chat += [
            Message("", "user", f"[result of the tool {context[result].name or 'unknown'}]\n{texts[result]}")
            for result in results
        ]
        at = stop
    return (*chat, Message("", "user", instruction))


def as_text(context: Sequence[Message]) -> str:
    """Return the context as one text, a message after the other."""
    parts = []
    for message, text in zip(context, _texts(context), strict=True):
        who = f"tool {message.name}".strip() if message.role == "tool" else message.role
        parts.append(f"{who}: " + "\n".join(filter(None, [text, *map(_written, message.calls)])))
    return "\n\n".join(parts)


def _texts(context: Sequence[Message]) -> Iterator[str]:
    """Yield the text of each message, with its speaker's name, and the day before the first message of a day."""
    # Without names and days nobody could answer who and when. They are not in the run's token counts (decision 24).
    before = None
    for message in context:
        text = message.text
        if message.name and message.role in ("user", "assistant") and text:
            text = f"{message.name}: {text}"
        day = day_of(message.time) if message.time is not None else None
        if day is not None and day != before and message.role in ("user", "assistant") and text:
            before, text = day, f"[{written(day)}]\n{text}"
        yield text


def _written(call: ToolCall) -> str:
    return f"[calls {call.name}({call.arguments})]"


def _readable(call: ToolCall) -> ToolCall:
    """Return the call with arguments that are a JSON object, which some providers insist on."""
    with suppress(msgspec.DecodeError):
        if isinstance(msgspec.json.decode(call.arguments), dict):
            return call
    return replace(call, arguments=msgspec.json.encode({"arguments": call.arguments}).decode())
