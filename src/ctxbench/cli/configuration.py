"""`ctxbench.toml`: defaults of options, for everybody who works in a folder; `ctxbench init` and `ctxbench config`.

The nearest `ctxbench.toml`, or `pyproject.toml` with a table `[tool.ctxbench]`, counts: of the working directory or a
folder above it. A few keys at the top say what several commands need; a table for each command holds its options. The
command line and the environment win over the file. A value is checked before any command begins.
"""

from __future__ import annotations

import inspect
import os
import re
import tomllib
from collections.abc import Iterator
from copy import copy
from enum import Enum
from importlib.resources import files
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

import msgspec
import typer

from ctxbench.scenarios.errors import Place, UserError
from ctxbench.scenarios.files import read_file
from ctxbench.scenarios.spec import nearest, suggestion

from . import completion
from .arguments import JsonOption
from .streams import command as command_line

FILE, PYPROJECT = "ctxbench.toml", "pyproject.toml"


_BILLED = ("run", "report", "view", "compare", "gate", "bill", "tune", "audit")
SHARED: dict[str, tuple[str, tuple[str, ...]]] = {
    "recordings": ("inputs", ("run", "tune")),
    "strategies": ("strategy", ("run",)),
    "model": ("model", (*_BILLED, "export mlflow", "export prometheus", "export wandb")),
    "window": ("window", ("run",)),
    "encoding": ("encoding", ("run",)),
    "policy": ("policy", ("gate",)),
    "adapter-python": ("adapter_python", ("run", "tune")),
}
"""Keys at the top of the file: the parameter that each sets, and the commands that have it. A command's table wins."""
VARIABLES = {"prices": "CTXBENCH_PRICES", "models": "CTXBENCH_MODELS", "tracking": "MLFLOW_TRACKING_URI"}
"""Keys at the top of the file that set a variable of the environment, if it is not set: they hold for every command."""

# They make the file, or show it.
_WITHOUT = ("init", "config")

Setting = tuple[str, str]
"""Path of a command, such as `export mlflow`, and the name of its parameter."""


def _has_table(text: str) -> bool:
    """Return whether a pyproject.toml has our table. One that is no TOML has none: that is not ours to say."""
    try:
        tool = tomllib.loads(text).get("tool")
    except tomllib.TOMLDecodeError:
        return bool(re.search(r"^\s*\[tool\.ctxbench[\].]", text, re.MULTILINE))
    return isinstance(tool, dict) and isinstance(tool.get("ctxbench"), dict)


def find(folder: Path) -> tuple[Path, str] | None:
    """Return the nearest file with settings, of a folder or those above it, with its text; None if there is none.

    Raises UserError for one that cannot be read.
    """
    for place in (folder, *folder.parents):
        for file in (place / FILE, place / PYPROJECT):
            try:
                text = read_file(file).decode("utf-8-sig").replace("\r\n", "\n")
            except (OSError, UnicodeDecodeError) as error:
                if file.name == PYPROJECT or isinstance(error, FileNotFoundError | NotADirectoryError):
                    continue
                if isinstance(error, UnicodeDecodeError):
                    raise UserError(f"{file}: not UTF-8: save it as UTF-8") from None
                raise UserError(f"{file}: cannot be read: {error.strerror or error}") from None
            # It may name code that is run, and a server that is sent texts: another user's is not asked.
            if os.name == "posix" and file.stat().st_uid not in (os.getuid(), 0):
                continue
            # A broken file of another project above is not ours to complain about.
            if file.name == FILE or _has_table(text):
                return file, text
    return None


def configuration(app: Any) -> Configuration | None:
    """Return what the nearest file sets, by the options of the program's commands; None if there is no file.

    Raises UserError, with file and line, for a key that there is not and for a value that cannot be.
    """
    try:
        folder = Path.cwd()
    except FileNotFoundError:  # it was removed
        return None
    found = find(folder)
    if found is None:
        return None
    file, text = found
    shown = Path(os.path.relpath(file, folder))
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{shown}: not TOML: {error}") from None
    prefix: tuple[str, ...] = ()
    if file.name == PYPROJECT:
        table, prefix = table["tool"]["ctxbench"], ("tool", "ctxbench")
    settings = Configuration(app, shown, text, prefix)
    for key, value in table.items():
        if key in app.commands:
            settings.command(app.commands[key], (key,), value)
        else:
            settings.shared(key, value)
    return settings


