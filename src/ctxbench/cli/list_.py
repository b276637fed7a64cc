"""`ctxbench list`: names for the command line (strategies, scenarios, metrics …), explained."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING
from functools import cache
from importlib.metadata import distributions
from importlib.resources import files
from inspect import getdoc
from shutil import get_terminal_size
from textwrap import fill, indent, shorten
from typing import Any, get_type_hints

import msgspec
import typer

from ctxbench.scenarios.errors import SpecError

from .streams import command, say

KINDS = ("strategies", "scenarios", "formats", "metrics", "encodings", "prices", "caches", "evidence")
Entry = dict[str, Any]
"""A listed thing: `written` is its name with its parameters. A field that it has not is absent."""


def list_(what: str = "strategies", name: str | None = None, *, as_json: bool = False) -> None:
    """List strategies, scenarios, recorded formats, metrics, encodings, models' prices, prompt caches or published
    live runs, or explain one of them.

    Args:
        what (WHAT): What to list: strategies, scenarios, formats, metrics, encodings, prices, caches, evidence; or the
            name of one thing, whatever its kind.
        name (NAME): The one to explain, such as a strategy with its parameters. For prices, a part of the model's name;
            for caches, a model; for evidence, a family of strategies. [default: all]
    """
    from ctxbench.scenarios.spec import suggestion

    if what not in KINDS and name is None:
        what, name = _kind_of(what), what
    elif what not in KINDS:
        raise SpecError(f"{what!r} cannot be listed{suggestion(what, dict.fromkeys(KINDS))}")
    if what == "strategies" and name is None and not as_json:
        _print_strategies(_strategies(in_brief=True))
        return
    if what in ("prices", "caches", "evidence"):
        from . import price_list  # numpy and pandas, which --help must not import

        getattr(price_list, f"print_{what}")(name, as_json)
        return
    rows = {name: _strategy(name)} if name is not None and what == "strategies" else _rows(what)
    if name is not None:
        if name not in rows:
            raise SpecError(f"unknown {what.rstrip('s')} {name!r}{suggestion(name, rows)}")
        rows = {name: rows[name]}
    elif what != "strategies" and what != "metrics":
        shown = {row["written"]: row["about"] for row in rows.values()} if what == "formats" else rows
        rows = dict(sorted(shown.items()))
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(rows, enc_hook=repr), indent=2).decode())
        return
    for row_name, row in rows.items():
        entry = row if isinstance(row, dict) else {"written": row_name, "about": row}
        typer.secho(entry["written"], bold=True)
        if name is not None and isinstance(row, dict):
            _explain(entry)
        else:
            for line in _lines(entry):
                typer.echo(fill(line, 96, initial_indent="    ", subsequent_indent="    "))


def _kind_of(name: str) -> str:
    """Return the kind of what has a name, and say which other kinds have one of that name. Raises SpecError."""
    from ctxbench.metrics.cache.rules import rules_of
    from ctxbench.metrics.evidence import FAMILIES
    from ctxbench.metrics.models import model_names
    from ctxbench.scenarios.spec import nearest
    from ctxbench.strategies import plugins

    names = {kind: set(_rows(kind)) for kind in KINDS[:-3]} | {"caches": {name} if rules_of(name) else set()}
    names |= {"prices": {name for model in model_names() if name.casefold() in model}, "evidence": set(FAMILIES)}
    kinds = [kind for kind in KINDS if name in names[kind]]
    if not kinds and not plugins.is_file(name):
        known = dict.fromkeys({*KINDS, *model_names()}.union(*names.values()))
        more = nearest(name, known) or f": ctxbench list KIND lists all, of {', '.join(KINDS)}"
        raise SpecError(f"nothing is called {name!r}{more}")
    for other in kinds[1:]:
        say(f"see also: {command('list', other, name)}")
    return kinds[0] if kinds else "strategies"


def _rows(what: str) -> Mapping[str, Any]:
    """Return every row by its name: an entry, or only a text about it."""
    if what in ("strategies", "formats"):
        return _strategies() if what == "strategies" else _formats()
    from ctxbench.metrics.figures import BILLED, METRICS
    from ctxbench.metrics.tokens import ENCODINGS
    from ctxbench.scenarios.embedded import SCENARIOS

    if what != "metrics":
        return SCENARIOS if what == "scenarios" else ENCODINGS
    rows = {}
    for key, metric in {**METRICS, **{f"{key}(MODEL)": metric for key, metric in BILLED.items()}}.items():
        about = metric.about + (f" ({metric.better} is better)" if metric.better else "")
        rows[key] = {"written": f"{key}: {metric.name}", "name": metric.name, "about": about}
    return rows


def _strategies(in_brief: bool = False) -> dict[str, Entry]:
    """Return strategies, recipes, and plug-ins that cannot be loaded, by name; in brief, as a table has ours: none is
    imported."""
    from ctxbench.strategies.chain import NAMED, RECIPES, strategies

    text, kinds, rows = files(__package__).joinpath("data/strategies.toml"), strategies(), dict[str, Entry]()
    told = tomllib.loads(text.read_text("utf-8")) if in_brief else {}
    for name in list(kinds.data):
        if name in told and (point := kinds.points[name]).module.startswith("ctxbench."):
            needed = told[name].get("library")
            rows[name] = told[name] | {"group": _group(point.module)}
            rows[name]["installed"] = needed is None or any(distributions(name=needed))
        elif name in kinds:
            rows[name] = _entry(name, kinds[name])
    for name, recipe in NAMED.items():
        entry = {"written": f"{name} = {recipe.chain}", "group": _CHAINS if name in RECIPES else _DOCUMENTS}
        rows.setdefault(name, entry | {key: getattr(recipe, key) for key in ("chain", "about", "fails")})
    for name, why in kinds.errors.items():
        rows[name] = {"written": name, "group": _BROKEN, "about": f"cannot be used: {why}"}
    return rows


def _print_strategies(rows: Mapping[str, Entry]) -> None:
    """Print a line per strategy under the heading of its group: its name, and the first sentence about it."""
    columns = get_terminal_size((120, 24)).columns
    for group in _GROUPS:
        names = [name for name, row in rows.items() if row["group"] == group]
        if not names:
            continue
        typer.secho(group, bold=True)
        width = max(map(len, names))
        for name in names:
            row = rows[name]
            about = row["about"].split(". ")[0].rstrip(".")
            needs = "" if row.get("installed", True) else f" [{row['extra']}]"
            line = shorten(about, max(columns - width - 4 - len(needs), 24), placeholder=" …") + needs
            typer.echo(f"  {name:{width}}  {line}")
        typer.echo()
    if any(not row.get("installed", True) for row in rows.values()):
        typer.echo("[adapter-…]: its library is not installed: pip install 'ctxbench[adapter-…]'")
    typer.echo("Parameters, and when a strategy fails: ctxbench list strategies NAME")


_OURS, _BOUNDS = "Strategies", "Baseline and bounds"
_PROVIDERS, _AGENTS = "What providers do themselves", "What agents do themselves"
_LIBRARIES, _PACKAGES, _BROKEN = "Of other libraries", "Of your packages", "Cannot be used"
_CHAINS, _DOCUMENTS = "Chains with a name", "Variants of the design documents, and other settings with a name"
_GROUPS = (_OURS, _BOUNDS, _CHAINS, _PROVIDERS, _AGENTS, _LIBRARIES, _DOCUMENTS, _PACKAGES, _BROKEN)
_OF_MODULE = {"bounds": _BOUNDS, "providers": _PROVIDERS, "agents": _AGENTS, "adapters": _LIBRARIES}


def _group(module: str) -> str:
    """Return the heading under which a strategy of a module stands."""
    package, _, rest = module.partition(".strategies.")
    return _OF_MODULE.get(rest.partition(".")[0], _OURS) if package == "ctxbench" else _PACKAGES


def _entry(name: str, kind: type[Any]) -> Entry:
    """Return what the list says of a strategy."""
    group = _group(kind.__module__)
    about = " ".join((getdoc(kind) or "").split("\n\n")[0].split())
    entry = {"written": _signature(name, kind), "group": group, "about": about, "parameters": _defaults(kind)}
    entry |= {key: getattr(kind, key) for key in ("source", "fails", "family", "extra") if hasattr(kind, key)}
    entry |= {"have": _have()[name]} if name in _have() else {}
    return entry | ({"installed": any(distributions(name=kind.library))} if "extra" in entry else {})


@cache
def _have() -> dict[str, str]:
    """Return how to have each strategy in an application, by name."""
    return tomllib.loads(files("ctxbench.reports").joinpath("have.toml").read_text("utf-8"))


def _strategy(name: str) -> Entry:
    """Return the details of a strategy, a recipe with its stages, or a strategy in a file. Raises SpecError."""
    from ctxbench.scenarios.spec import calls, suggestion
    from ctxbench.strategies import plugins
    from ctxbench.strategies.chain import strategies

    if plugins.is_file(name):
        kind = plugins.load(name)
        return _entry(name, kind) | _explained(kind)
    rows = _strategies()
    if name not in rows:
        raise SpecError(f"unknown strategy {name!r}{suggestion(name, rows)}")
    if name in strategies():
        return rows[name] | _explained(strategies()[name])
    if "chain" not in rows[name]:
        return rows[name]
    stages = dict.fromkeys(call.name for call in calls(rows[name]["chain"], "strategy"))
    return rows[name] | {"stages": {stage: _strategy(stage) for stage in stages}}


def _explained(kind: type[Any]) -> Entry:
    """Return a class's whole docstring and the types of its parameters."""
    from ctxbench.scenarios.spec import parameters, type_text

    hints, names = get_type_hints(kind), [parameter.name for parameter in parameters(kind)]
    return {"doc": getdoc(kind) or "", "types": {name: type_text(hints[name]) for name in names}}


