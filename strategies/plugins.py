"""Strategies from a file: `path/to/file.py:MyStrategy(n=3)`, or a plain function in it (`plain.py`).

The file is run when the strategy is parsed, in every process that needs it. A digest of its content is part of the
strategy's identity, `path/to/file.py:MyStrategy@1f3a5c7e9b2d`: a changed file is another strategy, in the rows of a run
and when a run is gone on with. What the file imports is not; it must be installed, or on PYTHONPATH. Strategies that a
package brings are known by their names alone: a run notes the package, its version and a digest of the module.
"""

from __future__ import annotations

import hashlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, field, fields, is_dataclass, make_dataclass
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

import msgspec

from ..scenarios.errors import SpecError, Stopped
from ..scenarios.model import Message, Role, ToolCall
from ..scenarios.spec import meant
from ..scenarios.view import Messages, Span
from .base import Context, Misfit, StrategyContext, View

_NAMED = re.compile(r"(?P<path>.+\.py):(?P<name>[^\W\d]\w*)(?:@(?P<digest>[0-9a-f]{12}))?", re.DOTALL)
_STRING_OR_STAGE = re.compile(
    r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|(?:\A|\|)\s*(?P<path>[^|()'"]*?\.py(?::[\w@]*)?)(?=[\s(|]|\Z)"""
)

_names: dict[type[Any], str] = {}
"""Under which name each class was loaded."""


def quoted(text: str) -> str:
    """A chain with its files quoted, as `scenarios.spec` reads names that are no identifiers."""

    def quote(found: re.Match[str]) -> str:
        path = found.group("path")
        return found.group() if path is None else found.group().removesuffix(path) + repr(path)

    return _STRING_OR_STAGE.sub(quote, text)


def is_file(name: str) -> bool:
    """Whether a strategy's name is one of a file."""
    return ".py:" in name or name.endswith(".py")


def load(name: str) -> type[Any]:
    """The strategy class of `path.py:NAME`. Raises SpecError: no such file or name, it fails, it has changed."""
    found = _NAMED.fullmatch(name)
    if found is None:
        raise SpecError(f"cannot read the strategy {name!r}: write path/to/file.py:NAME or path/to/file.py:NAME(x=1)")
    path, wanted, digest = found.group("path", "name", "digest")
    try:
        source = Path(path).expanduser().read_bytes()
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror or error}") from None
    now = hashlib.sha256(source).hexdigest()[:12]
    if digest not in (None, now):
        raise SpecError(f"{path}: has changed: it is @{now} now, and was @{digest}: begin a new run")
    return _class(path, wanted, source, now)


def name_of(kind: type[Any]) -> str | None:
    """The name of a class that `load` returned, with the file's digest; quoted where it must be."""
    name = _names.get(kind)
    return None if name is None else name if quoted(name) == repr(name) else repr(name)


def package(point: EntryPoint) -> str:
    """Whose an entry point is: `package 1.2 1f3a5c7e9b2d`, with a digest of its module's file, which may be edited."""
    path = getattr(sys.modules.get(point.module), "__file__", None)
    try:
        digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12] if path else ""
    except OSError:
        digest = ""
    whose = f"{point.dist.name} {point.dist.version}" if point.dist else point.module
    return f"{whose} {digest}".strip()


@cache
def _class(path: str, name: str, source: bytes, digest: str) -> type[Any]:
    module = _module(path, source, digest)
    found = getattr(module, name, None)
    where = f"{path}:{name}"
    if found is None:
        offered = _offered(module)
        raise SpecError(f"{path}: has no {name!r}{meant(name, offered) if offered else '; it defines nothing'}")
    if not isinstance(found, type) and callable(found):
        kind = strategy_of(found, where)
    elif not isinstance(found, type) or not callable(getattr(found, "start", None)):
        raise SpecError(f"{where}: is neither a strategy class (with a method start) nor a function of messages")
    elif not is_dataclass(found) or not found.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise SpecError(f"{where}: is no frozen dataclass: write @dataclass(frozen=True, slots=True) above it")
    else:
        kind = found
    _names.setdefault(kind, f"{where}@{digest}")
    return kind


