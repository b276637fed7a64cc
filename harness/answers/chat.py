"""Answer models, with the tool loop, and what it will cost to ask them.

A model that calls a tool of the strategy (`load_tool_history` of `archive`) is given its result, up to `rounds` times.
The recorded agent's own tools cannot be run again: a model that calls one is told so, and has to answer then. Every
round is charged to the answer.

A chat has instruction and question as its last message. A model without tools is sent one text, which has the
instruction, then the conversation, and the question at the end: all questions on one context share their beginning,
which a local model then reads once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from ctxbench.metrics.grading import Grader
from ctxbench.metrics.language import language_of, word_lists
from ctxbench.metrics.models import context_window
from ctxbench.metrics.prices import BUNDLED, TokenUsage
from ctxbench.metrics.times import day_of, written
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.errors import Stopped
from ctxbench.scenarios.model import Message, Tool, ToolCall
from ctxbench.strategies.base import ModelError

from ..folder.run import Run
from ..graders.llm import LlmGrader
from ..models import Models, Reply, Unusable
from ..models.recorded import ModelRequest, at_once, messages_of, offered
from ..probes import CEILING, FLOOR
from ..replay import failure_reason
from .answer import UNKNOWN, Answer, Answerer, Live, Part, Question, RunProbes, has_gold, item_of
from .store import digest_of, shards

_TEXTS = word_lists(__package__, "prompts")
NOT_AVAILABLE: str = _TEXTS["not_available"]
"""Tells a model that called a tool of the recorded agent that it cannot be run."""


def _prompt(name: str, keys: Sequence[str]) -> str:
    return f"{name}@{sha256(''.join(_TEXTS[key] for key in keys).encode()).hexdigest()[:12]}"


CHAT_PROMPT = _prompt("answer", [key for key in _TEXTS if not key.startswith("text_")])
"""Names the prompt by its digest: recorded answers to another prompt are told from these."""
_TEXT = ("text_instruction_en", "text_instruction_zh", "text_question_en", "text_question_zh")
_TOOL = ("text_tool_question_en", "text_tool_question_zh", "not_available")
TEXT_PROMPT = _prompt("answer_text", _TEXT)  # the same for a model that is asked with one text
TEXT_TOOL_PROMPT = _prompt("answer_text_tool", _TEXT + _TOOL)  # the same where it is offered a strategy's tool
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
        return ModelRequest(model, self.text(silent=False), 0.0, reply, prompt=prompt)

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
        return replace(request, asked=self.text(silent=silent), silent=silent)

    def last(self, request: ModelRequest) -> ModelRequest:
        """Return the request without the offer of a tool."""
        # Where none was called, it is the request of a strategy without tools, whatever this one has.
        prompt = request.prompt if self._called else TEXT_PROMPT
        return replace(request, asked=self.text(silent=True), silent=True, prompt=prompt)

    def text(self, *, silent: bool) -> str:
        """Return the text that asks; `silent` offers no tool."""
        language = language_of(self._question.text)
        offers = self._tools and not silent
        question: str = _TEXTS[f"text_tool_question_{language}" if offers else f"text_question_{language}"]
        parameters = {name: _first_parameter(tool) for name, tool in self._tools.items()}
        calls = ", ".join(f'{name}({parameter}="...")' for name, parameter in parameters.items())
        question = question.replace("{call}", calls).replace("{parameter}", ", ".join(parameters.values()))
        asked = question.replace("{question}", self._question.text)
        start = _TEXTS[f"text_instruction_{language}"]
        return "\n\n".join([start, as_text(self._question.context), *self._loaded, asked])


_CALL = re.compile(
    r"(?<!\w)(?P<name>\w++)\(\s*+(?:(?P<key>\w++)\s*+[=:]\s*+)?[\"'“]?(?P<value>[^\"'”()]*+)[\"'”]?\s*+\)"
)


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
    with suppress(msgspec.DecodeError, ValueError, RecursionError):
        if isinstance(msgspec.json.decode(call.arguments), dict):
            return call
    return replace(call, arguments=msgspec.json.encode({"arguments": call.arguments}).decode())


READ = 0.4
"""Share of the tokens that we count of a prompt which a provider has to report: with less it was cut on the way."""
CUT = 1000
"""Tokens from which on that is looked at: of a short prompt, what a provider adds or counts otherwise is too much."""


class Unanswerable(ModelError):
    """A question that no retry can answer, since the request itself cannot be made."""


class ByModel:
    """An answer model of the run, called through the cassette, with retries, time-outs and the spend limit."""

    calls_tools = True

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
        """Answer the questions, several at once where no question needs the strategy."""
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
        return Answer(
            text,
            rounds=len(charged),
            input_tokens=sum(reply.input_tokens for reply in charged),
            output_tokens=sum(reply.output_tokens for reply in charged),
            cost=sum(costs) if len(costs) == len(charged) else None,
            called=tuple(tools.called),
            events=tools.live.events() if tools.live is not None else (),
        )

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
        """Return the result of a strategy's tool; None for any other tool. Raises Unanswerable where the tool fails."""
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
    """Return an answer without white space around it, and UNKNOWN in its usual spelling."""
    return UNKNOWN if _UNKNOWN.fullmatch(text) else text.strip()


