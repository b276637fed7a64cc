"""Answer models, with the tool loop.

A model that calls a tool of the strategy (`load_tool_history` of `archive`) is given its result, `rounds` times at
most. The recorded agent's own tools cannot be run again: a model that calls one is told so, and has to answer then.
Every round is charged to the answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

from ctxbench.metrics.models import window_of
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.errors import SpecError, Stopped
from ctxbench.scenarios.model import ToolCall
from ctxbench.strategies.base import ModelError

from ..models import Models, Reply, Unusable
from ..models.recorded import ModelRequest, messages_of
from ..replay import failure_reason
from .answer import UNKNOWN, Answer, Live, Question, Tools
from .forms import CHAT_PROMPT, NOT_AVAILABLE, TEXT_PROMPT, TEXT_TOOL_PROMPT, ChatForm, Form, TextForm
from .store import digest_of

READ = 0.4
"""Share of the tokens that we count of a prompt which a provider has to report: with less it was cut on the way."""
CUT = 1000
"""Tokens from which on that is looked at: of a short prompt, what a provider adds or counts otherwise is too much."""


class Unanswerable(ModelError):
    """A question has no answer, whatever the model is asked again: what it was told to do cannot be done."""


class ByModel:
    """An answer model of the run, called through the cassette, with retries, time-outs and the spend limit."""

    def __init__(self, models: Models, counter: TokenCounter) -> None:
        self.name = models.settings.answerer
        self._models, self._counter, self._access = models, counter, models.settings.access_of(models.settings.answerer)
        # A local model has a small window, and its template no tools: it is sent one text.
        self._plain = self.name.startswith("local:")
        prompts = (TEXT_PROMPT, TEXT_TOOL_PROMPT) if self._plain else (CHAT_PROMPT,)
        self.identity = digest_of(self.name, str(self._access.rounds), str(self._access.answer_tokens), *prompts)

    def answers(self, questions: Sequence[Question]) -> list[Answer]:
        """Answer the questions; several at once, where none of them needs the strategy."""
        at_once = 1 if self._plain or any(question.live for question in questions) else self._access.parallel
        first = [self._answer(question) for question in questions[:1]]  # alone: it opens what all use
        pool = ThreadPoolExecutor(at_once)
        try:
            return [*first, *pool.map(self._answer, questions[1:])]
        finally:
            pool.shutdown(cancel_futures=True)  # when the user stops it: no more calls

    def _answer(self, question: Question) -> Answer:
        form = TextForm(question) if self._plain else ChatForm(question)
        return _Talk(self, question, form, form.request(self.name, self._access.answer_tokens)).answer()

    def reply(self, request: ModelRequest) -> Reply:
        """Return the model's reply. Raises ModelError, also for a request that does not fit or was cut."""
        size = self._size(request)
        room = self._window
        if room is not None and size + request.max_tokens > room:
            raise Unanswerable(
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
        return self._access.rounds

    @property
    def longest(self) -> int:
        """Tokens that one answer may take."""
        return self._access.answer_tokens

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

    def __init__(self, by: ByModel, question: Question, form: Form, first: ModelRequest) -> None:
        self._by, self._question, self._form, self._first = by, question, form, first
        self._live: Live | None = None
        self._charged: list[Reply] = []
        self._called: list[str] = []

    def answer(self) -> Answer:
        """Return the answer, or a Missing that says why there is none."""
        try:
            text: str | Missing = cleaned(self._talk())
        except Unusable as error:
            self._charged.append(error.reply)
            text = Missing("unusable", str(error))
        except Unanswerable as error:
            text = Missing("unusable", str(error))
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
        request = self._first
        for rounds_left in range(self._by.rounds, -1, -1):
            if not rounds_left:
                request = self._form.last(request)
            reply = self._by.reply(request)
            self._charged.append(reply)
            calls = self._form.calls(request, reply)
            if not calls:
                return reply.text
            if request.silent:
                break
            request = self._with_tool_results(request, reply, calls)
        raise Unanswerable(f"{self._by.name}: called a tool where it had to answer")

    def _with_tool_results(self, request: ModelRequest, reply: Reply, calls: Sequence[ToolCall]) -> ModelRequest:
        """Return the next request, with the tool results. It allows no more calls once a tool was not available."""
        tools = self._tools()
        self._called += [call.name for call in calls]
        results = [self._tool_result(call, tools[call.name]) if call.name in tools else None for call in calls]
        texts = [NOT_AVAILABLE if result is None else result for result in results]
        return self._form.after(request, reply, texts, silent=None in results)

    def _tools(self) -> Tools:
        """Return the strategy's tools; the strategy is started when the model first calls one."""
        if self._live is None and self._question.live is not None:
            try:
                self._live = self._question.live()
            except Stopped:
                raise
            except (Exception, SystemExit) as error:
                raise Unanswerable(
                    f"the strategy could not be started again for its tools: {failure_reason(error)}"
                ) from None
        return self._live.tools if self._live is not None else {}

    def _tool_result(self, call: ToolCall, answer: Callable[[str], str]) -> str:
        try:
            return answer(call.arguments)
        except Stopped:
            raise
        except (Exception, SystemExit) as error:
            raise Unanswerable(f"the strategy's tool {call.name} failed: {failure_reason(error)}") from None


_UNKNOWN = re.compile(r"\W*(?:answer\W+)?(?:unknown|未知)\W*", re.IGNORECASE)


def cleaned(text: str) -> str:
    """Return an answer without white space around it; UNKNOWN however it is written."""
    return UNKNOWN if _UNKNOWN.fullmatch(text) else text.strip()
