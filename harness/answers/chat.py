"""Answer models, with the tool loop.

A model that calls a tool of the strategy (`load_tool_history` of `archive`) is given its result, at most ROUNDS times.
The recorded agent's own tools cannot be run again: a model that calls one is told so, and has to answer then. Every
round is charged to the answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from hashlib import sha256

import msgspec
from msgspec.structs import replace

from ...metrics.language import language_of, word_lists
from ...metrics.models import window_of
from ...metrics.reading.times import day_of, written
from ...metrics.tokens import TokenCounter
from ...metrics.value import Missing
from ...scenarios.errors import SpecError, Stopped
from ...scenarios.model import Message, ToolCall
from ...strategies.base import ModelError
from ..models import Models, Reply, Unusable
from ..models.recorded import ModelRequest, messages_of
from ..replay import failure_reason
from .answer import UNKNOWN, Answer, Live, Question, Tools
from .store import digest_of

ROUNDS = 4
"""Times that a model may call tools before it has to answer."""
REPLY = 256
"""Tokens that an answer may take."""
READ = 0.4
"""Share of the tokens that we count of a prompt which a provider has to report: with less it was cut on the way."""
CUT = 1000
"""Tokens from which on that is looked at: of a short prompt, what a provider adds or counts otherwise is too much."""


class ByModel:
    """An answer model of the run, called through the cassette, with retries, time-outs and the spend limit."""

    def __init__(self, models: Models, counter: TokenCounter, rounds: int = ROUNDS, reply: int = REPLY) -> None:
        self.name = models.settings.answerer
        self._models, self._counter, self._rounds, self._reply = models, counter, rounds, reply
        # A local model has a small window and no tools: the context is sent as text.
        self._plain = self.name.startswith("local:")
        self.identity = digest_of(self.name, str(rounds), str(reply), PROMPT)

    def answers(self, questions: Sequence[Question]) -> list[Answer]:
        """Answer the questions; several at once, where none of them needs the strategy."""
        at_once = (
            1 if self._plain or any(question.live for question in questions) else self._models.settings.concurrency
        )
        first = [self._answer(question) for question in questions[:1]]  # alone: it opens what all use
        pool = ThreadPoolExecutor(at_once)
        try:
            return [*first, *pool.map(self._answer, questions[1:])]
        finally:
            pool.shutdown(cancel_futures=True)  # when the user stops it: no more calls

    def _answer(self, question: Question) -> Answer:
        render, tools = (as_text, ()) if self._plain else (as_chat, question.tools)
        asked = render(question.context, instruction(question.text))
        return _Talk(self, question, ModelRequest(self.name, asked, 0.0, self._reply, tools, prompt=PROMPT)).answer()

    def reply(self, request: ModelRequest) -> Reply:
        """Return the model's reply. Raises ModelError, also for a request that does not fit or was cut."""
        size = self._size(request)
        room = self._window
        if room is not None and size + request.max_tokens > room:
            raise ModelError(
                f"{self.name}: {size:,} tokens and {request.max_tokens} for the answer do not fit its window, {room:,}"
            )
        reply = self._models.chat(request, self._counter)
        # Some servers drop the start of a long prompt and say nothing (decision 24).
        if size >= CUT and reply.input_tokens < READ * size:
            cut = f"{self.name}: its provider read {reply.input_tokens:,} of about {size:,} tokens: the context was cut"
            raise Unusable(f"{cut}: give the server a larger window", reply)
        return reply

    @property
    def rounds(self) -> int:
        """Times that it may call tools."""
        return self._rounds

    def _size(self, request: ModelRequest) -> int:
        return self._counter.tools(request.tools) + sum(map(self._counter.message, messages_of(request.asked)))

    @cached_property
    def _window(self) -> int | None:
        try:
            return window_of(self.name)
        except SpecError:  # a model that nobody has told us of
            return None


