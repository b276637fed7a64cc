"""`ctxbench list`: what there is to name on the command line."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from enum import StrEnum
from inspect import getdoc
from textwrap import fill
from typing import Annotated, Any

import typer


class What(StrEnum):
    """What can be listed."""

    strategies = "strategies"
    scenarios = "scenarios"
    formats = "formats"
    metrics = "metrics"
    encodings = "encodings"


def list_(
    what: Annotated[What, typer.Argument(help="What to list.")] = What.strategies,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List strategies, scenarios, recorded formats, metrics or encodings."""
    rows = _strategies() if what is What.strategies else _rows(what)
    if what not in (What.strategies, What.metrics):
        rows = dict(sorted(rows.items()))
    if as_json:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode())
        return
    for name, said in rows.items():
        typer.secho(said["written"] if isinstance(said, dict) else name, bold=True)
        for line in _lines(said) if isinstance(said, dict) else [said]:
            typer.echo(fill(line, 96, initial_indent="    ", subsequent_indent="    "))


def _strategies() -> dict[str, Any]:
    """Strategies, recipes, and plug-ins that cannot be loaded, by name, with what is known of each."""
    from ...strategies.chain import broken, strategies
    from ...strategies.recipes import RECIPES

    found: dict[str, Any] = {}
    for name, kind in strategies().items():
        takes = {each.name: _default(each) for each in fields(kind) if each.init}
        found[name] = {"written": _signature(name, kind), "about": _first(kind), "parameters": takes}
        found[name] |= {key: getattr(kind, key) for key in ("source", "fails") if hasattr(kind, key)}
    for name, recipe in sorted(RECIPES.items()):
        found.setdefault(name, {"written": f"{name} = {recipe.chain}", **recipe._asdict()})
    return found | {name: {"written": name, "about": f"cannot be used: {why}"} for name, why in broken().items()}


def _lines(said: dict[str, Any]) -> list[str]:
    """What a strategy does, where it comes from, when it fails."""
    lines = [said["about"]]
    if said.get("source"):
        lines.append(f"From {said['source']}.")
    if said.get("fails"):
        lines.append(f"Fails when {said['fails']}.")
    return lines


def _default(field: Field[Any]) -> Any:
    """A parameter's default. What has none is a required one."""
    if field.default_factory is not MISSING:
        return field.default_factory()
    return "required" if field.default is MISSING else field.default


def _rows(what: What) -> dict[str, Any]:
    match what:
        case What.scenarios:
            from ...scenarios.embedded import SCENARIOS

            return dict(SCENARIOS)
        case What.formats:
            from ...scenarios.readers import readers

            return {_signature(name, kind): kind.about for name, kind in readers().items()}
        case What.metrics:
            from ...metrics.figures import METRICS

            return {
                name: f"{each.about}" + (f" ({each.better} is better)" if each.better else "")
                for name, each in METRICS.items()
            }
        case _:
            from ...metrics.tokens import ENCODINGS

            return dict(ENCODINGS)


def _signature(name: str, kind: type[Any]) -> str:
    """A name with its parameters: `window(max_tokens=None, reserve=0.1)`."""
    defaults = {each.name: _default(each) for each in fields(kind) if each.init}
    takes = [name if value == "required" else f"{name}={value!r}" for name, value in defaults.items()]
    return f"{name}({', '.join(takes)})" if takes else name


def _first(kind: type[Any]) -> str:
    """The first paragraph of a class's docstring, in one line."""
    return " ".join((getdoc(kind) or "").split("\n\n")[0].split())
