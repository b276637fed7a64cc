"""Context strategies of other libraries as strategies of ours, and their messages as OpenAI's dicts and back.

A file per library: two functions that convert messages, and the adapters. A library is imported when a conversation is
opened or converted, so that listing and parsing import none. Every adapter names the extra that brings its library.
Tokens are counted by the run's encoding, and the run's summariser writes the summaries.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any, cast

import msgspec

from ctxbench.scenarios.chat import arguments_object
from ctxbench.scenarios.errors import MissingExtra

from ..base import data
from ..functions import ChatDict, Step, finished, live
from ..services import ChatServices, content_text
from . import process


def adapter(by: Callable[..., Step] | None = None, **row: str) -> Callable[[Callable[..., Any]], type[Any]]:
    """Return a decorator like `live` for a strategy of a library, which the extra named after the module brings.

    Its row is in `data/adapters.toml`, or given. With `by` the function has the parameters alone, and may return
    others: `by(services, kind, **all)` opens a step, where `kind` is that of the row.

    The library is called here, or in another Python if the run names one for it (`process`). A strategy raises
    MissingExtra when it is made without its library. `chain.packages` has the library's version.
    """

    def strategy(open_step: Callable[..., Any]) -> type[Any]:
        rows, module = data("adapters"), open_step.__module__.rpartition(".")[2]
        about, extra = row or rows[module][open_step.__name__], _extra(module)
        library: str = about.get("library") or next(iter(rows[module]["imports"].values()))

        def check_installed(self: Any) -> None:
            try:
                process.version_of(library)
            except PackageNotFoundError:
                raise MissingExtra(library, extra, process.remedy(library)) from None

        @wraps(open_step)
        def opened(services: ChatServices, **parameters: Any) -> Step | Any:
            try:
                step = open_step(services, **parameters)
                return step if by is None else by(services, about["kind"], **parameters, **(step or {}))
            except AttributeError as error:
                module = error.obj.__name__ if isinstance(error.obj, ModuleType) else ""
                package = module.partition(".")[0].replace("_", "")
                if not package or not library.replace("-", "").startswith(package):
                    raise
                problem = f"is too old: it has no {module}.{error.name}"
                raise MissingExtra(f"{library} {process.version_of(library)}", extra, problem=problem) from None

        @wraps(open_step)
        def open_in_place(services: ChatServices, **parameters: Any) -> Step | Any:
            path = process.place_of(library)
            if path is None:
                return opened(services, **parameters)
            return process.open_step(path, f"{open_step.__module__}:{open_step.__name__}", services, parameters)

        variables = {"library": library, "extra": extra, "source": library, "family": about["family"]}
        variables["fails"] = about.get("fails") or rows["fails"][about["family"]]
        methods: dict[str, Any] = {"open_step": staticmethod(opened), "__post_init__": check_installed}
        return cast("type[Any]", live(**methods, **variables)(open_in_place))

    return strategy


def _extra(module: str) -> str:
    return f"adapter-{module.replace('_', '-')}"


def imported(module: str) -> Any:
    """Return a module of a library. Raises MissingExtra if the library is not installed, or too old to have it.

    What the library logs is not printed, unless the program has set up logging.
    """
    name = module.partition(".")[0]
    log = logging.getLogger(name)
    if not log.handlers:
        log.addHandler(logging.NullHandler())
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        known = ((of, about.get("imports", {})) for of, about in data("adapters").items())
        library, extra = next((imports[name], _extra(of)) for of, imports in known if name in imports)
        try:
            found = f"{library} {version(library)}"
        except PackageNotFoundError:
            raise MissingExtra(library, extra) from None
        is_own = (error.name or "").partition(".")[0] == name
        problem = f"is too old: it has no {error.name}" if is_own else f"lacks {error.name}"
        raise MissingExtra(found, extra, problem=problem) from None


def arguments_of(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a dict's tool call as an object; text that is none is wrapped in `INVALID_JSON`."""
    decoded: dict[str, Any] = msgspec.json.decode(arguments_object(call["function"]["arguments"]))
    return decoded


def results_together(messages: Iterable[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return message dicts in groups: tool results that follow one another together, every other message alone."""
    groups: list[list[dict[str, Any]]] = []
    for message in messages:
        if message["role"] == "tool" and groups and groups[-1][0]["role"] == "tool":
            groups[-1].append(message)
        else:
            groups.append([message])
    return groups


def of_all(send: Callable[[list[Any]], Any], convert: Callable[[list[ChatDict]], list[Any]] = list) -> Step:
    """Return a step that adds what is new to a list, converted, and sends what `send` makes of the whole list."""
    said = list[Any]()

    def step(new: list[ChatDict]) -> Any:
        said.extend(convert(new))
        return send(said)

    return step


def system_apart(step: Step) -> Step:
    """Return a step that is given no system messages: they stand before what it sends, as the library's agents have
    them."""
    system = list[ChatDict]()

    def whole(new: list[ChatDict]) -> list[ChatDict]:
        system.extend(message for message in new if message["role"] == "system")
        return [*system, *finished(step([message for message in new if message["role"] != "system"]))]

    return whole


def origin(message: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Return those of the fields that a message dict has, for a library's message that has no field for them."""
    return {key: message[key] for key in keys if key in message}


def chat_call(name: str, call_id: str, arguments: Any, recorded: Iterable[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """Return a tool call in OpenAI's form, as it was recorded if one of the recorded calls is the same.

    Libraries hold arguments as objects, which does not say how they were written.
    """
    for call in recorded:
        same = (call["id"], call["function"]["name"]) == (call_id, name)
        if same and arguments in (call["function"]["arguments"], arguments_of(call)):
            return dict(call)
    text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def chat_dict(role: str, content: Any, **others: Any) -> dict[str, Any]:
    """Return a message in OpenAI's form. Other keys that have no value are left out."""
    return {"role": role, "content": content_text(content), **{key: value for key, value in others.items() if value}}


def chat_tokens(services: ChatServices, messages: Iterable[Mapping[str, Any]]) -> int:
    """Return the tokens of message dicts: texts, names and arguments of calls, 4 a message."""
    total = 0
    for message in messages:
        calls = [call["function"] for call in message.get("tool_calls", ())]
        texts = [message["content"], *(text for call in calls for text in (call["name"], call["arguments"]))]
        total += 4 + sum(map(services.count_tokens, texts))
    return total
