"""`ctxbench lab survey`: strategies of libraries, providers and agents, beside some of ours, on the same recordings."""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from .arguments import AdapterPythonOption, JobsOption, JsonOption, MarkdownOption, OverwriteOption

if TYPE_CHECKING:
    from ctxbench.reports.survey import Survey

RECORDINGS = "CTXBENCH_RECORDINGS"


class Chosen(NamedTuple):
    """The strategies of a survey."""

    strategies: tuple[str, ...]
    sources: dict[str, str]
    """By strategy as text: what brings it, in words."""
    left_out: dict[str, str]
    """By name: why a strategy cannot run here."""


def survey(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[PATH]...",
            help="Recordings.",
            show_default=f"openhands, mini-swe-agent and tau-bench below ${RECORDINGS}",
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="The run folder, where a stopped survey goes on.")
    ] = Path("runs/survey"),
    jobs: JobsOption = 1,
    overwrite: OverwriteOption = False,
    adapter_python: AdapterPythonOption = None,
    markdown: MarkdownOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run the strategies of all installed libraries, of providers, of agents and some of ours, and print one table.

    Libraries that are not installed are left out and named. Each strategy is measured over the conversations that it
    finished.
    """
    from ctxbench.reports.survey import as_json as exact
    from ctxbench.reports.survey import tables
    from ctxbench.scenarios.errors import UserError

    from .output import print_json, print_tables, write_markdown

    if as_json and markdown is not None:
        raise UserError("give --json or --markdown, not both")
    measured = _measured(paths or _sample_recordings(), out, jobs, overwrite, adapter_python or ())
    if as_json:
        print_json(exact(measured))
    elif markdown is not None:
        write_markdown(tables(measured), markdown)
    else:
        print_tables(tables(measured))


def _settings() -> dict[str, Any]:
    return tomllib.loads((files(__package__) / "data/survey.toml").read_text("utf-8"))


def _sample_recordings() -> list[Path]:
    """Return the folders of the sample recordings. Raises RunError where they are not."""
    from ctxbench.scenarios.errors import RunError

    folder = Path(os.environ.get(RECORDINGS) or "../shared/data")
    paths = [folder / name for name in _settings()["recordings"]]
    if missing := [path for path in paths if not path.is_dir()]:
        raise RunError(f"{missing[0]}: no sample recordings are here: name recordings, or set {RECORDINGS}")
    return paths


def choose() -> Chosen:
    """Return our strategies of the survey, then all others by name, each with its settings."""
    from ctxbench.scenarios.errors import MissingExtra
    from ctxbench.strategies.chain import parse, spec, strategies

    settings = _settings()
    sources = {spec(parse(text)): "ctxbench" for text in settings["ours"]}
    left_out: dict[str, str] = {}
    for name, kind in sorted(strategies().items()):
        library = getattr(kind, "library", "")
        if library or kind.__module__.split(".")[-2] in ("providers", "agents"):
            for parameters in settings["settings"].get(name, ("",)):
                try:
                    sources[spec(parse(f"{name}({parameters})"))] = library or "documentation"
                except MissingExtra as error:
                    left_out[name] = str(error)
    return Chosen(tuple(sources), sources, left_out)


def _measured(paths: list[Path], out: Path, jobs: int, overwrite: bool, pythons: Sequence[str]) -> Survey:
    from ctxbench.harness.compare.figures import measured
    from ctxbench.harness.engine.plan import Plan, RunInputs, execute
    from ctxbench.harness.folder.run import load
    from ctxbench.reports.survey import Survey
    from ctxbench.strategies.chain import use_pythons

    from .progress import watching
    from .streams import say

    model = _settings()["model"]
    # Standard output is for figures, whatever a library prints.
    with redirect_stdout(sys.stderr), watching() as watcher:
        use_pythons(pythons)
        chosen = choose()
        plan = Plan(RunInputs(tuple(map(str, paths))), chosen.strategies, probes=False, answers=False)
        execute(plan, out, jobs=jobs or os.cpu_count() or 1, overwrite=overwrite, watcher=watcher)
    for line in _lines(chosen.left_out):
        say(line)
    run = load(out)
    figures = measured(run, [model], clock=True)
    versions = run.manifest.versions
    brought = {
        text: versions.get(f"strategy {text.partition('(')[0]}", source) for text, source in chosen.sources.items()
    }
    return Survey(run, figures, model, brought, tuple(path.name for path in paths), tuple(_lines(chosen.left_out)))


def _lines(left_out: dict[str, str]) -> Iterator[str]:
    yield from (f"left out: {name}: {why}" for name, why in left_out.items())
