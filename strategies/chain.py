"""Strategies as text and in chains: `archive(threshold=10000) | window(max_tokens=8000)`.

A name is that of an entry point of the group `ctxbench.strategies`, of a recipe, or of a file: `path/file.py:Name`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any, NamedTuple

from msgspec.structs import replace

from ..scenarios import spec as text_of
from ..scenarios.errors import SpecError, Stopped
from ..scenarios.view import Messages
from . import plugins
from .base import Context, Strategy, StrategyContext, View, budget_of, is_copyable, returned
from .plugins import strategy_of
from .recipes import NAMED


@dataclass(frozen=True, slots=True)
class Chain:
    """Stages in order, each given what the one before would send. A chain is itself a strategy.

    A stage that is in it twice may write two messages under one id: the later one is sent as `id#2`. Raises SpecError
    for stages that undo each other, which they say of themselves: `only_marks` and `once` are class variables.
    """

    stages: tuple[Strategy, ...]

    def __post_init__(self) -> None:
        for at, stage in enumerate(self.stages):
            rest = self.stages[at:]
            if getattr(stage, "only_marks", False) and not all(getattr(each, "only_marks", False) for each in rest):
                raise SpecError(f"`{spec(stage)}` must be the last of its chain: the stages after it drop its marks")
            if getattr(stage, "once", False) and any(type(each) is type(stage) for each in self.stages[:at]):
                raise SpecError(f"`{spec(stage)}`: only one of its kind may be in a chain: it offers the model a tool")

    @property
    def budget(self) -> int | None:
        """The last stage's promise: those before it may be undone, unless what follows sends the messages it gets."""
        stages = list(self.stages)
        while len(stages) > 1 and getattr(stages[-1], "only_marks", False):
            stages.pop()
        return budget_of(stages[-1])

    @property
    def copyable(self) -> bool:
        """Whether a copy of it goes on as it would: each stage must."""
        return all(is_copyable(stage) for stage in self.stages)

    def start(self, desk: StrategyContext) -> View:
        views = [stage.start(desk) for stage in self.stages]
        kinds = [type(stage) for stage in self.stages]
        again = [kind in kinds[:at] for at, kind in enumerate(kinds)]

        def view(context: Context) -> Context:
            for at, each in enumerate(views):
                context = returned(each(context), f"stage {at + 1} of the chain")
                if again[at]:
                    context = _told_apart(context, desk)
            return context

        return view


class _Registered(NamedTuple):
    """What the entry points bring, by name."""

    kinds: dict[str, type[Any]]
    broken: dict[str, str]
    """Of those that cannot be loaded, why."""
    packages: dict[str, str]
    """Of those that are not ours, whose."""


@cache
def _registered() -> _Registered:
    found = _Registered({}, {}, {})
    for point in sorted(entry_points(group="ctxbench.strategies")):
        try:
            kind = point.load()
            found.kinds[point.name] = kind if isinstance(kind, type) else strategy_of(kind, point.name)
        except Stopped:
            raise
        except (Exception, SystemExit) as error:  # somebody's package is broken: the other strategies are not
            found.broken[point.name] = f"{point.value} cannot be loaded: {type(error).__name__}: {error}"
        else:
            if point.module.partition(".")[0] != "ctxbench":
                found.packages[point.name] = plugins.package(point)
    return found


def strategies() -> dict[str, type[Any]]:
    """The strategy classes by name, from the entry point group `ctxbench.strategies`: classes, or plain functions."""
    return _registered().kinds


def broken() -> dict[str, str]:
    """The entry points that cannot be loaded, by name, and why."""
    return _registered().broken


def packages(strategy: Strategy) -> dict[str, str]:
    """Of the stages that other packages bring, by name: the package, its version, and a digest of the module's file."""
    kinds = {type(stage) for stage in (strategy.stages if isinstance(strategy, Chain) else (strategy,))}
    return {name: whose for name, whose in _registered().packages.items() if strategies()[name] in kinds}


def parse(text: str) -> Strategy:
    """A strategy, or a chain of them with `|` between, from its text. Raises SpecError."""
    stages = [stage for call in text_of.calls(plugins.quoted(text), "strategy") for stage in _stages(call)]
    return stages[0] if len(stages) == 1 else Chain(tuple(stages))


def spec(strategy: Strategy) -> str:
    """The text of a strategy: `parse(spec(s)) == s`."""
    if isinstance(strategy, Chain):
        return " | ".join(spec(stage) for stage in strategy.stages)
    kind = type(strategy)
    names = {known: name for name, known in strategies().items()}
    name = names.get(kind) or plugins.name_of(kind)
    if name is None:
        raise SpecError(f"{kind.__name__} has no name: parse it from its file, or give it an entry point")
    return text_of.spec(name, strategy)


def _told_apart(context: Context, desk: StrategyContext) -> Context:
    """The same context, without two messages of one id: stages write system messages, and only those can be so."""
    systems = desk.systems(context.messages)
    if len({each.id for each in systems}) == len(systems):
        return context
    made, taken = [], {each.id for each in context.messages}
    seen: set[str] = set()
    for message in context.messages:
        name, number = message.id, 1
        while name in seen or (number > 1 and name in taken):
            number += 1
            name = f"{message.id}#{number}"
        seen.add(name)
        made.append(message if number == 1 else replace(message, id=name))
    return replace(context, messages=Messages.of(tuple(made)))


def _stages(call: text_of.SpecCall) -> list[Strategy]:
    """What a name stands for: a strategy, or the stages of a recipe."""
    found = strategies()
    if plugins.is_file(call.name):
        kind = plugins.load(call.name)
        return [text_of.build(call, {call.name: kind}, "strategy")]
    if call.name in broken():
        raise SpecError(f"strategy {call.name!r}: {broken()[call.name]}")
    if call.name in found or call.name not in NAMED:
        near = {**found, **dict.fromkeys(NAMED, Chain)}  # for a name that is neither's: what it is like
        return [text_of.build(call, near, "strategy")]
    chain = NAMED[call.name].chain
    if call.parameters:
        raise SpecError(f"recipe {call.name!r} takes no parameters: it is `{chain}`; write that, and change it")
    return [stage for each in text_of.calls(chain, "strategy") for stage in _stages(each)]