class Configuration:
    """A file with what it sets, checked as it is read."""

    def __init__(self, app: Any, file: Path, text: str, prefix: tuple[str, ...]) -> None:
        self.file = file
        self._app, self._lines_of_text, self._prefix = app, text.splitlines(), prefix
        self.values: dict[Setting, Any] = {}
        """Values by command and parameter."""
        self.lines: dict[Setting, int] = {}
        """Line of each value in the file; 0 = not known."""
        self.environment: dict[str, str] = {}
        """Variables that the file sets, by name."""

    def place(self, setting: Setting) -> str:
        """Return the file of a setting, with the line where it is known."""
        return str(Place(str(self.file), self.lines[setting]))

    @property
    def is_elsewhere(self) -> bool:
        """Whether the file is in a folder above the working directory."""
        return self.file.parent != Path()

    def default_map(self) -> dict[str, Any]:
        """Return the values as the command line takes them: a mapping for each command, nested like the commands."""
        root: dict[str, Any] = {}
        for (path, parameter), value in self.values.items():
            level = root
            for word in path.split():
                level = level.setdefault(word, {})
            level[parameter] = value
        return root

    def shared(self, key: str, value: Any) -> None:
        """Read a key at the top of the file."""
        if key in VARIABLES:
            if isinstance(value, dict) is not (key == "models"):
                what = "is a table of parameters of models" if key == "models" else f"must be text, not {value!r}"
                raise self._error((key,), what)
            if key == "models":
                value = ", ".join(f"{name}={parameter!r}" for name, parameter in value.items())
            self.environment[VARIABLES[key]] = self._located(str(value), Path if key == "prices" else str, "")
            self.lines["", VARIABLES[key]] = self._line((key,))
        elif key in SHARED:
            parameter, paths = SHARED[key]
            for path in paths:
                command = command_at(self._app, path)
                one = isinstance(value, list) and not _kind(command, parameter)[0]
                if (path, parameter) not in self.values:
                    self._set(command, path, parameter, (key,), value[0] if one and value else value)
        else:
            known = dict.fromkeys([*SHARED, *VARIABLES, *(name for name in self._app.commands if name not in _WITHOUT)])
            raise self._error((key,), f"there is no such key{suggestion(key, known)}")

    def command(self, command: Any, path: tuple[str, ...], table: Any) -> None:
        """Read the table of a command, or of a group with the tables of its commands."""
        if path[0] in _WITHOUT:
            raise self._error(path, "has no settings", "leave the table out")
        if not isinstance(table, dict):
            raise self._error(path, f"is a table of the options of `ctxbench {' '.join(path)}`", f"write [{path[-1]}]")
        inner = getattr(command, "commands", None)
        if inner is not None:
            for key, value in table.items():
                if key not in inner:
                    what = f"`ctxbench {' '.join(path)}` has no command {key!r}{suggestion(key, inner)}"
                    raise self._error((*path, key), what)
                self.command(inner[key], (*path, key), value)
            return
        names = parameters_of(command)
        for key, value in table.items():
            if key not in names:
                what = f"`ctxbench {' '.join(path)}` has no option {key!r}{nearest(key, names)}"
                raise self._error((*path, key), what, f"`ctxbench {' '.join(path)} --help` lists them")
            self._set(command, " ".join(path), names[key].name, (*path, key), value)

    def _set(self, command: Any, path: str, parameter: str, key: tuple[str, ...], value: Any) -> None:
        several, kind = _kind(command, parameter)
        wanted = _in_words(kind)
        # A policy that stands here as a table is read from this file by the gate.
        if parameter == "policy" and isinstance(value, dict):
            value = self.file.name
        items = value if isinstance(value, list) else [value]
        if isinstance(value, list) and not several:
            raise self._error(key, f"must be {wanted}, not a list", "give one value")
        # A window may be written as a number of tokens.
        if parameter == "window":
            items = [str(item) if type(item) is int else item for item in items]
        for item in items:
            if not _fits(item, kind):
                raise self._error(key, f"must be {wanted}, not {item!r}")
        located = [self._located(item, kind, parameter) for item in items]
        final = located if several else located[0]
        context = command.make_context(path.split()[-1], [], resilient_parsing=True)
        try:  # by the option itself, which knows its limits
            next(each for each in command.params if each.name == parameter).process_value(context, final)
        except typer.BadParameter as error:
            raise self._error(key, error.message.rstrip(".")) from None
        self.values[path, parameter] = final
        self.lines[path, parameter] = self._line(key)

    def _located(self, value: Any, kind: Any, parameter: str) -> Any:
        """Return a path as seen from the working directory. In the file it is relative to the file."""
        if parameter == "adapter_python":  # the name of a program without a folder is looked for on PATH
            library, equals, path = value.rpartition("=")
            return f"{library}{equals}{self._located(path, Path, '')}" if os.sep in path else value
        if not isinstance(value, str) or not (kind is Path or parameter == "inputs") or value == "-":
            return value
        expanded = os.path.expanduser(value)
        beside = os.path.join(self.file.parent, expanded)
        # What is not there may be the name of a scenario.
        return beside if kind is Path or os.path.exists(beside) else expanded

    def _error(self, key: tuple[str, ...], what: str, remedy: str = "") -> UserError:
        place = Place(str(self.file), self._line(key), ".".join(key))
        return UserError(f"{place}: {what}{f' ({remedy})' if remedy else ''}")

    def _line(self, key: tuple[str, ...]) -> int:
        """Return the line of a key, or of its table; 0 if it cannot be found, as in an inline table."""
        table: tuple[str, ...] = ()
        wanted = (*self._prefix, *key)
        for number, line in enumerate(self._lines_of_text, 1):
            if heading := re.match(r"\s*\[\s*([^\[\]]+?)\s*\]", line):
                table = tuple(part.strip(" \"'") for part in heading[1].split("."))
                if table == wanted:
                    return number
                continue
            assignment = re.match(r"\s*([\w.\"' -]+?)\s*=", line)
            if assignment and (*table, *(part.strip(" \"'") for part in assignment[1].split("."))) == wanted:
                return number
        return 0