@cache
def _module(path: str, source: bytes, digest: str) -> ModuleType:
    """The file, run once in this process for what it holds. It is a module, so that dataclasses find their types."""
    module = ModuleType(f"ctxbench_plugin_{hashlib.sha256(path.encode()).hexdigest()[:12]}_{digest}")
    module.__file__ = path
    sys.modules[module.__name__] = module
    try:
        exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)
    except Stopped:
        raise
    except (Exception, SystemExit) as error:
        del sys.modules[module.__name__]
        raise SpecError(f"{path}{_line(error, path)}: fails: {type(error).__name__}: {error}") from None
    return module


def _line(error: BaseException, path: str) -> str:
    """`:12`, the last line of the file that was running, or that cannot be read."""
    if isinstance(error, SyntaxError) and error.filename == path:
        return f":{error.lineno}"
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    return f":{line}" if line else ""


def _offered(module: ModuleType) -> dict[str, object]:
    """The classes and functions that the file itself defines, but for those that are its own affair."""
    return {
        name: each
        for name, each in vars(module).items()
        if (isinstance(each, type) or inspect.isfunction(each)) and each.__module__ == module.__name__
        if not name.startswith("_")
    }


ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}


class PlainError(Misfit):
    """What a plain function gave back is no list of messages."""


def strategy_of(function: Callable[..., Any], name: str) -> type[Any]:
    """A strategy class that calls the function. Its parameters are those of the function after the first.

    Raises SpecError for a function that does not take messages and named parameters.
    """
    if inspect.iscoroutinefunction(function):
        raise SpecError(f"{name}: is an async function: give a plain one")
    try:
        takes = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        takes = []
    if not takes or takes[0].kind not in (takes[0].POSITIONAL_ONLY, takes[0].POSITIONAL_OR_KEYWORD):
        raise SpecError(f"{name}: a function takes a list of messages first, and returns one")
    try:
        hints = get_type_hints(function)
    except Exception:  # names that only a type checker knows
        hints = {}
    alone = inspect.isfunction(function) and function.__closure__ is None  # nothing of it is another for a question
    named = [each for each in takes[1:] if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]

    def start(self: Any, desk: StrategyContext) -> View:  # noqa: ARG001
        given = {each.name: getattr(self, each.name) for each in fields(self)}

        def view(context: Context) -> Context:
            history = context.messages
            found = function([_dict(each) for each in history], **given)
            return context.sending(_recognised(found, history, name))

        return view

    made = make_dataclass(
        getattr(function, "__name__", "Plain"),
        [(each.name, _hint(hints.get(each.name, Any)), _default(each.default)) for each in named],
        namespace={"start": start, "copyable": alone, "__doc__": inspect.getdoc(function) or "A plain function."},
        frozen=True,
        slots=True,
        kw_only=True,
    )
    made.__module__ = getattr(function, "__module__", __name__)
    return made


def _hint(hint: Any) -> Any:
    """The hint, if a value that is written as text can be checked against it."""
    try:
        msgspec.inspect.type_info(hint)
    except TypeError:
        return Any
    return hint


def _default(default: Any) -> Field[Any]:
    made: Field[Any] = field() if default is inspect.Parameter.empty else field(default_factory=lambda: default)
    return made  # a factory, since a list or a dict is refused as a default


def _dict(message: Message) -> dict[str, Any]:
    made: dict[str, Any] = {"id": message.id, "role": message.role, "content": message.text}
    if message.name:
        made["name"] = message.name
    if message.calls:
        made["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.calls
        ]
    if message.answers is not None:
        made["tool_call_id"] = message.answers
    return made


def _recognised(found: Any, history: Messages, name: str) -> Messages:
    """What a function gave back, each message recognised if it can be. From the newest on: most cut the start away."""
    if isinstance(found, (str, Mapping)) or not isinstance(found, Iterable):
        raise PlainError(f"{name} returned {type(found).__name__}, not a list of messages")
    back = [_message(each, at, name) for at, each in enumerate(found)]
    known = _Known(history)
    sent: list[Messages] = []
    for message in reversed(back):
        at = known.place(message)
        if at is None:
            sent.append(Messages.of((known.written(message, name),)))
        elif message.text == history[at].text:
            sent.append(history[at : at + 1])
        else:
            sent.append(Messages.of((msgspec.structs.replace(history[at], text=message.text),)))
    return Messages(_joined(span for each in reversed(sent) for span in each.spans))