def _explain(row: Entry) -> None:
    """Print all details of a row, for a recipe those of its stages too."""
    first = (row.get("doc") or row["about"]).split("\n\n", 1)
    typer.echo(indent(first[0] if "doc" in row else fill(first[0], 116), "    "))
    for line in _lines(row)[1:]:
        typer.echo(fill(line, 120, initial_indent="    ", subsequent_indent="    "))
    if len(first) > 1:
        typer.echo("\n" + indent(first[1], "    "))
    if row.get("types"):
        typer.echo("\n    Parameters")
        for name, kind in row["types"].items():
            default = row["parameters"][name]
            typer.echo(f"      {name}: {kind}" + (" (required)" if default == "required" else f" = {default!r}"))
    for stage in row.get("stages", {}).values():
        typer.echo()
        typer.secho(stage["written"], bold=True)
        _explain(stage)


_FACTS = {
    "source": "From {}.",
    "fails": "Fails when {}.",
    "family": "Published live runs of its kind: ctxbench list evidence {}.",
    "have": "In an application: {}.",
    "extra": "Needs pip install 'ctxbench[{}]'.",
    "kept": "Kept in {}",
    "checked": "Checked with {}.",
    "export": "To export: {}",
}


def _lines(row: Entry) -> list[str]:
    """Return what a strategy does, where it comes from, and when it fails."""
    lines = [row["about"]]
    for key, words in _FACTS.items():
        values = row.get(key) or []
        lines += [words.format(value) for value in (values if isinstance(values, list) else [values])]
    return lines


