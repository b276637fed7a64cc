"""Attack every regular expression of the packages: does its time grow with the square of a text, or faster?

A text repeats what one of the pattern's own loops takes, after what stands before the loop. `patterns.toml` says why a
slow pattern sees no long text of others.
"""

import ast
import pkgutil
import re
import signal
import time
import tomllib
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import islice
from pathlib import Path
from re import _compiler, _parser  # type: ignore[attr-defined]
from re import _constants as op  # type: ignore[attr-defined]
from typing import Any

import ctxbench

from .bits import Tally

EXCUSED: dict[str, str] = tomllib.loads(Path(__file__).with_name("patterns.toml").read_text("utf-8"))
MOST_TEXTS, SHORT, LONG, TOO_LONG = 200, 512, 2048, 0.5  # of a pattern; characters; seconds
_LOOPS = (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT)
_GROUPS = (op.SUBPATTERN, op.ATOMIC_GROUP, op.ASSERT, op.ASSERT_NOT)
_CHARACTERS = "a1 .\n\"'(_-中A,:?是"


def patterns() -> dict[str, tuple[re.Pattern[Any], str]]:
    """Map names of the packages' patterns to them, and to the method that is called of each: the slowest."""
    found: dict[str, tuple[re.Pattern[Any], str]] = {}

    def look(name: str, value: Any, source: str, depth: int = 4) -> None:
        if type(value).__name__ == "_Regex":  # compiled when it is first used
            value = re.compile(*value._written)
        if isinstance(value, re.Pattern) and all(value is not known for known, _ in found.values()):
            verbs = set(re.findall(rf"\b{re.escape(name.rpartition('.')[2])}\.(\w+)\(", source)) or {"findall"}
            verb = "search" if "search" in verbs else "match"
            found[name.removeprefix("ctxbench.")] = value, verb if verbs <= {"match", "fullmatch", verb} else "findall"
        elif depth and isinstance(value, dict | list | tuple):
            for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
                look(f"{name}[{key}]", inner, "", depth - 1)
        elif depth and type(value).__module__.startswith("ctxbench"):
            for field in getattr(value, "__match_args__", ()):
                look(f"{name}[{field}]", getattr(value, field, None), "", depth - 1)

    for info in pkgutil.walk_packages(ctxbench.__path__, "ctxbench."):
        module = import_module(info.name)
        source = Path(str(module.__file__)).read_text("utf-8")
        for name, value in list(vars(module).items()):
            if isinstance(value, re.Pattern) or not callable(value):
                look(f"{info.name}.{name}", value, source)
        for node in ast.walk(ast.parse(source)):
            match node:
                case ast.Call(ast.Attribute(ast.Name("re"), verb), [ast.Constant(text), *_]) if verb not in (
                    "compile",
                    "escape",
                ):
                    flags = re.MULTILINE if "re.MULTILINE" in ast.unparse(node) else 0
                    look(f"{info.name}: {text}", re.compile(text, flags), "")
    return found


def _example(tree: Any, choice: int = 0, times: int = 1) -> str:
    """Return a text that a part of a pattern may take. `choice` is which of the alternatives, and characters."""
    text = ""
    for at, (kind, value) in enumerate(tree):
        if kind in _LOOPS:
            text += _example(value[2], choice, times) * max(value[0], min(times, value[1]))
        elif kind is op.BRANCH:
            text += _example(value[1][choice % len(value[1])], choice, times)
        elif kind in _GROUPS[:2]:
            text += _example(value[3] if kind is op.SUBPATTERN else value, choice, times)
        elif kind is op.LITERAL:
            text += chr(value)
        elif kind not in (*_GROUPS, op.AT, op.GROUPREF, op.GROUPREF_EXISTS):
            takes = _compiler.compile(tree[at : at + 1], tree.state.flags & ~re.ASCII & ~re.DEBUG)
            some = [*islice(filter(takes.fullmatch, f"{_CHARACTERS}{tree.state.str}"), 6)]
            text += some[choice % len(some)] if some else ""
    return text


def _loops(tree: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """Yield what stands before each loop of a pattern, and what the loop takes."""
    for at, (kind, value) in enumerate(tree):
        if kind in _LOOPS:
            if value[1] > 20:
                yield from ((before, _example(value[2], choice)) for choice in range(4))
                yield before, _example(value[2]) + _example(tree[at + 1 :])
            yield from _loops(value[2], before)
        elif kind is op.BRANCH:
            for branch in value[1]:
                yield from _loops(branch, before)
        elif kind in _GROUPS:
            yield from _loops(value if kind is op.ATOMIC_GROUP else value[-1], before)
        before += _example(tree[at : at + 1])


def _texts(pattern: re.Pattern[Any]) -> list[tuple[str, str, str]]:
    """Return what texts begin with, what is repeated in them, and what they end with."""
    tree = _parser.parse(pattern.pattern, pattern.flags)
    loops = list(dict.fromkeys(_loops(tree)))
    parts = [part for _, part in loops] + [_example(tree, choice, times) for choice in range(4) for times in (0, 1, 2)]
    texts = [(before, part, end) for before, part in loops for end in ("", "\0")]
    texts += [("", before + part, "") for before, part in loops]
    texts += [("", part, end) for part in (*parts, *_CHARACTERS, "a ", "a.", ' "a', " \n") for end in ("", "\n\0")]
    return [text for text in dict.fromkeys(texts) if text[1]][:MOST_TEXTS]


def _seconds(work: Callable[[Any], object], text: str | bytes) -> float:
    def stop(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, 4 * TOO_LONG)
    begun = time.process_time()
    try:
        work(text)
    except TimeoutError:
        return 4 * TOO_LONG
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return time.process_time() - begun


def slow_text(pattern: re.Pattern[Any], method: str) -> str:
    """Return a text with which the time of a method grows at least as the square; empty if there is none."""
    work = getattr(pattern, method)
    for before, part, end in _texts(pattern):
        texts = (before + part * max(1, size // len(part)) + end for size in (SHORT, LONG, 2 * LONG))
        short, long, longer = (
            text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text for text in texts
        )
        if (first := _seconds(work, short)) > TOO_LONG or (
            first > 2e-5
            and (second := _seconds(work, long)) > max(1e-3, 8 * first)
            and _seconds(work, longer) > 3 * second
        ):
            return f"{before!r} + {part!r} * n + {end!r}"
    return ""


def attack_patterns() -> Tally:
    """Attack every pattern. One that is slow and not excused falls, and an excuse of one that is not there."""
    found = patterns()
    tally = Tally(fell=[f"{name}: is excused, and not there" for name in EXCUSED.keys() - found.keys()])
    for name, (pattern, method) in found.items():
        tally.tried += 1
        slow = "" if name in EXCUSED else slow_text(pattern, method)
        tally.held["excused" if name in EXCUSED else "linear"] += not slow
        tally.fell += [f"{name}: {slow}"] * bool(slow)
    return tally
