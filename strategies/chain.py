"""Strategies as text, in chains, and by name: `archive(threshold=10000) | window(max_tokens=8000)`.

A name is that of an entry point of the group `ctxbench.strategies`, of a recipe, of a file, `path/file.py:Name`, or of
what a notebook or a script has defined. A recipe is a chain with a name (`data/recipes.toml`). `@libraries` is a list
of strategies (`data/lists.toml`).
"""

from __future__ import annotations

import re
from collections import UserDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from ctxbench.scenarios import spec as text_of
from ctxbench.scenarios.code import Code
from ctxbench.scenarios.errors import MissingExtra, SpecError, Stopped
from ctxbench.scenarios.spec import suggestion
from ctxbench.scenarios.view import Messages

from . import plugins
from .adapters import process
from .base import (
    Context,
    LongTermMemory,
    Strategy,
    StrategyContext,
    View,
    budget_of,
    data,
    is_copyable,
    require_context,
)
from .functions import strategy_of


class Recipe(NamedTuple):
    """A chain with a name; it may be a single stage."""

    chain: str
    about: str
    fails: str


RECIPES, PRESETS = ({name: Recipe(**row) for name, row in rows.items()} for rows in data("recipes").values())
"""Compositions that `run` compares by default, and the design's own variants, which run when they are named."""

NAMED: dict[str, Recipe] = {**RECIPES, **PRESETS}  # all recipes: on the command line a name stands for its chain


StrategyLike = str | Strategy | Callable[..., Any]
"""A strategy: its text, an object or a class with `start`, or a function of message dicts."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Stages in order: each receives the context that the stage before would send. A chain is itself a strategy.

    The same stage twice may write two messages under one id: the later one is sent as `id#2`. Two class variables of a
    stage limit its place: `only_marks` (must be last) and `once` (one of its kind). Raises SpecError for other places.
    """

    stages: tuple[Strategy, ...]

    def __post_init__(self) -> None:
        for at, stage in enumerate(self.stages):
            rest = self.stages[at:]
            if getattr(stage, "only_marks", False) and not all(getattr(later, "only_marks", False) for later in rest):
                raise SpecError(f"`{spec(stage)}` must be the last of its chain: the stages after it drop its marks")
            if getattr(stage, "once", False) and any(type(earlier) is type(stage) for earlier in self.stages[:at]):
                raise SpecError(f"`{spec(stage)}`: only one of its kind may be in a chain: it offers the model a tool")

    @property
    def budget(self) -> int | None:
        """The last stage's promise. Earlier promises count only if all later stages send the messages they receive."""
        stages = list(self.stages)
        while len(stages) > 1 and getattr(stages[-1], "only_marks", False):
            stages.pop()
        return budget_of(stages[-1])

    @property
    def copyable(self) -> bool:
        return all(is_copyable(stage) for stage in self.stages)

    def start(self, services: StrategyContext) -> View:
        memory = LongTermMemory()
        views = [
            stage.start(services, *([memory] if getattr(stage, "shares_memory", False) else ()))
            for stage in self.stages
        ]
        kinds = [type(stage) for stage in self.stages]
        repeated = [kind in kinds[:at] for at, kind in enumerate(kinds)]

        def view(context: Context) -> Context:
            history = context.messages
            for at, stage_view in enumerate(views):
                context = require_context(stage_view(context), f"stage {at + 1} of the chain")
                if repeated[at]:
                    context = _with_unique_ids(context, history)
            return context

        return view


class Strategies(UserDict[str, Any]):
    """Strategy classes by name, from the entry points. Each is imported when it is asked for.

    A plain function is wrapped in a class. One that cannot be imported is not in it: `errors` says why.
    """

    def __init__(self) -> None:
        # Those with a dot are of providers and libraries: ours are named first, in lists and to who misspelt one.
        points = sorted(entry_points(group="ctxbench.strategies"), key=lambda point: ("." in point.name, point.name))
        self.points, self.errors = {point.name: point for point in points}, dict[str, str]()
        super().__init__(dict.fromkeys(self.points))

    def __getitem__(self, name: str) -> type[Any]:
        kind: type[Any] | None = self.data[name]
        if kind is not None:
            return kind
        try:
            kind = self.points[name].load()
            self.data[name] = kind = kind if isinstance(kind, type) else strategy_of(kind, name)
        except Stopped:
            raise
        except (Exception, SystemExit) as error:  # one broken package must not take the other strategies with it
            self.errors[name] = f"{self.points[name].value} cannot be loaded: {type(error).__name__}: {error}"
            del self.data[name]
            raise KeyError(name) from error
        return kind

    __contains__ = Mapping.__contains__

    def __iter__(self) -> Iterator[str]:
        return (name for name in list(self.data) if name in self)

    def name_of(self, kind: type[Any]) -> str | None:
        """Return the name of a class, or None. As few others are imported as can be."""
        near = (name for name, point in self.points.items() if point.module == kind.__module__ and name in self)
        names = chain(list(self.data), near, () if plugins.name_of(kind) else self)
        return next((name for name in names if self.data[name] is kind), None)


