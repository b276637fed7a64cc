"""Answerers that are models, with the tool loop.

A model that calls a tool of the strategy (`load_tool_history` of `archive`) is given its result, at most ROUNDS times.
The recorded agent's own tools cannot be run again: a model that calls one is told so, and has to answer then. Every
round is charged to the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

from msgspec.structs import replace

from ...metrics.models import window_of
from ...metrics.tokens import TokenCounter
from ...metrics.value import Missing
from ...scenarios.errors import SpecError, Stopped
from ...scenarios.model import Message, ToolCall
from ...strategies.base import ModelError
from ..models import Models, Reply, Unusable
from ..models.chat import messages_of
from ..models.recorded import Request
from ..why import why
from .answerer import Answer, Live, Question, Tools
from .parts import digest_of
from .rendering import as_chat, as_text
from .wording import NOT_AVAILABLE, PROMPT, cleaned, instruction

ROUNDS = 4
"""Times that a model may call tools before it has to answer."""
REPLY = 256
"""Tokens that an answer may take."""
READ = 0.4
"""Share of the tokens that we count of a prompt which a provider has to report: with less it was cut on the way."""
CUT = 1000
"""Tokens from which on that is looked at: of a short prompt, what a provider adds or counts otherwise is too much."""


class ByModel:
    """A model of the run, by the run's ways: cassette, retries, time-outs, spend limit."""

    def __init__(self, models: Models, counter: TokenCounter, rounds: int = ROUNDS, reply: int = REPLY) -> None:
        self.name = models.settings.answerer
        self._models, self._counter, self._rounds, self._reply = models, counter, rounds, reply
        self._plain = self.name.startswith("local:")
        """It has a small window and no tools: the context is sent as text."""
        self.identity = digest_of(self.name, str(rounds), str(reply), PROMPT)

    def answers(self, questions: Sequence[Question]) -> list[Answer]:
        """An answer each; several at once, where none of them needs the strategy."""
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
        asked = instruction(question.text)
        if self._plain:
            text = as_text(question.context, asked)
            return _Talk(self, question, Request(self.name, text, 0.0, self._reply, prompt=PROMPT)).answer()
        chat = as_chat(question.context, asked)
        return _Talk(self, question, Request(self.name, chat, 0.0, self._reply, question.tools, prompt=PROMPT)).answer()

    def reply(self, request: Request) -> Reply:
        """What the model replies. Raises ModelError, also for what does not fit or was cut."""
        size = self._size(request)
        room = self._window
        if room is not None and size + request.max_tokens > room:
            raise ModelError(
                f"{self.name}: {size:,} tokens and {request.max_tokens} for the answer do not fit its window, {room:,}"
            )
        found = self._models.chat(request, self._counter)
        if size >= CUT and found.input_tokens < READ * size:
            cut = f"{self.name}: its provider read {found.input_tokens:,} of about {size:,} tokens: the context was cut"
            raise Unusable(f"{cut}: give the server a larger window", found)
        return found

    @property
    def rounds(self) -> int:
        """Times that it may call tools."""
        return self._rounds

    def _size(self, request: Request) -> int:
        return self._counter.tools(request.tools) + sum(map(self._counter.message, messages_of(request.asked)))

    @cached_property
    def _window(self) -> int | None:
        try:
            return window_of(self.name)
        except SpecError:  # a model that nobody has told us of
            return None


class _Talk:
    """One question, until the model answers."""

    def __init__(self, by: ByModel, question: Question, request: Request) -> None:
        self._by, self._question, self._request = by, question, request
        self._live: Live | None = None
        self._charged: list[Reply] = []
        self._called: list[str] = []

    def answer(self) -> Answer:
        """The answer, or why there is none."""
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
        for left in range(self._by.rounds, -1, -1):
            if not left and request.tools:
                request = replace(request, silent=True)
            reply = self._by.reply(request)
            self._charged.append(reply)
            if not reply.calls:
                return reply.text
            if request.silent:
                break
            request = self._told(request, reply)
        raise ModelError(f"{self._by.name}: called a tool where it had to answer")

    def _told(self, request: Request, reply: Reply) -> Request:
        """The next request: with what the tools gave, and none to be called any more once one was not available."""
        made = [*messages_of(request.asked), Message("", "assistant", reply.text, reply.calls)]
        tools = self._tools()
        silent = False
        for call in reply.calls:
            self._called.append(call.name)
            answer = tools.get(call.name)
            silent = silent or answer is None
            text = NOT_AVAILABLE if answer is None else self._given(call, answer)
            made.append(Message("", "tool", text, answers=call.id))
        return replace(request, asked=tuple(made), silent=silent)

    def _tools(self) -> Tools:
        """The strategy's own, which is started when the first tool is called."""
        if self._live is None and self._question.live is not None:
            try:
                self._live = self._question.live()
            except Stopped:
                raise
            except (Exception, SystemExit) as error:
                raise ModelError(f"the strategy could not be started again for its tools: {why(error)}") from None
        return self._live.tools if self._live is not None else {}

    def _given(self, call: ToolCall, answer: Callable[[str], str]) -> str:
        try:
            return answer(call.arguments)
        except Stopped:
            raise
        except (Exception, SystemExit) as error:
            raise ModelError(f"the strategy's tool {call.name} failed: {why(error)}") from None