class _Known:
    """The messages that a function was given, each to be recognised once."""

    def __init__(self, history: Messages) -> None:
        self._history = history
        self._by_id = {message.id: at for at, message in enumerate(history)}
        self._by_content: dict[object, list[int]] = {}
        self._taken: set[str] = set()

    def place(self, message: Message) -> int | None:
        """The place of the message that this is, or stands for; None if it is none of them."""
        at = self._by_id.get(message.id)
        if at is None or _but_text(self._history[at]) != _but_text(message):
            at = self._same_content(message) if not message.id else None
        if at is None or self._history[at].id in self._taken:
            return None
        self._taken.add(self._history[at].id)
        return at

    def written(self, message: Message, name: str) -> Message:
        """The message under an id that is its own: the same for the same content at every step."""
        content = msgspec.json.encode(msgspec.structs.replace(message, id=""))
        first = made = f"{name}:{hashlib.sha256(content).hexdigest()[:12]}"
        again = 1
        while made in self._taken or made in self._by_id:
            again += 1
            made = f"{first}~{again}"
        self._taken.add(made)
        return msgspec.structs.replace(message, id=made)

    def _same_content(self, message: Message) -> int | None:
        """The newest message with this content that is not taken."""
        if not self._by_content:
            for at, each in enumerate(self._history):
                self._by_content.setdefault((each.text, _but_text(each)), []).append(at)
        places = self._by_content.get((message.text, _but_text(message)), [])
        while places and self._history[places[-1]].id in self._taken:
            places.pop()
        return places[-1] if places else None


def _but_text(message: Message) -> object:
    """What makes a message another one, whatever its text. Libraries are free to drop names."""
    return message.role, message.calls, message.answers


def _joined(spans: Iterable[Span]) -> list[Span]:
    """The spans, those that follow each other in one store as one."""
    made: list[Span] = []
    for span in spans:
        if made and made[-1].store is span.store and made[-1].stop == span.start:
            made[-1] = Span(span.store, made[-1].start, span.stop)
        else:
            made.append(span)
    return made


def _message(found: Any, at: int, name: str) -> Message:
    """One message dict. Raises PlainError."""
    where = f"{name}: message {at} of what it returned"
    if not isinstance(found, Mapping):
        raise PlainError(f"{where} is {type(found).__name__}, not a dict with role and content")
    role = ROLES.get(str(found.get("role")))
    if role is None:
        raise PlainError(f"{where} has role {found.get('role')!r}: give one of {', '.join(ROLES)}")
    answers = found.get("tool_call_id")
    if role == "tool" and not isinstance(answers, str):
        raise PlainError(f"{where} is a tool's and has no tool_call_id")
    return Message(
        str(found.get("id") or ""),
        role,
        _text(found.get("content"), where),
        tuple(_call(each, where) for each in found.get("tool_calls") or ()),
        answers if role == "tool" else None,
        str(found.get("name") or ""),
    )


def _text(content: Any, where: str) -> str:
    """A text, or the texts of content blocks."""
    if content is None or isinstance(content, str):
        return content or ""
    blocks: list[Any] = list(content) if isinstance(content, Sequence) else [None]
    if not all(isinstance(each, Mapping) and isinstance(each.get("text"), str) for each in blocks):
        raise PlainError(f"{where} has a content that is neither text nor blocks of text")
    return "\n".join(each["text"] for each in blocks)


def _call(found: Any, where: str) -> ToolCall:
    try:
        function = found["function"]
        arguments = function["arguments"]
        text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
        return ToolCall(str(found["id"]), str(function["name"]), text)
    except (KeyError, TypeError):
        raise PlainError(f"{where} has a tool call without id, function.name or function.arguments") from None
