"""Strategies from a file: `path/to/file.py:MyStrategy(n=3)`, or a plain function in it (`functions.py`).

The file is run when the strategy is parsed, in every process that needs it. A digest of its content is part of the
strategy's identity, `path/to/file.py:MyStrategy@1f3a5c7e9b2d`: a changed file is another strategy, in the rows of a run
and when a run is resumed. The digest does not cover what the file imports, which must be installed or on PYTHONPATH.
Strategies of a package go by their names alone: a run notes the package, its version and a digest of the module.
"""

from __future__ import annotations

import hashlib
import re
import sys
import traceback
from dataclasses import is_dataclass
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

from ctxbench.scenarios.errors import SpecError, Stopped
from ctxbench.scenarios.files import read_file
from ctxbench.scenarios.spec import suggestion

from .functions import strategy_of

_NAMED = re.compile(r"(?P<path>.+\.py):(?P<name>[^\W\d]\w*)(?:@(?P<digest>[0-9a-f]{12}))?", re.DOTALL)
_STRING_OR_STAGE = re.compile(
    r"""'(?:\\.|[^'\\])*+'?|"(?:\\.|[^"\\])*+"?|(?:\A|\|)\s*+(?P<path>[^|()'"]*?\.py(?::[\w@]*)?)(?=[\s(|]|\Z)"""
)

# Name of each class that was loaded from a file.
_names: dict[type[Any], str] = {}


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
    """Return the name of a class that `load` returned, with the file's digest, quoted where it must be; else None."""
    name = _names.get(kind)
    return None if name is None else name if quote_files(name) == repr(name) else repr(name)


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
    if not isinstance(value, type) and callable(value):
        kind = strategy_of(value, where)
    elif not isinstance(value, type) or not callable(getattr(value, "start", None)):
        raise SpecError(f"{where}: is neither a strategy class (with a method start) nor a function of messages")
    elif not is_dataclass(value) or not value.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise SpecError(f"{where}: is no frozen dataclass: write @dataclass(frozen=True, slots=True) above it")
    else:
        kind = value
    _names.setdefault(kind, f"{where}@{digest}")
    return kind


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