def _defaults(kind: type[Any]) -> dict[str, object]:
    """Return the default of each parameter, or "required"."""
    from ctxbench.scenarios.spec import parameters

    defaults = {field.name: field.default for field in parameters(kind)}
    defaults |= {field.name: made() for field in parameters(kind) if (made := field.default_factory) is not MISSING}
    return {name: "required" if default is MISSING else default for name, default in defaults.items()}


def _formats() -> dict[str, Entry]:
    """Return the recorded formats by name, each with the options of its reader, its folders, and how to export it."""
    from ctxbench.scenarios.readers import readers

    from .configuration import known_agents

    exports = tomllib.loads(files(__package__).joinpath("data/exports.toml").read_text("utf-8"))
    agents = known_agents()
    return {
        name: Entry(
            written=_signature(name, kind),
            about=kind.about,
            checked=kind.checked,
            parameters=_defaults(kind),
            kept=[f"{agent.folder}/{agent.files}" for agent in agents if name.startswith(agent.reader)],
            export=exports.get(name, ""),
        )
        | _explained(kind)
        for name, kind in readers().items()
    }


def _signature(name: str, kind: type[Any]) -> str:
    """Return a name with its parameters: `window(max_tokens=None, reserve=0.1)`."""
    defaults = _defaults(kind).items()
    takes = [parameter if value == "required" else f"{parameter}={value!r}" for parameter, value in defaults]
    return f"{name}({', '.join(takes)})" if takes else name
