"""Functions of message dicts as strategies: plain ones see the whole history, live ones the messages that are new.

Message dicts are OpenAI's (`role`, `content`, `tool_calls`, `tool_call_id`, `name`), with the message's `id` in the
recording. What a function returns is recognised: a message that comes back under its id, or with its content, is the
recorded one. Anything else was written by the function.

    @live
    def newest(services: ChatServices, n: int = 10):
        '''Send the newest messages.'''
        said = []

        def step(new):
            said.extend(new)
            return said[-n:]

        return step
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import field, fields, make_dataclass
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar, get_type_hints, overload

import msgspec

from ctxbench.scenarios.chat import ROLES, chat_message
from ctxbench.scenarios.errors import SpecError
from ctxbench.scenarios.model import Message, ToolCall
from ctxbench.scenarios.view import Messages, joined, shared_prefix

from .base import Context, Strategy, StrategyContext, StrategyTypeError, View
from .services import ChatServices

ChatDict = dict[str, Any]  # a message in OpenAI's chat form, with its id in the recording

Step = Callable[[list[ChatDict]], Any]
"""Takes the messages that are new since its last call, and returns those to send: a list of dicts, or an awaitable."""


class StepError(StrategyTypeError):
    """A function returned something other than a list of messages, or was shown a history that it cannot follow."""


def strategy_of(function: Callable[..., Any], name: str) -> type[Any]:
    """Return a strategy class that calls a plain function. Its parameters are those of the function after the first.

    Raises SpecError for a function that does not take messages and named parameters.
    """
    if inspect.iscoroutinefunction(function):
        raise SpecError(f"{name}: is an async function: give a plain one, or a live one (ctxbench.strategies.live)")

    def start(self: Any, services: StrategyContext) -> View:  # noqa: ARG001
        parameters = {item.name: getattr(self, item.name) for item in fields(self)}

        def view(context: Context) -> Context:
            history = context.messages
            answer = function(_dicts(history), **parameters)
            return context.sending(_matched(answer, history, name))

        return view

    # A function without a closure has no state, so a copy of the conversation cannot disturb the original.
    stateless = inspect.isfunction(function) and function.__closure__ is None
    doc = inspect.getdoc(function) or "A plain function."
    return _strategy_class(function, name, "a list of messages", start, {"copyable": stateless, "__doc__": doc})


P = ParamSpec("P")
Opener = Callable[Concatenate[ChatServices, P], Any]
"""Opens the step of a conversation: takes services, then the strategy's parameters, and returns a `Step`."""


@overload
def live(open_step: Opener[P], /) -> Callable[P, Strategy]: ...
@overload
def live(**variables: Any) -> Callable[[Opener[P]], Callable[P, Strategy]]: ...
def live(open_step: Callable[..., Any] | None = None, /, **variables: Any) -> Any:
    """Return a strategy class of a function that opens a step, or of a class whose objects are steps.

    For each conversation `open_step` is called with `ChatServices` and the strategy's parameters, which are its own
    after the first. The step that it returns keeps what it likes. Before each model call the step is called with the
    dicts of the messages that are new, and returns the dicts to send. Either may be a coroutine function. `variables`
    are class variables of the strategy, such as `source` and `fails`: `@live(fails="…")`. Raises SpecError if it takes
    no services.
    """
    if open_step is None:
        return partial(live, **variables)
    name = open_step.__name__

    def start(self: Any, services: StrategyContext) -> View:
        step: Step = finished(
            open_step(ChatServices(services), **{f.name: getattr(self, f.name) for f in fields(self)})
        )
        if not callable(step):
            raise StepError(f"{name} returned {type(step).__name__}, not a step: a function of the new messages")
        read = sent = Messages()

        def view(context: Context) -> Context:
            nonlocal read, sent
            history = context.messages
            known = shared_prefix(read, history)
            if known < len(read):
                raise StepError(f"{name} has read messages that were changed since: it must be the first of its chain")
            # The same history again (asked twice at one place) has the same answer: a live function is shown what is
            # new, and there is nothing new.
            if known < len(history):
                sent = _matched(finished(step(_dicts(history[known:]))), history, name)
                read = history
            return context.sending(sent)

        return view

    namespace = {"__doc__": inspect.getdoc(open_step) or "A live function.", **variables}
    return _strategy_class(open_step, name, "ChatServices", start, namespace)


T = TypeVar("T")


def finished(answer: Awaitable[T] | T) -> T:
    """Return what a function returned, after waiting for it if it is awaitable."""
    if not inspect.isawaitable(answer):
        return answer

    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    async def wait() -> T:
        return await answer

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(wait())
    # A notebook has a loop running, in which no other can run.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, wait()).result()


def _dicts(messages: Messages) -> list[ChatDict]:
    return [{"id": message.id, **chat_message(message)} for message in messages]


