"""The source of what a notebook, a script or a file defines, and a digest by which one definition is told from another.

The digest is over the source of a function or class, and of the functions, classes, constants and objects of the same
module that it uses. What is imported is not followed. An object whose content cannot be seen is told in a warning.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import linecache
import re
import symtable
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from textwrap import dedent
from types import CodeType, ModuleType
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
        used = getattr(used, "__wrapped__", used) if callable(used) else used  # such as by functools.cache
        if inspect.isfunction(used) or isinstance(used, type):
            if used.__module__ == value.__module__:
                yield from _parts(vars(used).get("written_as", used), seen)
            continue
        is_own, kind = type(used).__module__ == value.__module__, type(used)
        if is_own and kind.__name__ not in seen:
            yield from _parts(kind, seen)
        try:
            content = msgspec.json.encode(used, enc_hook=partial(_content, value.__module__), order="deterministic")
            yield f"{name}={content!r}", ""
        except Exception:  # no plain value
            is_imported = callable(used) or isinstance(used, ModuleType) or kind.__module__ in ("typing", "logging")
            if is_own or not is_imported:
                text = f"{value.__name__} uses {name}, whose content cannot be seen: a change in it is not measured "
                text += "anew. Give it as a parameter, or as plain values"
                code = functions[0].__code__
                warnings.warn_explicit(text, UserWarning, code.co_filename, code.co_firstlineno, registry=_TOLD)


_TOLD = dict[Any, Any]()  # what was said of objects that cannot be seen, so that it is said once


def _content(module: str, value: Any) -> object:
    """Return what stands for an object in a digest. Raises TypeError for a class that the module does not define."""
    if isinstance(value, re.Pattern):
        return value.pattern, value.flags
    if inspect.isfunction(value) or isinstance(value, type):
        return code_of(value).digest
    if type(value).__module__ != module:
        raise TypeError(f"{type(value).__name__} is not defined here")
    return code_of(type(value)).digest, vars(value)


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
