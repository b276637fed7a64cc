"""`ctxbench list`: what there is to name on the command line, and all that is known of one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field
from enum import StrEnum
from inspect import getdoc
from textwrap import fill, indent
from typing import Annotated, Any, get_type_hints

import typer


class What(StrEnum):
    """What can be listed."""

    strategies = "strategies"
    scenarios = "scenarios"
    formats = "formats"
    metrics = "metrics"
    encodings = "encodings"
    prices = "prices"


def list_(
    what: Annotated[str, typer.Argument(metavar="WHAT", help=f"What to list: {', '.join(What)}.")] = What.strategies,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="One of them, explained: a strategy with its parameters. Of prices, a part of the model's name.",
            show_default="all",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List strategies, scenarios, recorded formats, metrics, encodings or models' prices, or explain one of them."""
    kind = _what(what)
    if kind is What.prices:
        from .price_list import print_prices

        print_prices(name, as_json)
        return
    rows = _all(kind) if name is None else {name: _one(kind, name)}
    if as_json:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(rows, enc_hook=repr), indent=2).decode())
        return
    for each, said in rows.items():
        typer.secho(said["written"] if isinstance(said, dict) else each, bold=True)
        if name is not None and isinstance(said, dict):
            _explain(said)
            continue
        for line in _lines(said) if isinstance(said, dict) else [said]:
            typer.echo(fill(line, 96, initial_indent="    ", subsequent_indent="    "))


def _what(text: str) -> What:
    from ...scenarios.errors import SpecError
    from ...scenarios.spec import meant

    known = {str(each): each for each in What}
    if text not in known:
        raise SpecError(f"{text!r} cannot be listed{meant(text, known)}")
    return known[text]


def _all(what: What) -> dict[str, Any]:
    """Every row by its name, in the order in which they are shown."""
    if what is What.strategies:
        return _strategies()
    rows = {row["written"]: row["about"] for row in _formats().values()} if what is What.formats else _rows(what)
    return rows if what is What.metrics else dict(sorted(rows.items()))


def _one(what: What, name: str) -> Any:
    """All that is known of one. Raises SpecError with the nearest names."""
    from ...scenarios.errors import SpecError
    from ...scenarios.spec import meant

    if what is What.strategies:
        return _strategy(name)
    known = _formats() if what is What.formats else _rows(what)
    if name not in known:
        raise SpecError(f"unknown {what.value.rstrip('s')} {name!r}{meant(name, known)}")
    return known[name]


def _strategies() -> dict[str, dict[str, Any]]:
    """Strategies, recipes, and plug-ins that cannot be loaded, by name, with what is known of each."""
    from ...strategies.chain import broken, strategies
    from ...strategies.recipes import NAMED

    found: dict[str, dict[str, Any]] = {}
    for name, kind in strategies().items():
        found[name] = {"written": _signature(name, kind), "about": _first(kind), "parameters": _defaults(kind)}
        found[name] |= {key: getattr(kind, key) for key in ("source", "fails") if hasattr(kind, key)}
    for name, recipe in sorted(NAMED.items()):
        found.setdefault(name, {"written": f"{name} = {recipe.chain}", **recipe._asdict()})
    return found | {name: {"written": name, "about": f"cannot be used: {why}"} for name, why in broken().items()}


def _strategy(name: str) -> dict[str, Any]:
    """A strategy, a recipe with its stages, or a strategy in a file, explained. Raises SpecError."""
    from ...scenarios.errors import SpecError
    from ...scenarios.spec import calls, meant
    from ...strategies import plugins
    from ...strategies.chain import strategies

    if plugins.is_file(name):
        kind = plugins.load(name)
        row = {"written": _signature(name, kind), "about": _first(kind), "parameters": _defaults(kind)}
        return row | {key: getattr(kind, key) for key in ("source", "fails") if hasattr(kind, key)} | _explained(kind)
    known = _strategies()
    if name not in known:
        raise SpecError(f"unknown strategy {name!r}{meant(name, known)}")
    if name in strategies():
        return known[name] | _explained(strategies()[name])
    if "chain" not in known[name]:
        return known[name]
    stages = dict.fromkeys(call.name for call in calls(known[name]["chain"], "strategy"))
    return known[name] | {"stages": {stage: _strategy(stage) for stage in stages}}


def _explained(kind: type[Any]) -> dict[str, Any]:
    """A class's whole docstring, and what its parameters may be."""
    from ...scenarios.hints import written
    from ...scenarios.spec import parameters

    hints = get_type_hints(kind)
    types = {each.name: written(hints[each.name]) for each in parameters(kind)}
    return {"doc": getdoc(kind) or "", "types": types}


def _explain(said: Mapping[str, Any]) -> None:
    """Print all that is known of one: of a recipe, of each of its stages too."""
    first = said.get("doc", said["about"]).split("\n\n", 1)
    typer.echo(indent(first[0] if "doc" in said else fill(first[0], 116), "    "))
    for line in _lines(said)[1:]:
        typer.echo(fill(line, 120, initial_indent="    ", subsequent_indent="    "))
    if len(first) > 1:
        typer.echo("\n" + indent(first[1], "    "))
    if said.get("types"):
        typer.echo("\n    Parameters")
        for name, kind in said["types"].items():
            default = said["parameters"][name]
            typer.echo(f"      {name}: {kind}" + (" (required)" if default == "required" else f" = {default!r}"))
    for stage in said.get("stages", {}).values():
        typer.echo()
        typer.secho(stage["written"], bold=True)
        _explain(stage)


def _lines(said: Mapping[str, Any]) -> list[str]:
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


def _defaults(kind: type[Any]) -> dict[str, Any]:
    from ...scenarios.spec import parameters

    return {each.name: _default(each) for each in parameters(kind)}


def _formats() -> dict[str, dict[str, Any]]:
    """The recorded formats by name, each with what its reader's options are."""
    from ...scenarios.readers import readers

    return {
        name: {"written": _signature(name, kind), "about": kind.about, "parameters": _defaults(kind)} | _explained(kind)
        for name, kind in readers().items()
    }


def _rows(what: What) -> dict[str, Any]:
    match what:
        case What.scenarios:
            from ...scenarios.embedded import SCENARIOS

            return dict(SCENARIOS)
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
    takes = [each if value == "required" else f"{each}={value!r}" for each, value in _defaults(kind).items()]
    return f"{name}({', '.join(takes)})" if takes else name


def _first(kind: type[Any]) -> str:
    """The first paragraph of a class's docstring, in one line."""
    return " ".join((getdoc(kind) or "").split("\n\n")[0].split())
