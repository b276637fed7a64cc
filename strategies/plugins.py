"""Strategies of the user's own: in a file, `path/to/file.py:MyStrategy(n=3)`, or defined in a notebook or a script.

The file, with classes or plain functions (`functions.py`) in it, is run when the strategy is parsed, in every process
that needs it. A digest of its content is part of the strategy's identity, `path/to/file.py:MyStrategy@1f3a5c7e9b2d`: a
changed file is another strategy, in the rows of a run and when a run is resumed. The digest does not cover what the
file imports, which must be installed or on PYTHONPATH.
Strategies of a package go by their names alone: a run notes the package, its version and a digest of the module.

What a notebook or a script defines goes by its name in this process alone, `MyStrategy(n=3)`. A run stores its source,
and a digest of that and of what it uses from the same module: another definition of the name is another strategy.
"""

from __future__ import annotations

import hashlib
import inspect
import re
import sys
import traceback
from collections.abc import Container
from dataclasses import is_dataclass, replace
from functools import cache, partial
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

from ctxbench.scenarios.code import Code, code_of
from ctxbench.scenarios.errors import SpecError, Stopped
from ctxbench.scenarios.files import read_file
from ctxbench.scenarios.spec import SpecCall, build, suggestion

from .functions import strategy_of

_NAMED = re.compile(r"(?P<path>.+\.py):(?P<name>[^\W\d]\w*)(?:@(?P<digest>[0-9a-f]{12}))?", re.DOTALL)
_STRING_OR_STAGE = re.compile(
    r"""'(?:\\.|[^'\\])*+'?|"(?:\\.|[^"\\])*+"?|(?:\A|\|)\s*+(?P<path>[^|()'"]*?\.py(?::[\w@]*)?)(?=[\s(|]|\Z)"""
)

# Name of each class that was loaded from a file or defined in this process.
_names: dict[type[Any], str] = {}


defined: dict[str, type[Any]] = {}  # strategy classes that a notebook or a script has defined, by their names
codes: dict[type[Any], Code] = {}  # the source of each of them


def quote_files(text: str) -> str:
    """Return a chain with its file names quoted: `scenarios.spec` reads names that are no identifiers in quotes."""

    def quote(match: re.Match[str]) -> str:
        path = match.group("path")
        return match.group() if path is None else match.group().removesuffix(path) + repr(path)

    return _STRING_OR_STAGE.sub(quote, text)


def is_file(name: str) -> bool:
    """Return whether the name of a strategy names a file."""
    return ".py:" in name or name.endswith(".py")


def load(name: str) -> type[Any]:
    """Return the strategy class of `path.py:NAME`.

    Raises SpecError if there is no such file or name, if the file fails, or if it is not the one of the digest.
    """
    return _class(*_read(name, "strategy", " or path/to/file.py:NAME(x=1)"))


def load_metric(name: str) -> str:
    """Run the file of `path.py:NAME`, and return the key of the metric that it declares there. Raises SpecError.

    No other metric of the file is declared.
    """
    from ctxbench.metrics.figures import OWN, Metric  # with the statistics, which few commands need

    path, wanted, source, digest = _read(name, "metric")
    before = dict(OWN)
    value = getattr(_module(path, source, digest), wanted, None)
    OWN.clear()
    OWN.update(before)
    if not isinstance(metric := getattr(value, "metric", None), Metric):
        raise SpecError(f"{path}: has no metric {wanted!r}: write @ctxbench.metric(better=…) above its function")
    key: str = value.__name__  # type: ignore[union-attr]
    OWN[key] = replace(metric, file=name)
    return key


def _read(name: str, kind: str, more: str = "") -> tuple[str, str, bytes, str]:
    """Return the path in a name, the name in the file, its content and the digest of that. Raises SpecError."""
    match = _NAMED.fullmatch(name)
    if match is None:
        raise SpecError(f"cannot read the {kind} {name!r}: write path/to/file.py:NAME{more}")
    path, wanted, digest = match.group("path", "name", "digest")
    try:
        source = read_file(Path(path).expanduser())
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror or error}") from None
    now = hashlib.sha256(source).hexdigest()[:12]
    if digest not in (None, now):
        raise SpecError(f"{path}: has changed: it is @{now} now, and was @{digest}: begin a new run")
    return path, wanted, source, now