class _Talk:
    """The chat on one question, until the model answers."""

    def __init__(self, by: ByModel, question: Question, request: ModelRequest) -> None:
        self._by, self._question, self._request = by, question, request
        self._live: Live | None = None
        self._charged: list[Reply] = []
        self._called: list[str] = []

    def answer(self) -> Answer:
        """Return the answer, or a Missing that says why there is none."""
        try:
            text: str | Missing = cleaned(self._talk())
        except Unusable as error:
            self._charged.append(error.reply)
            text = Missing("failed", str(error))
        except ModelError as error:
            text = Missing("failed", str(error))
        costs = [reply.cost for reply in self._charged]
        return Answer(
            text,
            "",
            len(self._charged),
            sum(reply.input_tokens for reply in self._charged),
            sum(reply.output_tokens for reply in self._charged),
            None if None in costs else sum(cost for cost in costs if cost is not None),
            tuple(self._called),
            self._live.events() if self._live is not None else (),
        )

    def _talk(self) -> str:
        request = self._request
        for rounds_left in range(self._by.rounds, -1, -1):
            if not rounds_left and request.tools:
                request = replace(request, silent=True)
            reply = self._by.reply(request)
            self._charged.append(reply)
            if not reply.calls:
                return reply.text
            if request.silent:
                break
            request = self._with_tool_results(request, reply)
        raise ModelError(f"{self._by.name}: called a tool where it had to answer")

    def _with_tool_results(self, request: ModelRequest, reply: Reply) -> ModelRequest:
        """Return the next request, with the tool results. It allows no more calls once a tool was not available."""
        chat = [*messages_of(request.asked), Message("", "assistant", reply.text, reply.calls)]
        tools = self._tools()
        silent = False
        for call in reply.calls:
            self._called.append(call.name)
            answer = tools.get(call.name)
            silent = silent or answer is None
            text = NOT_AVAILABLE if answer is None else self._tool_result(call, answer)
            chat.append(Message("", "tool", text, answers=call.id))
        return replace(request, asked=tuple(chat), silent=silent)

    def _tools(self) -> Tools:
        """Return the strategy's tools; the strategy is started when the model first calls one."""
        if self._live is None and self._question.live is not None:
            try:
                self._live = self._question.live()
            except Stopped:
                raise
            except (Exception, SystemExit) as error:
                raise ModelError(
                    f"the strategy could not be started again for its tools: {failure_reason(error)}"
                ) from None
        return self._live.tools if self._live is not None else {}

    def _tool_result(self, call: ToolCall, answer: Callable[[str], str]) -> str:
        try:
            return answer(call.arguments)
        except Stopped:
            raise
        except (Exception, SystemExit) as error:
            raise ModelError(f"the strategy's tool {call.name} failed: {failure_reason(error)}") from None


def as_chat(context: Sequence[Message], instruction: str) -> tuple[Message, ...]:
    """Return the context as messages of a chat, with the instruction as the last one."""
    pairs = list(zip(context, _texts(context), strict=True))
    chat: list[Message] = []
    at = 0
    while at < len(pairs):
        message, text = pairs[at]
        stop = at + (message.role != "tool")
        while stop < len(pairs) and pairs[stop][0].role == "tool":
            stop += 1
        chat += _with_results(message, text, [pair for pair in pairs[at:stop] if pair[0].role == "tool"])
        at = stop
    return (*chat, Message("", "user", instruction))


def _with_results(message: Message, text: str, results: Sequence[tuple[Message, str]]) -> Iterator[Message]:
    """Yield a message and the tool results right behind it: those of its calls first, then the others, as text."""
    answers = dict[str, tuple[Message, str]]()
    for result, text_of_result in results:
        answers.setdefault(result.answers or "", (result, text_of_result))
    if message.role != "tool":
        calls = tuple(_readable(call) for call in message.calls if call.id in answers)
        lost = [f"[calls {call.name}({call.arguments})]" for call in message.calls if call.id not in answers]
        text = "\n".join(filter(None, [text, *lost]))
        if text or calls:
            yield Message("", message.role, text, calls)
        in_place = [answers[call.id] for call in calls]
        yield from (Message("", "tool", text_of_result, answers=result.answers) for result, text_of_result in in_place)
        results = [pair for pair in results if not any(pair[0] is result for result, _ in in_place)]
    for result, text_of_result in results:
        yield Message("", "user", f"[result of the tool {result.name or 'unknown'}]\n{text_of_result}")


def as_text(context: Sequence[Message], instruction: str) -> str:
    """Return the context as one text, a message after the other, and the instruction after it."""
    parts = []
    for message, text in zip(context, _texts(context), strict=True):
        calls = [f"[calls {call.name}({call.arguments})]" for call in message.calls]
        who = f"tool {message.name}".strip() if message.role == "tool" else message.role
        parts.append(f"{who}: " + "\n".join(filter(None, [text, *calls])))
    return "\n\n".join([*parts, instruction])


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


def _readable(call: ToolCall) -> ToolCall:
    """Return the call with arguments that are a JSON object, which some providers insist on."""
    try:
        if isinstance(msgspec.json.decode(call.arguments), dict):
            return call
    except msgspec.DecodeError:
        pass
    return replace(call, arguments=msgspec.json.encode({"arguments": call.arguments}).decode())


_TEXTS = word_lists(__package__, "prompts")
NOT_AVAILABLE: str = _TEXTS["not_available"]
"""What a model is told that calls a tool of the recorded agent."""

PROMPT = f"answer@{sha256(''.join(_TEXTS.values()).encode()).hexdigest()[:12]}"
"""Which prompt it is: recorded answers to another are told from it."""

_UNKNOWN = re.compile(r"\W*(?:answer\W+)?(?:unknown|未知)\W*", re.IGNORECASE)


def instruction(question: str) -> str:
    """Return the last user message, in the language of the question."""
    text: str = _TEXTS[f"question_{language_of(question)}"]
    return text.replace("{question}", question)


def cleaned(text: str) -> str:
    """Return an answer without white space around it; UNKNOWN however it is written."""
    return UNKNOWN if _UNKNOWN.fullmatch(text) else text.strip()
