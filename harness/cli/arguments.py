"""Which run a command means when none is named."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...scenarios.errors import RunError
from .streams import say

if TYPE_CHECKING:
    from ..folder.run import Run


MODELS = ("claude-sonnet-5", "gpt-5.6", "gemini-2.5-pro")
"""Of three providers that cache by different rules: what a run is billed under unless other models are named."""


RunArgument = Annotated[
    Path, typer.Argument(help="The run folder.", metavar="RUN", show_default="the newest under runs/")
]


def chosen(folder: Path) -> Path:
    """The folder itself if it is a run, else the newest run in it, which is named on standard error."""
    if (folder / "manifest.json").exists() or not folder.is_dir():
        return folder
    found = sorted(folder.glob("*/manifest.json"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise RunError(f"{folder}: no run is here: make one with `ctxbench run`")
    say(f"{found[-1].parent}: the newest run in {folder}")
    return found[-1].parent


def conversation(run: Run, text: str) -> str:
    """The id that is meant by an id, or by a number in the list. An id that is a number comes first."""
    names = [str(name) for name in run.table("conversations").conversation]
    if text in names or not (text.isdecimal() and len(text) < 10 and 0 < int(text) <= len(names)):
        return text
    return names[int(text) - 1]


def probe(run: Run, conversation: str, text: str) -> int:
    """The number of the probe, from 0, that is meant by an id, or by a number in the list, from 1. An id comes first.

    Raises RunError with those that there are.
    """
    from ...scenarios.errors import RunError

    names = [each.id for each in run.conversation(conversation).probes]
    if text in names:
        return names.index(text)
    if text.isdecimal() and len(text) < 10 and 0 < int(text) <= len(names):
        return int(text) - 1
    if not names:
        raise RunError(f"{conversation!r} has no probes")
    some = ", ".join(names[:10]) + " …" * (len(names) > 10)
    raise RunError(f"{conversation!r} has no probe {text!r}; it has {some}, or their numbers, 1 to {len(names)}")


def strategy(run: Run, text: str | None) -> str:
    """The strategy of the run that is meant by its text, or by as much of it as tells it from the others.

    Without a text it is the first but none. Raises RunError with those that were run.
    """
    from ...scenarios.errors import RunError
    from ...scenarios.spec import nearest

    names: list[str] = run.manifest["plan"]["strategies"]
    if text is None:
        return next((name for name in names if name != "none"), names[0])
    exact = {text, _printed(text)}
    found = [name for name in names if name in exact] or [name for name in names if _part(text, name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise RunError(f"{run.folder}: {text!r} may be {' or '.join(found)}: write more of it")
    near = nearest(text, dict.fromkeys(names))
    raise RunError(f"{run.folder}: {text!r} was not run here; these were: {', '.join(names)}{near}")


def _printed(text: str) -> str:
    """A strategy's text as a run has it; empty if it is none, or one whose file is gone."""
    from ...scenarios.errors import SpecError
    from ...strategies.chain import parse, spec

    try:
        return spec(parse(text))
    except SpecError:
        return ""


def _part(text: str, name: str) -> bool:
    """Whether a text has the stages of a strategy, and no parameter that the strategy has not."""
    given, there = _stages(text), _stages(name)
    same = [stage for stage, _ in given] == [stage for stage, _ in there]
    pairs = zip(given, there, strict=False)
    return bool(given) and same and all(part.items() <= whole.items() for (_, part), (_, whole) in pairs)


def _stages(text: str) -> list[tuple[str, Mapping[str, object]]]:
    """The names of a chain's stages, those of files without digest, and their parameters; none if it cannot be read."""
    from ...scenarios.errors import SpecError
    from ...scenarios.spec import calls
    from ...strategies.plugins import quoted

    try:
        found = calls(quoted(text), "strategy")
    except SpecError:
        return []
    return [(call.name.partition("@")[0], dict(call.parameters)) for call in found]