def _strategy_class(
    function: Callable[..., Any], name: str, first: str, start: Callable[..., View], namespace: Mapping[str, Any]
) -> type[Any]:
    """Return a frozen dataclass with the function's named parameters after the first.

    Raises SpecError if the function has no place for the first one.
    """
    try:
        takes = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        takes = []
    if not takes or takes[0].kind not in (takes[0].POSITIONAL_ONLY, takes[0].POSITIONAL_OR_KEYWORD):
        raise SpecError(f"{name}: a function takes {first} first")
    try:
        takes_hints = function.__init__ if isinstance(function, type) else function  # type: ignore[misc]
        hints = get_type_hints(takes_hints, include_extras=True)
    except Exception:  # names that only a type checker knows
        hints = {}
    named = [item for item in takes[1:] if item.kind in (item.POSITIONAL_OR_KEYWORD, item.KEYWORD_ONLY)]
    parameters: list[tuple[str, Any, Any]] = []
    for item in named:
        hint, default = hints.get(item.name, Any), item.default
        try:
            msgspec.inspect.type_info(hint)
        except TypeError:  # values that are written as text cannot be checked against it
            hint = Any
        # A factory, since dataclasses reject a list or a dict as a default.
        own = field() if default is item.empty else field(default_factory=partial(lambda value: value, default))
        parameters.append((item.name, hint, own))
    kind = make_dataclass(
        getattr(function, "__name__", "Plain"),
        parameters,
        namespace={"start": start, "written_as": function, **namespace},
        frozen=True,
        slots=True,
        kw_only=True,
    )
    kind.__module__ = getattr(function, "__module__", __name__)
    return kind


def _matched(answer: Any, history: Messages, name: str) -> Messages:
    """Return the messages of a function's answer, as messages of the history where they match. Raises StepError."""
    if isinstance(answer, (str, Mapping)) or not isinstance(answer, Iterable):
        remedy = ": write @live above a function that opens a step" if callable(answer) else ""
        raise StepError(f"{name} returned {type(answer).__name__}, not a list of messages{remedy}")
    answered = [_message(row, at, name) for at, row in enumerate(answer)]
    by_id = {message.id: at for at, message in enumerate(history)}
    by_content: dict[object, list[int]] = {}
    taken: set[str] = set()
    sent: list[Messages] = []
    # From the newest on: most functions cut the start away, so of equal messages the later ones are meant.
    for message in reversed(answered):
        at = by_id.get(message.id)
        if not message.id:  # it stands for the newest message of this content that is not taken
            for place, known in enumerate(history) if not by_content else ():
                by_content.setdefault((known.text, _shape(known)), []).append(place)
            places = by_content.get((message.text, _shape(message)), [])
            # What is taken stays taken at this step, so each place is dropped once.
            while places and history[places[-1]].id in taken:
                places.pop()
            at = places[-1] if places else None
        elif at is not None and _shape(history[at]) != _shape(message):
            at = None  # with an id it is another message, whatever it says
        if at is None or history[at].id in taken:
            # A new message has a unique id, which is the same for the same content at every step.
            content = msgspec.json.encode(msgspec.structs.replace(message, id=""))
            first = unique = f"{name}:{hashlib.sha256(content).hexdigest()[:12]}"
            number = 1
            while unique in taken or unique in by_id:
                number += 1
                unique = f"{first}~{number}"
            taken.add(unique)
            sent.append(Messages.of((msgspec.structs.replace(message, id=unique),)))
            continue
        taken.add(history[at].id)
        if message.text == history[at].text:
            sent.append(history[at : at + 1])
        else:
            sent.append(Messages.of((msgspec.structs.replace(history[at], text=message.text),)))
    return joined(span for messages in reversed(sent) for span in messages.spans)


def _shape(message: Message) -> object:
    """Return what must be equal in a message and its stand-in, whose text may differ. Libraries may drop names."""
    return message.role, message.calls, message.answers


def _message(row: Any, at: int, name: str) -> Message:
    """Return the message of a dict. Raises StepError."""
    where = f"{name}: message {at} of what it returned"
    if not isinstance(row, Mapping):
        raise StepError(f"{where} is {type(row).__name__}, not a dict with role and content")
    role = ROLES.get(str(row.get("role")))
    if role is None:
        raise StepError(f"{where} has role {row.get('role')!r}: give one of {', '.join(ROLES)}")
    answers = row.get("tool_call_id")
    if role == "tool" and not isinstance(answers, str):
        raise StepError(f"{where} is a tool's and has no tool_call_id")
    return Message(
        str(row.get("id") or ""),
        role,
        _text(row.get("content"), where),
        tuple(_call(call, where) for call in row.get("tool_calls") or ()),
        answers if role == "tool" else None,
        str(row.get("name") or ""),
    )


def _text(content: Any, where: str) -> str:
    """Return a text, or the joined texts of content blocks. Raises StepError."""
    if content is None or isinstance(content, str):
        return content or ""
    blocks: list[Any] = list(content) if isinstance(content, Sequence) else [None]
    if not all(isinstance(block, Mapping) and isinstance(block.get("text"), str) for block in blocks):
        raise StepError(f"{where} has a content that is neither text nor blocks of text")
    return "\n".join(block["text"] for block in blocks)


def _call(row: Any, where: str) -> ToolCall:
    try:
        function = row["function"]
        arguments = function["arguments"]
        text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
        return ToolCall(str(row["id"]), str(function["name"]), text)
    except (KeyError, TypeError):
        raise StepError(f"{where} has a tool call without id, function.name or function.arguments") from None
