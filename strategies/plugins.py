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
from dataclasses import is_dataclass
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

from ..scenarios.errors import SpecError, Stopped
from ..scenarios.spec import meant
from .plain import strategy_of

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
