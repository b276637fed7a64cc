"""Conversations, probes and strategies of a run, found by what a user writes for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import wraps
from inspect import isfunction
from typing import Any, ParamSpec, TypeVar

from ctxbench.harness.folder.run import Run
from ctxbench.harness.probes import CEILING, FLOOR
from ctxbench.metrics.figures import BILLED, METRICS, OWN
from ctxbench.scenarios.errors import RunError, SpecError, UserError
from ctxbench.scenarios.spec import calls, nearest, suggestion
from ctxbench.strategies.chain import StrategyLike, parse, spec, texts_of
from ctxbench.strategies.plugins import load_metric, quote_files

P = ParamSpec("P")
T = TypeVar("T")


def short_trace(function: Callable[P, T]) -> Callable[P, T]:
    """Return a function whose UserError, or Ctrl-C, shows the caller's lines and the text, and none of ours between.

    A bug keeps its whole trace.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        __tracebackhide__ = True  # pytest and IPython leave this line out too
        try:
            return function(*args, **kwargs)
        except (UserError, KeyboardInterrupt) as error:
            raise error.with_traceback(None) from None

    return call


def short_traces(kind: type[T]) -> type[T]:
    """Return a class whose public methods have short traces."""
    for name, method in [*vars(kind).items()]:
        if isfunction(method) and not name.startswith("_"):
            setattr(kind, name, short_trace(method))
    return kind


def find_conversation(run: Run, text: str) -> str:
    """Return the id of a conversation from its id or its number in the list, from 1. An id that is a number wins."""
    names = [str(name) for name in run.table("conversations").conversation]
    at = _at(names, text)
    return text if at is None else names[at]


def find_probe(run: Run, conversation: str, text: str) -> int:
    """Return the number of a probe, from 0, by its id or its number in the list, from 1. Raises RunError."""
    names = [probe.id for probe in run.conversation(conversation).probes]
    if not names:
        raise RunError(f"{conversation!r} has no probes")
    at = _at(names, text)
    if at is None:
        some = ", ".join(names[:10]) + " …" * (len(names) > 10)
        raise RunError(f"{conversation!r} has no probe {text!r}; it has {some}, or their numbers, 1 to {len(names)}")
    return at


MetricLike = str | Callable[..., Any]  # its key, `file.py:NAME`, or a function that declares it


def metric_keys(given: Iterable[MetricLike]) -> list[str]:
    """Return the keys of metrics that are given by key, as `file.py:NAME`, or as a function that declares one."""
    keys = list[str]()
    for each in given:
        if isinstance(each, str):
            keys.append(load_metric(each) if ".py" in each else each)
            continue
        keys.append(name := getattr(each, "__name__", repr(each)))
        if (metric := getattr(each, "metric", None)) is None:
            raise SpecError(f"{name} is no metric: write @ctxbench.metric(better=…) above its function")
        OWN[name] = metric  # another function of the name may have been declared since
    check_known((key.partition("(")[0] for key in keys), [*METRICS, *BILLED, *OWN])
    if twice := next((key for key in keys if keys.count(key) > 1), None):
        raise SpecError(f"{twice}: is named twice, or is the name of two metrics: name it once")
    return keys


def check_known(metrics: Iterable[str], known: Iterable[str]) -> None:
    """Raise SpecError for a metric that is not among those that are known."""
    names = dict.fromkeys(known)
    if (unknown := next((name for name in metrics if name not in names), None)) is not None:
        near = suggestion(unknown, names, "ctxbench list metrics")
        raise SpecError(f"unknown metric {unknown!r}{near} (your own is FILE.py:NAME)")


def _at(names: Sequence[str], text: str) -> int | None:
    """Return where a name stands, given as itself or as its number from 1; None = nowhere."""
    if text in names:
        return names.index(text)
    is_number = text.isdecimal() and len(text) < 10 and 0 < int(text) <= len(names)
    return int(text) - 1 if is_number else None


def find_strategy(run: Run, given_as: StrategyLike | None) -> str:
    """Return the strategy that was given as this, or as more of a text; by default the first that is no baseline.

    Raises RunError for what was not run, and for what may be more than one.
    """
    names = run.manifest.plan.strategies
    if given_as is None:
        return min(names, key=lambda name: (name == "none", name in (FLOOR, CEILING)))
    (text,) = texts_of([given_as])
    given, normal = run.manifest.strategy_names, ""
    with suppress(UserError):  # it is no strategy here, or its file or library is gone
        normal = spec(parse(text))
    matches = [name for name in names if name in (text, normal) or given.get(name) == text]
    matches = matches or [name for name in names if _is_part(text, name)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise RunError(f"{run.name}: {text!r} may be {' or '.join(matches)}: write more of it")
    near = nearest(text, dict.fromkeys(names))
    raise RunError(f"{run.name}: {text!r} was not run here; these were: {', '.join(names)}{near}")


def _is_part(part: str, whole: str) -> bool:
    """Return whether a chain has the stages of another, whatever the digests of files, and no other parameter."""
    try:
        one, other = ([*calls(quote_files(text), "strategy")] for text in (part, whole))
    except SpecError:
        return False
    stages = [[call.name.partition("@")[0] for call in chain] for chain in (one, other)]
    pairs = zip(one, other, strict=False)
    return stages[0] == stages[1] != [] and all(a.parameters.items() <= b.parameters.items() for a, b in pairs)