@cache
def strategies() -> Strategies:
    """Return the strategy classes by name."""
    return Strategies()


def stages_of(strategy: Strategy) -> tuple[Strategy, ...]:
    """Return the stages of a chain, or the strategy alone."""
    return strategy.stages if isinstance(strategy, Chain) else (strategy,)


def packages(strategy: Strategy) -> dict[str, str]:
    """Map each stage that another package brings to the package, its version, and a digest of the module's file.

    An adapter is mapped to the library that it calls, and its version where it runs.
    """
    found = dict[str, str]()
    for kind in map(type, stages_of(strategy)):
        if (name := strategies().name_of(kind)) is None:
            continue
        point = strategies().points.get(name)
        if hasattr(kind, "library"):
            found[name] = f"{kind.library} {process.version_of(kind.library)}"
        elif point is not None and point.module.partition(".")[0] != "ctxbench":
            found[name] = plugins.package(point)
    return found


def definitions(strategy: Strategy) -> dict[str, Code]:
    """Map each stage that a notebook or a script has defined to its source."""
    kinds = set(map(type, stages_of(strategy)))
    return {name: plugins.codes[kind] for name, kind in plugins.defined.items() if kind in kinds}


def texts_of(strategies_given: Iterable[StrategyLike]) -> list[str]:
    """Return the texts of strategies that are given as texts, objects, classes or functions.

    Those without the name of a file or package can be parsed by their own in this process from here on. Raises
    SpecError for what is no strategy, and where two share a name.
    """
    texts, kinds = list[str](), dict[str, type[Any]]()
    for given in strategies_given:
        if isinstance(given, str):
            texts.append(given)
            continue
        strategy = Chain(tuple(map(_defined, given.stages))) if isinstance(given, Chain) else _defined(given)
        for name in definitions(strategy):
            if kinds.setdefault(name, plugins.defined[name]) is not plugins.defined[name]:
                raise SpecError(f"{name}: is the name of two strategies: give each a name of its own")
        texts.append(spec(strategy))
    return texts


def _defined(strategy: Any) -> Strategy:
    kind = type(strategy)
    is_known = strategies().name_of(kind) or ".py:" in (plugins.name_of(kind) or "")
    of: Strategy = strategy if is_known else plugins.define(strategy, {*strategies().points, *NAMED})
    return of


def use_pythons(texts: Iterable[str]) -> None:
    """Have adapters run in other Pythons from now on, each written as `PATH` or `LIBRARY=PATH`. Raises SpecError."""
    interpreters = [process.interpreter(text) for text in texts]
    kinds = strategies().values() if any(library for _, library in interpreters) else ()
    libraries = {kind.library: kind for kind in kinds if hasattr(kind, "library")}
    for _, library in interpreters:
        if library and library not in libraries:
            raise SpecError(f"--adapter-python: no adapter calls a library {library!r}{suggestion(library, libraries)}")
    process.use_interpreters(interpreters)


def parse(text: str) -> Strategy:
    """Return the strategy of a text, or the chain if there is a `|` in it. Raises SpecError."""
    stages = [stage for call in text_of.calls(plugins.quote_files(text), "strategy") for stage in _stages(call)]
    return stages[0] if len(stages) == 1 else Chain(tuple(stages))


def lists() -> dict[str, list[str]]:
    """Return the lists of strategies by name."""
    by_name: dict[str, list[str]] = data("lists")
    return by_name