def parameters_of(command: Any) -> dict[str, Any]:
    """Map the keys that a command's table may have to its parameters: long options without their dashes, arguments."""
    names = {}
    for parameter in command.params:
        if parameter.expose_value and parameter.name != "help":
            long = [name.removeprefix("--") for name in parameter.opts if name.startswith("--")]
            argument = "recordings" if parameter.name == "inputs" else parameter.name
            names[long[0] if long else argument] = parameter
    return names


def _kind(command: Any, parameter: str) -> tuple[bool, Any]:
    """Return whether a command's parameter takes several values, and the declared type of one."""
    function = inspect.unwrap(command.callback, stop=lambda wrapped: hasattr(wrapped, "__signature__"))
    annotation = inspect.signature(function, eval_str=True).parameters[parameter].annotation
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (Union, UnionType):
        annotation = next(part for part in get_args(annotation) if part is not type(None))
    return (True, get_args(annotation)[0]) if get_origin(annotation) is list else (False, annotation)


def _fits(value: Any, kind: Any) -> bool:
    if isinstance(kind, type) and issubclass(kind, Enum):
        return value in [member.value for member in kind]
    if kind is float:
        return type(value) in (int, float)
    return isinstance(value, str) if kind is Path else type(value) is kind


def _in_words(kind: Any) -> str:
    if isinstance(kind, type) and issubclass(kind, Enum):
        return " or ".join(repr(member.value) for member in kind)
    return {bool: "true or false", int: "a whole number", float: "a number", Path: "a path as text"}.get(kind, "text")