def name_of(kind: type[Any]) -> str | None:
    """Return the name of a class that `load` or `define` knows, a file's with its digest, quoted where it must be."""
    name = _names.get(kind)
    return name if name is None or name.isidentifier() or quote_files(name) == repr(name) else repr(name)


def package(point: EntryPoint) -> str:
    """Return package, version and digest of the module file of an entry point: `package 1.2 1f3a5c7e9b2d`."""
    path = getattr(sys.modules.get(point.module), "__file__", None)
    try:
        digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12] if path else ""
    except OSError:
        digest = ""
    name = f"{point.dist.name} {point.dist.version}" if point.dist else point.module
    return f"{name} {digest}".strip()


@cache
def _class(path: str, name: str, source: bytes, digest: str) -> type[Any]:
    module = _module(path, source, digest)
    value = getattr(module, name, None)
    where = f"{path}:{name}"
    if value is None:
        # The public classes and functions that the file itself defines.
        offered = {
            name: other
            for name, other in vars(module).items()
            if not name.startswith("_") and getattr(other, "__module__", "") == module.__name__ and callable(other)
        }
        raise SpecError(f"{path}: has no {name!r}{suggestion(name, offered) if offered else '; it defines nothing'}")
    kind = _strategy_class(value, where)
    _names.setdefault(kind, f"{where}@{digest}")
    return kind


@cache
def _strategy_class(value: Any, where: str) -> type[Any]:
    """Return the strategy class that a value is, or that calls it if it is a function. Raises SpecError."""
    if not isinstance(value, type) and callable(value):
        return strategy_of(value, where)
    if not isinstance(value, type) or not callable(getattr(value, "start", None)):
        raise SpecError(f"{where}: is neither a strategy class (with a method start) nor a function of messages")
    if not is_dataclass(value) or not value.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise SpecError(f"{where}: is no frozen dataclass: write @dataclass(frozen=True, slots=True) above it")
    return value


def define(value: Any, taken: Container[str]) -> Any:
    """Return the strategy of a function, a class or an object, whose class can be parsed by its name from here on.

    A `functools.partial` of a function gives its parameters. `taken` are the names of strategies that come with
    ctxbench or a package. Raises SpecError for what is no strategy, or has no name of its own.
    """
    of, args, given = (value.func, value.args, value.keywords) if isinstance(value, partial) else (value, (), {})
    is_object = not isinstance(of, type) and hasattr(of, "start")
    written: Any = type(of) if is_object else of
    name = getattr(written, "__name__", "")
    if not callable(written) or not name:
        raise SpecError(f"{value!r} is no strategy: give its text, a function of messages, or an object with start")
    if not name.isidentifier() or args or inspect.ismethod(of):  # what a method's object holds is in no text
        how = "write it with def outside of a class, and name its parameters"
        raise SpecError(f"{name}: stands in tables as NAME(parameter=value): {how}")
    kind = _strategy_class(written, name)
    if name in taken:
        raise SpecError(f"{name}: is the name of a strategy that is there already: give yours another")
    try:
        get_type_hints(kind)
    except Exception as error:
        raise SpecError(f"{name}: its annotations cannot be read: {type(error).__name__}: {error}") from None
    defined[name], codes[kind] = kind, code_of(vars(kind).get("written_as", kind))
    _names[kind] = name
    return of if is_object else build(SpecCall(name, given), {name: kind}, "strategy")


@cache
def _module(path: str, source: bytes, digest: str) -> ModuleType:
    """Run a file once in this process and for this content, and return it as a module. Raises SpecError if it fails."""
    # Dataclasses look up their module in sys.modules to resolve annotations.
    module = ModuleType(f"ctxbench_plugin_{hashlib.sha256(path.encode()).hexdigest()[:12]}_{digest}")
    module.__file__ = path
    sys.modules[module.__name__] = module
    try:
        exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)
    except Stopped:
        raise
    except (Exception, SystemExit) as error:
        del sys.modules[module.__name__]
        # The last line of the file that was running, or the line of a syntax error.
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
        lines += [error.lineno] if isinstance(error, SyntaxError) and error.filename == path else []
        where = f"{path}:{lines[-1]}" if lines else path
        raise SpecError(f"{where}: fails: {type(error).__name__}: {error}") from None
    return module