def listed(texts: Iterable[str]) -> tuple[tuple[str, ...], list[str]]:
    """Put the entries of a list in the place of `@NAME`, but those that are named before it, and return all strategies.

    An entry whose library is not installed is left out; the lines returned beside say which these are, by library.
    Raises SpecError for a list that is not known.
    """
    chosen: list[str] = []
    left_out: dict[str, list[str]] = {}
    for text in texts:
        if not text.startswith("@"):
            chosen.append(text)
            continue
        if text[1:] not in lists():
            raise SpecError(f"unknown list of strategies {text!r}{suggestion(text[1:], lists())}")
        for entry in lists()[text[1:]]:
            try:
                own = spec(parse(entry))
            except MissingExtra as error:
                left_out.setdefault(str(error), []).append(entry)
            else:
                chosen += [own] * (own not in chosen)
    return tuple(chosen), [f"left out: {', '.join(entries)}: {why}" for why, entries in left_out.items()]


_NAMED_AS = re.compile(r"\A\s*[A-Za-z_][\w-]*=")
_RANGE = re.compile(r"=\s*\?(\[[\d.e+-]*(:log)?\])?")
_TEXTS = re.compile(r"=\s*\?(?=\[\s*['\"])")


def is_plain(text: str, is_format: bool = False) -> bool:
    """Return whether a strategy, a tier's measurement or a format is no file's, and names no model and no place."""
    from ctxbench.metrics.models import find_model

    if re.fullmatch(r"@\w+", text):
        return True
    if "'''" in text or '"""' in text:  # a search replaces its ranges within these too
        return False
    try:
        parsed = text_of.calls(_RANGE.sub("=0", _TEXTS.sub("=", _NAMED_AS.sub("", text))), "strategy")
    except SpecError:
        return False
    values = [value for call in parsed for value in (call.name, *call.parameters.values())]
    texts = [str(text) for value in values for text in (value if isinstance(value, list | tuple) else [value])]
    if is_format and any("name" in call.parameters for call in parsed):  # a data set of the hub
        return False
    return not any(re.search(r"[/\\:]", text) or plugins.is_file(text) or find_model(text) for text in texts)


def spec(strategy: Strategy) -> str:
    """Return the text of a strategy: `parse(spec(s)) == s`. Raises SpecError for a class without a name."""
    if isinstance(strategy, Chain):
        return " | ".join(spec(stage) for stage in strategy.stages)
    kind = type(strategy)
    name = strategies().name_of(kind) or plugins.name_of(kind)
    if name is None:
        raise SpecError(f"{kind.__name__} has no name: give it to `ctxbench.run`, its file, or an entry point")
    return text_of.spec(name, strategy)


def _with_unique_ids(context: Context, history: Messages) -> Context:
    """Return the context without two messages of one id. Only what stages wrote, outside the history, can collide."""
    stores = [store for store, _, _ in history.spans]
    spans = [span for span in context.messages.spans if not any(span.store is store for store in stores)]
    written = Messages(spans)
    if len({message.id for message in written}) == len(written):
        return context
    renamed, ids = [], {message.id for message in context.messages}
    seen: set[str] = set()
    for message in context.messages:
        name, number = message.id, 1
        # A new name must not be one that a later message has by
        # right; the own name of a message that comes first may be.
        while name in seen or (number > 1 and name in ids):
            number += 1
            name = f"{message.id}#{number}"
        seen.add(name)
        renamed.append(message if number == 1 else msgspec.structs.replace(message, id=name))
    return msgspec.structs.replace(context, messages=Messages.of(tuple(renamed)))


def _stages(call: text_of.SpecCall) -> list[Strategy]:
    """Return the strategy of a name, or the stages of a recipe. Raises SpecError."""
    kinds = strategies()
    if plugins.is_file(call.name):
        kind = plugins.load(call.name)
        return [text_of.build(call, {call.name: kind}, "strategy")]
    for known in (kinds, plugins.defined):
        if call.name in known:
            return [text_of.build(call, {call.name: known[call.name]}, "strategy")]
    if call.name in kinds.errors:
        raise SpecError(f"strategy {call.name!r}: {kinds.errors[call.name]}")
    if call.name not in NAMED:
        # Recipes are among the candidates, so that a misspelt recipe is told its nearest name.
        return [text_of.build(call, {**kinds, **dict.fromkeys(NAMED, Chain)}, "strategy")]
    stages = NAMED[call.name].chain
    if call.parameters:
        raise SpecError(f"recipe {call.name!r} takes no parameters: it is `{stages}`; write that, and change it")
    return [stage for stage_call in text_of.calls(stages, "strategy") for stage in _stages(stage_call)]
