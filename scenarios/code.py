"""The source of what a notebook, a script or a file defines, and a digest by which one definition is told from another.

The digest is over the source of a function or class, and of the functions, classes and plain constants of the same
module that it uses. What is imported is not followed.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import linecache
import symtable
from collections.abc import Iterator, Sequence
from contextlib import suppress
from textwrap import dedent
from types import CodeType
from typing import Any

import msgspec


class Code(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The source of a definition."""

    digest: str
    source: str  # its own, then that of the functions and classes which it uses; empty where Python keeps none


def code_of(value: Any) -> Code:
    """Return the source of a function or class."""
    parts = list(_parts(value, set()))
    digest = hashlib.sha256("\n".join(identity for identity, _ in parts).encode("utf-8", "surrogatepass"))
    source = "\n\n".join(source for _, source in parts if source)
    return Code(digest.hexdigest()[:12], source if parts[0][1] else "")


def _parts(value: Any, seen: set[str]) -> Iterator[tuple[str, str]]:
    """Yield what identifies a function or class, with its source, and then what it uses from its own module.

    Constants have no source here: they may be keys.
    """
    functions = [each for each in (value, *getattr(value, "__dict__", {}).values()) if inspect.isfunction(each)]
    source = _source(value, functions)
    codes = [repr((each.__defaults__, each.__kwdefaults__, *_code(each.__code__))) for each in functions]
    yield source or "\n".join(codes), source
    bases: dict[str, Any] = {base.__name__: base for base in getattr(value, "__bases__", ())}
    scope = dict(bases)
    for function in functions:
        scope |= function.__globals__
        with suppress(ValueError):  # a variable of the function around it that has no value yet
            scope |= inspect.getclosurevars(function).nonlocals
    seen.add(value.__name__)
    names = _variables(symtable.symtable(source, value.__name__, "exec")) if source else {*bases}
    for name in sorted(names - seen):
        seen.add(name)
        used = scope.get(name)
        if inspect.isfunction(used) or isinstance(used, type):
            if used.__module__ == value.__module__:
                yield from _parts(vars(used).get("written_as", used), seen)
        else:
            with suppress(Exception):  # what is no plain value, such as a module
                yield f"{name}={msgspec.json.encode(used, order='deterministic')!r}", ""


def _variables(table: symtable.SymbolTable) -> set[str]:
    """Return the names in a source that come from outside of it."""
    own = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global() or symbol.is_free()}
    return own.union(*map(_variables, table.get_children()))


def _code(code: CodeType) -> list[object]:
    """Return what a function does where its source is not known; places of lines are left out."""
    constants = (_code(each) if isinstance(each, CodeType) else each for each in code.co_consts)
    plain = (sorted(map(repr, each)) if isinstance(each, frozenset) else each for each in constants)
    return [code.co_code, code.co_names, code.co_varnames, *plain]


def _source(value: Any, functions: Sequence[Any]) -> str:
    """Return the source of a function or class; empty where Python keeps none, as of what is typed at its prompt."""
    with suppress(OSError, TypeError):
        return dedent(inspect.getsource(value))
    # `inspect` finds no class of a notebook; the methods know their cell.
    for code in (function.__code__ for function in functions):
        with suppress(SyntaxError):
            lines = linecache.getlines(code.co_filename)
            for node in ast.walk(ast.parse("".join(lines))):
                if isinstance(node, ast.ClassDef) and node.name == value.__name__ and node.end_lineno:
                    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                    if first <= code.co_firstlineno <= node.end_lineno:
                        return dedent("".join(lines[first - 1 : node.end_lineno]))
    return ""