class CallEstimate(NamedTuple):
    """Most that calls of one model can cost: each made once, with the longest answer; recorded ones cost nothing."""

    model: str
    calls: int
    input_tokens: int
    output_tokens: int

    @property
    def dollars(self) -> float | None:
        """Return the price of these calls in US dollars; None if the model has no known price."""
        return BUNDLED.cost(self.model, TokenUsage(self.input_tokens, self.output_tokens))


def estimates(
    run: Run, answerer: Answerer, grader: Grader, probes: RunProbes, *, again: bool = False
) -> list[CallEstimate]:
    """Return estimates of the calls still to make, of the answer model and the grader's model; empty if none are.

    Rounds of tools that a model calls are not in it. A grade is taken to be of the accepted answer: what an answer adds
    to a request is little.
    """
    counter, strategies = TokenCounter(), len({*run.manifest.plan.strategies, FLOOR, CEILING})
    answers, grades = Counter[str](), Counter[str]()
    for shard in shards(run.folder):  # one at a time: its answers and grades are read, and gone with it
        part = Part(run, shard, answerer, grader, again, probes.size)
        if isinstance(answerer, ByModel):
            rows = Run(run.folder, shards=(int(shard),)).table("probes")
            keys = zip(rows.conversation.astype(str), rows.strategy.astype(str), rows.number, strict=True)
            asked = [key not in part.known_answers and probes.asks(key[0], key[2]) for key in keys]
            sent = rows.tokens_sent[asked].dropna()
            answers.update(calls=len(sent), tokens=int(sent.sum()), longest=len(sent) * answerer.longest)
        if not isinstance(grader, LlmGrader):
            continue
        known = Counter((conversation, number) for conversation, _, number in part.known_grades)
        for conversation in part.conversations:
            messages = {message.id: message for message in conversation.messages}
            for number, probe in enumerate(conversation.probes):
                times = strategies - known[conversation.id, number]
                if times and has_gold(probe) and probes.asks(conversation.id, number):
                    item = item_of(probe, messages, next(iter(probe.answers), ""), probe.id)
                    for request in grader.requests(item):
                        tokens = sum(counter.message(message) for message in messages_of(request.asked))
                        grades.update(calls=times, tokens=times * tokens, longest=times * request.max_tokens)
    models = [(answerer.name, answers)]
    if isinstance(grader, LlmGrader):
        models.append((grader.how.model, grades))
    return [CallEstimate(name, of["calls"], of["tokens"], of["longest"]) for name, of in models if of["calls"]]
