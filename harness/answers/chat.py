"""Answer models, with the tool loop, and what it will cost to ask them.

A model that calls a tool of the strategy (`load_tool_history` of `archive`) is given its result, up to `rounds` times.
The recorded agent's own tools cannot be run again: a model that calls one is told so, and has to answer then. Every
round is charged to the answer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ctxbench.metrics.grading import Grader
from ctxbench.metrics.models import context_window
from ctxbench.metrics.prices import BUNDLED, TokenUsage
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.errors import Stopped
from ctxbench.scenarios.model import ToolCall
from ctxbench.strategies.base import ModelError

from ..folder.run import Run
from ..graders.llm import LlmGrader
from ..models import Models, Reply, Unusable
from ..models.recorded import ModelRequest, at_once, messages_of
from ..probes.ask import CEILING, FLOOR
from ..replay import failure_reason
from .answer import UNKNOWN, Answer, Answerer, Live, Part, Question, has_gold, item_of
from .forms import CHAT_PROMPT, NOT_AVAILABLE, TEXT_PROMPT, TEXT_TOOL_PROMPT, ChatForm, TextForm
from .store import digest_of, shards

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
        self._models, self._counter, self._access = models, counter, models.settings.access_of(self.name)
        self.rounds, self.longest = self._access.rounds, self._access.answer_tokens
        # A local model has a small window, and its template no tools: it is sent one text.
        self._plain = self.name.startswith("local:")
        prompts = (TEXT_PROMPT, TEXT_TOOL_PROMPT) if self._plain else (CHAT_PROMPT,)
        self.identity = digest_of(self.name, str(self.rounds), str(self.longest), *prompts)
        self._window = context_window(self.name)

    def answers(self, questions: Sequence[Question]) -> list[Answer]:
        """Answer the questions; several at once, where none of them needs the strategy."""
        alone = self._plain or any(question.live for question in questions)
        return at_once(self._answer, questions, 1 if alone else self._access.parallel)

    def _answer(self, question: Question) -> Answer:
        form = TextForm(question) if self._plain else ChatForm(question)
        charged, tools = list[Reply](), _Tools(question)
        try:
            text: str | Missing = cleaned(self._talk(form, charged, tools))
        except Unusable as error:
            charged.append(error.reply)
            text = Missing("unusable", str(error))
        except ModelError as error:
            text = Missing("unusable" if isinstance(error, Unanswerable) else "failed", str(error))
        costs = [reply.cost for reply in charged if reply.cost is not None]
        tokens = (sum(getattr(reply, name) for reply in charged) for name in ("input_tokens", "output_tokens"))
        cost, live = sum(costs) if len(costs) == len(charged) else None, tools.live
        return Answer(text, "", len(charged), *tokens, cost, tuple(tools.called), live.events() if live else ())

    def _talk(self, form: ChatForm | TextForm, charged: list[Reply], tools: _Tools) -> str:
        """Return the model's answer after as many rounds of tools as it takes."""
        request = form.request(self.name, self.longest)
        for rounds_left in range(self.rounds, -1, -1):
            if not rounds_left:
                request = form.last(request)
            reply = self.reply(request)
            charged.append(reply)
            calls = form.calls(request, reply)
            if not calls:
                return reply.text
            if request.silent:
                break
            results = [tools.result(call) for call in calls]
            texts = [NOT_AVAILABLE if result is None else result for result in results]
            # It allows no more calls once a tool was not available.
            request = form.after(request, reply, texts, silent=None in results)
        raise Unanswerable(f"{self.name}: called a tool where it had to answer")

    def reply(self, request: ModelRequest) -> Reply:
        """Return the model's reply. Raises ModelError, also for a request that does not fit or was cut."""
        size = self._counter.tools(request.tools) + sum(map(self._counter.message, messages_of(request.asked)))
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


class _Tools:
    """The strategy's tools for one question. It is started when a model first calls one."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self.live: Live | None = None
        self.called: list[str] = []

    def result(self, call: ToolCall) -> str | None:
        """Return what a tool of the strategy gives; None for any other tool. Raises Unanswerable where it fails."""
        self.called.append(call.name)
        what = "the strategy could not be started again for its tools"
        try:
            if self.live is None and self._question.live is not None:
                self.live = self._question.live()
            tools = {} if self.live is None else self.live.tools
            what = f"the strategy's tool {call.name} failed"
            return tools[call.name](call.arguments) if call.name in tools else None
        except Stopped:
            raise
        except (Exception, SystemExit) as error:
            raise Unanswerable(f"{what}: {failure_reason(error)}") from None


_UNKNOWN = re.compile(r"\W*(?:answer\W+)?(?:unknown|未知)\W*", re.IGNORECASE)


def cleaned(text: str) -> str:
    """Return an answer without white space around it; UNKNOWN however it is written."""
    return UNKNOWN if _UNKNOWN.fullmatch(text) else text.strip()


class CallEstimate(NamedTuple):
    """Calls of one model, each made once and answered at its longest; what is recorded already costs nothing."""

    model: str
    calls: int
    input_tokens: int
    output_tokens: int

    @property
    def dollars(self) -> float | None:
        """Return the price of all that in US dollars; None if the model has no known price."""
        return BUNDLED.cost(self.model, TokenUsage(self.input_tokens, self.output_tokens))


def estimates(run: Run, answerer: Answerer, grader: Grader, *, again: bool = False) -> list[CallEstimate]:
    """Return what is still to be asked of the answer model and of the grader's; an empty list if nothing is.

    Rounds of tools that a model calls are not in it, nor is a grader that does not say what it asks (`ragas`). A grade
    is taken to be of the accepted answer: what an answer adds to a request is little.
    """
    counter, strategies = TokenCounter(), len({*run.manifest.plan.strategies, FLOOR, CEILING})
    answers, grades = Counter[str](), Counter[str]()
    for shard in shards(run.folder):  # one at a time: its answers and grades are read, and gone with it
        part = Part(run, shard, answerer, grader, again)
        if isinstance(answerer, ByModel):
            probes = Run(run.folder, shards=(int(shard),)).table("probes")
            keys = zip(probes.conversation.astype(str), probes.strategy.astype(str), probes.number, strict=True)
            sent = probes.tokens_sent[[key not in part.known_answers for key in keys]].dropna()
            answers.update(calls=len(sent), tokens=int(sent.sum()), longest=len(sent) * answerer.longest)
        if not isinstance(grader, LlmGrader):
            continue
        known = Counter((conversation, number) for conversation, _, number in part.known_grades)
        for conversation in part.conversations():
            messages = {message.id: message for message in conversation.messages}
            for number, probe in enumerate(conversation.probes):
                times = strategies - known[conversation.id, number]
                if times and has_gold(probe):
                    item = item_of(probe, messages, next(iter(probe.answers), ""), probe.id)
                    for request in grader.requests(item):
                        tokens = sum(counter.message(message) for message in messages_of(request.asked))
                        grades.update(calls=times, tokens=times * tokens, longest=times * request.max_tokens)
    asked = [(answerer.name, answers)]
    if isinstance(grader, LlmGrader):
        asked.append((grader.how.model, grades))
    return [CallEstimate(name, of["calls"], of["tokens"], of["longest"]) for name, of in asked if of["calls"]]
