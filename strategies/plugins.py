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

import ast
import hashlib
import inspect
import linecache
import re
import symtable
import sys
import traceback
from collections.abc import Container, Iterator
from contextlib import suppress
from dataclasses import is_dataclass
from functools import cache, partial
from importlib.metadata import EntryPoint
from pathlib import Path
from textwrap import dedent
from types import CodeType, ModuleType
from typing import Any, NamedTuple, get_type_hints

import msgspec

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


class Definition(NamedTuple):
    """A strategy class that a notebook or a script has defined."""

    kind: type[Any]
    digest: str
    source: str  # its own, then that of the functions and classes which it uses; empty where Python keeps none


defined: dict[str, Definition] = {}
"""Strategy classes by the names under which this process has defined them."""


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
    match = _NAMED.fullmatch(name)
    if match is None:
        raise SpecError(f"cannot read the strategy {name!r}: write path/to/file.py:NAME or path/to/file.py:NAME(x=1)")
    path, wanted, digest = match.group("path", "name", "digest")
    try:
        source = read_file(Path(path).expanduser())
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror or error}") from None
    now = hashlib.sha256(source).hexdigest()[:12]
    if digest not in (None, now):
        raise SpecError(f"{path}: has changed: it is @{now} now, and was @{digest}: begin a new run")
    return _class(path, wanted, source, now)


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
    if not name.isidentifier() or args:
        what = "a function that has a name, from def, and parameters by their names"
        raise SpecError(f"{name}: strategies stand in tables as NAME(parameter=value): give {what}")
    kind = _strategy_class(written, name)
    if name in taken:
        raise SpecError(f"{name}: is the name of a strategy that is there already: give yours another")
    try:
        get_type_hints(kind)
    except Exception as error:
        raise SpecError(f"{name}: its annotations cannot be read: {type(error).__name__}: {error}") from None
    parts = list(_written(vars(kind).get("written_as", kind), set()))
    digest = hashlib.sha256("\n".join(identity for identity, _ in parts).encode("utf-8", "surrogatepass"))
    source = "\n\n".join(source for _, source in parts if source)
    defined[name] = Definition(kind, digest.hexdigest()[:12], source if parts[0][1] else "")
    _names[kind] = name
    return of if is_object else build(SpecCall(name, given), {name: kind}, "strategy")


def _written(value: Any, seen: set[str]) -> Iterator[tuple[str, str]]:
    """Yield what identifies a function or class, with its source, and then what it uses from its own module.

    Constants have no source here: they may be keys. What is imported is not followed, as with a file.
    """
    source, functions = _source(value), [value] if inspect.isfunction(value) else _methods(value)
    codes = [repr((each.__defaults__, each.__kwdefaults__, *_code(each.__code__))) for each in functions]
    yield source or "\n".join(codes), source
    scope: dict[str, Any] = {}
    for function in functions:
        scope |= function.__globals__
        with suppress(ValueError):  # a variable of the function around it that has no value yet
            scope |= inspect.getclosurevars(function).nonlocals
    seen.add(value.__name__)
    for name in sorted(_variables(symtable.symtable(source, value.__name__, "exec")) - seen) if source else ():
        seen.add(name)
        used = scope.get(name)
        if inspect.isfunction(used) or isinstance(used, type):
            if used.__module__ == value.__module__:
                yield from _written(vars(used).get("written_as", used), seen)
        else:
            with suppress(Exception):  # what is no plain value, such as a module
                yield f"{name}={msgspec.json.encode(used, order='deterministic')!r}", ""


def _methods(kind: type[Any]) -> list[Any]:
    return [value for value in vars(kind).values() if inspect.isfunction(value)]


def _variables(table: symtable.SymbolTable) -> set[str]:
    """Return the names in a source that come from outside of it."""
    own = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global() or symbol.is_free()}
    return own.union(*map(_variables, table.get_children()))


def _code(code: CodeType) -> list[object]:
    """Return what a function does where its source is not known; places of lines are left out."""
    constants = (_code(each) if isinstance(each, CodeType) else each for each in code.co_consts)
    plain = (sorted(map(repr, each)) if isinstance(each, frozenset) else each for each in constants)
    return [code.co_code, code.co_names, code.co_varnames, *plain]


def _source(value: Any) -> str:
    """Return the source of a function or class; empty where Python keeps none, as of what is typed at its prompt."""
    with suppress(OSError, TypeError):
        return dedent(inspect.getsource(value))
    # `inspect` finds no class of a notebook; the methods know their cell.
    for code in (function.__code__ for function in _methods(value)) if isinstance(value, type) else ():
        with suppress(SyntaxError):
            lines = linecache.getlines(code.co_filename)
            for node in ast.walk(ast.parse("".join(lines))):
                if isinstance(node, ast.ClassDef) and node.name == value.__name__ and node.end_lineno:
                    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                    if first <= code.co_firstlineno <= node.end_lineno:
                        return dedent("".join(lines[first - 1 : node.end_lineno]))
    return ""


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
