"""A copy of a view: what `start` returned, with all that it has come to know, going on for itself.

A view is a function or an object that keeps what it knows in closures and attributes. The copy has its own of
everything that can change, and shares what cannot: messages, texts, numbers, classes, functions without a closure. What
this cannot see into (a lock, a connection, an iterator) it refuses. A type says with `__deepcopy__` that it knows
better. A strategy whose state is copied so declares `copyable`; the law `a_question_leaves_no_trace` checks it.
"""

from __future__ import annotations

import re
import types
from array import array
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Collection, Mapping
from copy import copy
from enum import Enum
from functools import _lru_cache_wrapper, cache, partial
from operator import attrgetter, is_, itemgetter
from typing import Any

import msgspec
import numpy as np

from ...scenarios.view import Messages
from ...strategies.base import Misfit, View, described

_SHARED = (
    *(int, float, complex, str, bytes, type(None), type(...), range, slice, type, np.generic, np.dtype, Enum),
    *(types.ModuleType, types.MethodDescriptorType, types.WrapperDescriptorType, re.Pattern, Messages),
    *(itemgetter, attrgetter),
)
_DICTS = (dict, defaultdict, OrderedDict, Counter)


class Copier:
    """Makes copies. Tuples that hold nothing that changes are known to it from one copy to the next."""

    __slots__ = ("_fixed",)

    def __init__(self) -> None:
        self._fixed: dict[int, object] = {}

    def copied(self, view: View, instead: Mapping[int, object]) -> View:
        """A view that goes on as this one would. `instead` has what the copy is given for others, by their ids.

        Raises Misfit for what cannot be copied.
        """
        made: View = _Copying(instead, self._fixed).of(view)
        return made


class _Copying:
    """One copy. What is met twice is copied once."""

    __slots__ = ("_fixed", "_kept", "_made")

    def __init__(self, instead: Mapping[int, object], fixed: dict[int, object]) -> None:
        self._made: dict[int, Any] = dict(instead)
        self._fixed = fixed
        """Tuples that need no copy, by their ids. They are kept, so that no other value has the id."""
        self._kept: list[object] = []
        """What was copied, kept for the same reason."""

    def of(self, value: Any) -> Any:
        kind: Any = type(value)
        known = self._made.get(id(value))
        if known is not None:
            return known
        if _IS_SHARED[kind] or id(value) in self._fixed:
            return value
        self._kept.append(value)
        if kind is tuple or (issubclass(kind, tuple) and hasattr(kind, "_fields")):
            return self._tuple(value, kind)
        if kind in (list, deque):
            return self._listed(value)
        if kind in _DICTS:
            return self._dict(value)
        if kind in (set, frozenset):
            return self._known(value, kind(value) if self._are_shared(value) else kind(map(self.of, value)))
        if kind is bytearray or kind is array:
            return self._known(value, copy(value))
        return self._behaving(value, kind)

    def _behaving(self, value: Any, kind: Any) -> Any:
        """A function or an object."""
        if kind is types.FunctionType:
            return self._function(value)
        if kind is types.MethodType:
            return self._known(value, types.MethodType(value.__func__, self.of(value.__self__)))
        if kind in (types.BuiltinFunctionType, types.MethodWrapperType):
            return self._builtin(value)
        if kind is types.CellType:
            return self._cell(value)
        if kind is partial:
            keywords = {name: self.of(each) for name, each in value.keywords.items()}
            return self._known(value, partial(self.of(value.func), *map(self.of, value.args), **keywords))
        if kind is _lru_cache_wrapper:
            if self.of(value.__wrapped__) is not value.__wrapped__:
                raise _refused(value)
            return value
        if hasattr(kind, "__deepcopy__"):
            return self._known(value, value.__deepcopy__({}))
        return self._object(value, kind)

    def _known(self, value: object, made: Any) -> Any:
        self._made[id(value)] = made
        return made

    def _are_shared(self, values: Collection[Any]) -> bool:
        """Whether none of these needs a copy."""
        fixed = self._fixed
        kinds = set(map(type, values))
        changing = [kind for kind in kinds if not _IS_SHARED[kind]]
        if not changing or not fixed:
            return not changing
        those = values if len(changing) == len(kinds) else (each for each in values if type(each) in changing)
        return all(map(fixed.__contains__, map(id, those)))

    def _tuple(self, value: Any, kind: Any) -> Any:
        made = [self.of(each) for each in value]
        if all(map(is_, made, value)):
            self._fixed[id(value)] = value
            return value
        return self._known(value, kind(*made) if kind is not tuple else tuple(made))

    def _listed(self, value: Any) -> Any:
        made = self._known(value, copy(value))
        if not self._are_shared(value):
            made.clear()
            made.extend(map(self.of, value))
        return made

    def _dict(self, value: Any) -> Any:
        made = self._known(value, copy(value))
        if not (self._are_shared(value) and self._are_shared(value.values())):
            made.clear()
            made.update((self.of(key), self.of(each)) for key, each in value.items())
        return made

    def _function(self, value: types.FunctionType) -> Any:
        if not value.__closure__:
            return value
        cells = tuple(self.of(cell) for cell in value.__closure__)
        made = types.FunctionType(value.__code__, value.__globals__, value.__name__, value.__defaults__, cells)
        made.__kwdefaults__ = value.__kwdefaults__
        return self._known(value, made)

    def _builtin(self, value: Any) -> Any:
        """A builtin function, or the method of a list and its like."""
        held = value.__self__
        if held is None or isinstance(held, types.ModuleType) or self.of(held) is held:
            return value
        return self._known(value, getattr(self.of(held), value.__name__))

    def _cell(self, value: types.CellType) -> Any:
        made = self._known(value, types.CellType())
        try:
            found = value.cell_contents
        except ValueError:  # a name that has no value yet
            return made
        made.cell_contents = self.of(found)
        return made

    def _object(self, value: Any, kind: Any) -> Any:
        names = _slots(kind)
        if not (names or hasattr(value, "__dict__") or _is_empty(kind)):
            raise _refused(value)
        try:
            made = self._known(value, object.__new__(kind))
        except TypeError:
            raise _refused(value) from None
        for name in names:
            try:
                each = getattr(value, name)
            except AttributeError:  # it has none yet
                continue
            object.__setattr__(made, name, each if _IS_SHARED[type(each)] else self.of(each))
        for name, each in getattr(value, "__dict__", {}).items():
            made.__dict__[name] = self.of(each)
        return made


class _Kinds(dict[type, bool]):
    """Of each type, whether what is of it never changes."""

    def __missing__(self, kind: type) -> bool:
        frozen = issubclass(kind, msgspec.Struct) and kind.__struct_config__.frozen
        self[kind] = frozen or issubclass(kind, _SHARED)
        return self[kind]


_IS_SHARED = _Kinds()


@cache
def _slots(kind: type) -> tuple[str, ...]:
    """The names of all slots, as they are stored."""
    found = []
    for each in kind.__mro__:
        slots = each.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            private = name.startswith("__") and not name.endswith("__")
            if name not in ("__dict__", "__weakref__"):
                found.append(f"_{each.__name__.lstrip('_')}{name}" if private else name)
    return tuple(found)


def _refused(value: object) -> Misfit:
    return Misfit(f"{described(value)} cannot be copied: a strategy that holds one is not `copyable`")


def _is_empty(kind: type) -> bool:
    """Whether its objects hold nothing: every class that it is made of says so."""
    return all("__slots__" in each.__dict__ for each in kind.__mro__ if each is not object)
