"""A chat model behind a cassette and a purse: an earlier request is replayed, a new one is called and recorded.

An answer that holds no text is an answer: it was paid for, it is recorded, and it is charged. It raises Unusable. So
does, for a strategy, one that was cut or is a refusal: it would stand for messages that are then lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from ctxbench.metrics.prices import BUNDLED, TokenUsage
from ctxbench.metrics.tokens import PRIMING, TokenCounter
from ctxbench.scenarios.chat import chat_message, chat_tool
from ctxbench.scenarios.errors import SetupError
from ctxbench.scenarios.model import Message, Tool, ToolCall
from ctxbench.strategies.base import ModelError
from ctxbench.strategies.events import Called

from .cassette import Cassette, CassetteEntry, Charge, Purse, canonical, key_of

T = TypeVar("T")
R = TypeVar("R")


class Reply(NamedTuple):
    """A model's reply, and its usage."""

    text: str
    model: str
    input_tokens: int
    output_tokens: int
    cost: float | None  # US dollars; None = the price is not known
    calls: tuple[ToolCall, ...] = ()  # the tools that it calls instead of an answer, or beside one


class Embedded(NamedTuple):
    """Unit vectors, shape (texts, dimensions), and the provider's bill for them, if there is one."""

    vectors: NDArray[np.float32]
    called: Called | None = None


class Unusable(ModelError):
    """A model replied, and is charged for, but its reply cannot be used: empty, cut, or a refusal."""

    def __init__(self, why: str, reply: Reply) -> None:
        super().__init__(why)
        self.reply = reply


class ModelRequest(msgspec.Struct, frozen=True):
    """A request to a chat model. Two requests with the same fields are the same request."""

    model: str
    asked: Asked  # a text is the one user message
    temperature: float
    max_tokens: int
    tools: tuple[Tool, ...] = ()
    silent: bool = False  # it is sent the tools, as what was said before needs them, and may call none
    schema: Mapping[str, Any] | None = None
    """A JSON schema that the answer has to keep to, where the provider can see to that."""
    vote: int = 0  # number of the answer, of several to the same request
    prompt: str = ""  # name of the prompt, NAME@DIGEST: tells a recorded answer to a prompt that has changed

    def canonical(self) -> str:
        """Return the request as the cassette writes it."""
        request: dict[str, Any] = {
            "kind": "chat",  # no address of a server: a run that was recorded against one replays without it
            "model": self.model,
            "messages": said(self.asked),
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
        }
        names = ("schema", "vote", "prompt")
        return canonical(request | self.choices() | {name: value for name in names if (value := getattr(self, name))})

    def form(self) -> dict[str, Any]:
        """Return the form of the answer as a provider gets it, where there is one."""
        if self.schema is None:
            return {}
        schema = {"name": "answer", "strict": True, "schema": dict(self.schema)}
        return {"response_format": {"type": "json_schema", "json_schema": schema}}

    def choices(self) -> dict[str, Any]:
        """Return the tools, and whether they may be called, where there are any."""
        if not self.tools:
            return {}
        return {"tools": offered(self.tools), **({"tool_choice": "none"} if self.silent else {})}


class ModelAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """A chat model's answer as it is recorded."""

    text: str
    usage: TokenUsage | None = None  # None = it reported none
    finish: str = ""  # why it ended: "stop", "length" …
    refusal: str = ""
    calls: tuple[ToolCall, ...] = ()


class Choice(msgspec.Struct, frozen=True):
    """A question to a model: after `prefix` and `text`, how likely is each of `tokens`?"""

    model: str
    prefix: str
    """The part that many choices share. It is read once, and used again: the same bits every time."""
    text: str
    tokens: tuple[str, ...]
    prompt: str = ""  # name of the prompt, NAME@DIGEST: tells a recorded answer to a prompt that has changed

    def canonical(self) -> str:
        """Return the request as the cassette writes it."""
        request = {"kind": "choice", **msgspec.structs.asdict(self)}
        return canonical({name: value for name, value in request.items() if name != "prompt" or value})


class Likely(msgspec.Struct, frozen=True):
    """How likely a model takes the tokens of a choice to be."""

    logprobs: dict[str, float]  # log-probabilities of the tokens that are among the likeliest
    floor: float  # the others are less likely than this
    input_tokens: int = 0

    def of(self, token: str) -> float:
        """Return the log probability of a token, or the most that it can be."""
        return self.logprobs.get(token, self.floor)