def config(
    context: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="COMMAND [OPTION]...", help="A command, with options as you would give them."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show which settings count, and where each comes from: a default, the file, the environment or the command line.

    Without a command it shows what the file sets. With one it shows all options of that command as they would be, and
    runs nothing.
    """
    from .output import print_json

    app = context.find_root().command
    settings = configuration(app)
    rows = list(_command_rows(app, list(words), settings)) if words else list(_set_rows(app, settings))
    if as_json:
        file = None if settings is None else str(settings.file)
        print_json({"file": file, "settings": [dict(zip(_HEADS, row, strict=False)) for row in rows]})
        return
    if settings is None:
        typer.echo(
            f"There is no {FILE} and no [tool.ctxbench] in {PYPROJECT}, here or above: `ctxbench init` makes one."
        )
    elif not words:
        typer.echo(f"{settings.file} sets:" if rows else f"{settings.file} sets nothing.")
    cells = [[_text(cell) for cell in row] for row in rows]
    widths = [max((len(row[at]) for row in cells), default=0) for at in range(3)]
    for row in cells:
        shown = (f"{cell:<{min(width, 60)}}" for cell, width in zip(row, (*widths, 0), strict=False))
        typer.echo("  ".join(shown).rstrip())


_HEADS = ("option", "value", "source", "commands")


def _set_rows(app: Any, settings: Configuration | None) -> Iterator[tuple[str, Any, str, list[str]]]:
    """Yield each option or variable that the file sets: as it is typed, its value, its place, and who takes it."""
    if settings is None:
        return
    takers: dict[tuple[str, str, str], list[str]] = {}
    values: dict[tuple[str, str, str], Any] = {}
    for (path, name), value in settings.values.items():
        command = command_at(app, path)
        key = next(_typed(key, each) for key, each in parameters_of(command).items() if each.name == name)
        row = (key, _text(_plain(value)), settings.place((path, name)))
        takers.setdefault(row, []).append(path)
        values[row] = _plain(value)
    for row, paths in takers.items():
        yield row[0], values[row], row[2], paths
    for name, value in settings.environment.items():
        yield name, _plain(value), settings.place(("", name)), []


def command_at(app: Any, path: str) -> Any:
    """Return the command at a path such as `export mlflow`."""
    command = app
    for word in path.split():
        command = command.commands[word]
    return command


def _typed(key: str, parameter: Any) -> str:
    """Return an option as it stands on the command line; an argument has its key alone."""
    return f"--{key}" if parameter.param_type_name == "option" else key


def _command_rows(app: Any, words: list[str], settings: Configuration | None) -> Iterator[tuple[str, Any, str]]:
    """Yield each option of a command with its value and where that is from. Raises UserError for an unknown command."""
    command, defaults = app, {} if settings is None else settings.default_map()
    path: list[str] = []
    while (inner := getattr(command, "commands", None)) is not None:
        word = words.pop(0) if words else ""
        if word not in inner:
            named = " ".join(["ctxbench", *path])
            raise UserError(f"`{named}` has no command {word!r}{suggestion(word, inner)}")
        command, defaults = inner[word], defaults.get(word, {})
        path.append(word)
    lenient = copy(command)  # what it would do can be shown before its arguments are known
    lenient.params = [copy(parameter) for parameter in command.params]
    for parameter in lenient.params:
        parameter.required = False
    context = lenient.make_context(" ".join(["ctxbench", *path]), words, default_map=defaults)
    for key, parameter in parameters_of(command).items():
        source, value = context.get_parameter_source(parameter.name), context.params.get(parameter.name)
        where = "default" if source is None else source.name.lower().replace("commandline", "command line")
        if settings is not None and where == "default_map":
            where = settings.place((" ".join(path), parameter.name))
        elif where == "environment":
            names = [parameter.envvar] if isinstance(parameter.envvar, str) else parameter.envvar
            where = f"environment: {next(name for name in names if os.environ.get(name))}"
        elif where == "default" and settings is not None and str(parameter.envvar) in settings.environment:
            value, where = settings.environment[parameter.envvar], settings.place(("", parameter.envvar))
        elif where == "default" and value in (None, "", [], ()) and isinstance(parameter.show_default, str):
            value = parameter.show_default
        elif where == "default" and parameter.required:
            where = "must be given"
        yield _typed(key, parameter), _plain(value), where


def _plain(value: Any) -> Any:
    """Return a value as JSON can have it, without the secrets of an address."""
    from ctxbench.scenarios.secrets import without_secrets

    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    return without_secrets(str(value)) if isinstance(value, Path | str) else value


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_text, value)) or "–"
    if isinstance(value, bool):
        return str(value).lower()
    return "–" if value in (None, "") else str(value)


class Agent(NamedTuple):
    """A program that records conversations in a folder of its own."""

    name: str
    folder: str
    """Where it keeps them, from the user's home."""
    files: str
    """Pattern of the files that hold conversations."""
    reader: str
    """Start of the name of the format that reads them."""


class FoundAgent(NamedTuple):
    """An agent whose folder is on this machine."""

    agent: Agent
    files: int
    """Number of files; nothing of them was read."""
    is_readable: bool
    """Whether a format reads them."""
    size: int
    """Bytes of the files."""

    @property
    def number(self) -> str:
        """The number of files in words."""
        return f"{self.files:,} file{'s' * (self.files != 1)}"


def known_agents() -> list[Agent]:
    """Return the agents whose folders are known."""
    rows = tomllib.loads(files(__package__).joinpath("data/agents.toml").read_text("utf-8"))["agents"]
    return [Agent(**row) for row in rows]


def found_agents() -> list[FoundAgent]:
    """Return the agents whose folders are here. Files are counted by their names, and none is opened."""
    from importlib.metadata import entry_points

    formats = entry_points(group="ctxbench.readers").names
    found = []
    for agent in known_agents():
        folder = Path(os.path.expanduser(agent.folder))
        try:
            sizes = [file.lstat().st_size for file in folder.glob(agent.files)] if folder.is_dir() else []
        except OSError:
            continue
        if sizes:
            is_readable = any(name.startswith(agent.reader) for name in formats)
            found.append(FoundAgent(agent, len(sizes), is_readable, sum(sizes)))
    return found


def init(
    recordings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH|SCENARIO",
            help="Recordings to measure here.",
            show_default="to be filled in",
            autocompletion=completion.inputs,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file that is here.")] = False,
) -> None:
    """Write a commented ctxbench.toml into this folder, with the recordings that agents keep on this machine.

    It looks for folders of known agents and counts their files by name. It opens none of them.
    """
    from ctxbench.harness.folder.files import placed
    from ctxbench.scenarios.embedded import SCENARIOS

    file = Path(FILE)
    if file.exists() and not force:
        raise UserError(f"{file} is here already: edit it, or give --force to replace it")
    for name in recordings or ():
        if not os.path.exists(os.path.expanduser(name)) and name.partition("(")[0] not in SCENARIOS:
            raise UserError(f"{name}: there is no such file or folder, and no scenario of that name")
    agents = found_agents()
    text = files(__package__).joinpath("data/ctxbench.toml").read_text("utf-8")
    lacks = ", no reader yet: docs/reading-a-format.md"
    about = {
        each.agent.folder: f"{each.agent.name}, {each.number}{'' if each.is_readable else lacks}" for each in agents
    }
    known = "".join(f"#   {folder}  ({words})\n" for folder, words in about.items()) or "#   none was found\n"
    named = ", ".join(msgspec.json.encode(name).decode() for name in recordings or ())  # a string of TOML too
    text = text.replace("{agents}\n", known).replace(
        "{recordings}", f"recordings = [{named}]" if named else '# recordings = ["recordings"]'
    )
    try:
        with placed(file) as draft:
            draft.write_text(text, "utf-8")
    except OSError as error:
        raise UserError(f"{file}: cannot be written: {error.strerror or error}") from None
    typer.echo(f"written: {file}")
    for folder, words in about.items():
        typer.echo(f"found: {folder} ({words})")
    if not recordings:
        typer.echo(f"name what to measure as `recordings` in {FILE}; until then it is the scenario standard")
    typer.echo(f"to measure, and to write the report: {command_line('run')}")
