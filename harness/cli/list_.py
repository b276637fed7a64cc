"""`ctxbench list`: what there is to name on the command line."""

from __future__ import annotations

from dataclasses import MISSING, fields
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
    rows = dict(sorted(_rows(what).items())) if what is not What.metrics else _rows(what)
    if as_json:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode())
        return
    for name, about in rows.items():
        typer.secho(name, bold=True)
        typer.echo(fill(about, 96, initial_indent="    ", subsequent_indent="    "))


def _rows(what: What) -> dict[str, str]:
    match what:
        case What.strategies:
            from ...strategies.chain import strategies

            return {_signature(name, kind): _first(kind) for name, kind in strategies().items()}
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
        case What.encodings:
            from ...metrics.tokens import ENCODINGS

            return dict(ENCODINGS)


def _signature(name: str, kind: type[Any]) -> str:
    """A name with its parameters: `window(max_tokens=None, reserve=0.1)`."""
    takes = [f.name if f.default is MISSING else f"{f.name}={f.default!r}" for f in fields(kind) if f.init]
    return f"{name}({', '.join(takes)})" if takes else name


def _first(kind: type[Any]) -> str:
    """The first paragraph of a class's docstring, in one line."""
    return " ".join((getdoc(kind) or "").split("\n\n")[0].split())