class Recorded:
    """A model of the run: what the cassette has is replayed, the rest is called for and recorded."""

    def __init__(self, name: str, model: Any, cassette: Cassette, purse: Purse | None) -> None:
        """`model` is a Provider, or a Local model, which can `choose` too; None to replay alone."""
        self.name, self._model, self._cassette, self._purse = name, model, cassette, purse
        self._full = ""

    def chat(self, request: ModelRequest, counter: TokenCounter, whole: bool = False) -> Reply:
        """Return the reply at today's prices; with `whole`, none that was cut or refuses. Raises ModelError."""

        def call(keep: Keep) -> bytes:
            # The worst case is set aside first: otherwise each worker could go over the limit by a call.
            most = TokenUsage(_prompt_tokens(request, counter), request.max_tokens)
            assert self._purse is not None
            with Charge(self._purse, self.name, most) as charge:
                answer: ModelAnswer = self._model.chat(request, charge)
                try:  # stored before anything else is done with it
                    return keep(answer)
                finally:
                    # In `finally`: the answer has come and is charged, also where it cannot be stored.
                    charge.pay(_usage(request, answer, counter))

        answer = msgspec.json.decode(self._recorded("chat", request, call), type=ModelAnswer)
        usage = _usage(request, answer, counter)
        reply = Reply(answer.text, self.name, usage.input, usage.output, BUNDLED.cost(self.name, usage), answer.calls)
        is_empty = not answer.text.strip() and not answer.calls
        if not is_empty and not whole:
            return reply
        why = _WHY_EMPTY.get(answer.finish, "answered with an empty text") if is_empty else ""
        why = (why or _WHY_BROKEN.get(answer.finish.lower(), "")).format(most=request.max_tokens)
        worded = len(answer.text) < _LONGEST_REFUSAL and _REFUSAL.match(answer.text)
        if refusal := answer.refusal or (answer.text if worded else ""):
            why = f"refused: {' '.join(refusal.split())[:200]}"
        if why:
            raise Unusable(f"{self.name}: {why}", reply)
        return reply

    def choose(self, choice: Choice) -> Likely:
        """Return how likely each token is. Raises ModelError."""

        def call(keep: Keep) -> bytes:
            if not hasattr(self._model, "choose"):
                raise ModelError(f"{self.name}: only a local model says how likely a token is")
            return keep(self._model.choose(choice))

        return msgspec.json.decode(self._recorded("choice", choice, call), type=Likely)

    def _recorded(
        self, kind: Literal["chat", "choice"], request: ModelRequest | Choice, call: Callable[[Keep], bytes]
    ) -> bytes:
        """Return the recorded reply; else that of `call`, which is given how to record one."""
        text = request.canonical()
        key = key_of(text)
        if (recorded := self._cassette.get(key)) is not None:
            return recorded
        if self._model is None:
            what = f"{self._cassette.path.name} has no reply to this request: record it once without --replay"
            raise ModelError(f"{self.name}: {what}")
        if self._full:
            raise ModelError(self._full)

        def keep(reply: ModelAnswer | Likely) -> bytes:
            return self._cassette.put(CassetteEntry(key, kind, self.name, msgspec.json.encode(reply), text))

        try:
            return call(keep)
        except SetupError as error:  # what cannot be stored is not paid for a second time
            self._full = str(error)
            raise ModelError(self._full) from None


Keep = Callable[[ModelAnswer | Likely], bytes]
"""Records a reply, and returns the one that is recorded: another process may have been first."""


def _prompt_tokens(request: ModelRequest, counter: TokenCounter) -> int:
    return PRIMING + counter.tools(request.tools) + sum(map(counter.message, messages_of(request.asked)))


def _usage(request: ModelRequest, answer: ModelAnswer, counter: TokenCounter) -> TokenUsage:
    """Return the usage that the provider reported; where it did not, by our count."""
    output = counter.text(answer.text) + sum(counter.text(call.name + call.arguments) for call in answer.calls)
    return answer.usage or TokenUsage(_prompt_tokens(request, counter), output)


_WHY_EMPTY = {
    "length": "answered nothing within {most} tokens (a model that thinks first needs more)",
    "context_length": "was not asked: the prompt does not fit its context window",
    "content_filter": "its provider's content filter held the answer back",
}
"""Why an answer is empty, by its `finish`."""
_WHY_BROKEN = {
    **dict.fromkeys(("length", "max_tokens"), "its answer was cut at {most} tokens"),
    "content_filter": "its provider's content filter cut its answer",
    "refusal": "refused",
}
"""Why an answer with a text is not whole, by its `finish`."""
_LONGEST_REFUSAL = 500  # characters
_REFUSAL = re.compile(
    r"\W*(?:i(?:['’]?m| am) (?:very |so |really )?)?(?:sorry|afraid|i apologi[sz]e|unfortunately)\b[^.]{0,60}"
    r"\b(?:i|i['’]?m|i am|we)\b[^.]{0,12}\b(?:can(?:['’]t|not| not)|unable|won['’]t|not able)\b"
    r"|\W*i(?:['’]m| am)? (?:can(?:['’]t|not| not)|won['’]t|unable to|not able to) "
    r"(?:help|assist|summari[sz]e|comply|provide|process|continue|fulfil|do (?:that|this))"
    r"|\W*(?:[很非]常?)?(?:抱歉|对不起)[^。]{0,20}(?:无法|不能|没办法)|\W*(?:我(?:无法|不能)(?:协助|提供|帮助|总结|处理|完成|满足)"
    r"|(?:无法|不能)(?:协助|总结|满足))",
    re.IGNORECASE,
)
"""How a refusal begins that a provider does not mark as one, in English and Chinese."""


Asked = str | tuple[Message, ...]  # one user message, or a chat


def messages_of(request: Asked) -> tuple[Message, ...]:
    """Return the messages of a request."""
    return (Message("", "user", request),) if isinstance(request, str) else request


def said(request: Asked) -> list[dict[str, Any]]:
    """Return the messages as a provider gets them."""
    chats = map(chat_message, messages_of(request))
    return [chat | {"content": None} if "tool_calls" in chat and not chat["content"] else chat for chat in chats]


def offered(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Return the tools as a provider gets them. One whose schema cannot be read takes any object."""
    chats = list(map(chat_tool, tools))
    for chat in chats:
        if chat["function"]["parameters"].get("type") != "object":
            chat["function"]["parameters"] = {"type": "object", "properties": {}}
    return chats


def at_once(call: Callable[[T], R], items: Sequence[T], workers: int) -> list[R]:
    """Return the result of a call for each item, in order. The first is made alone: it opens what all share."""
    first = [call(item) for item in items[:1]]
    pool = ThreadPoolExecutor(workers)
    try:
        return [*first, *pool.map(call, items[1:])]
    finally:
        pool.shutdown(cancel_futures=True)  # when the user stops it: no more calls
