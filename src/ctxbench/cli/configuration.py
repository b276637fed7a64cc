"""`ctxbench.toml`: defaults of options, for everybody who works in a folder; `ctxbench init` and `ctxbench config`.

The nearest `ctxbench.toml`, or `pyproject.toml` with a table `[tool.ctxbench]`, counts: of the working directory or a
folder above it. A few keys at the top say what several commands need; a table for each command holds its options. The
command line and the environment win over the file. A value is checked before any command begins.
"""

from __future__ import annotations

import os
import re
import tomllib
from contextlib import suppress
from copy import copy
from functools import cached_property, reduce
from importlib.resources import files
from itertools import chain
from operator import getitem
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import msgspec
import typer

from ctxbench.api import trust
from ctxbench.scenarios.errors import Place, UserError, printable_line
from ctxbench.scenarios.files import read_file
from ctxbench.scenarios.secrets import without_secrets
from ctxbench.scenarios.spec import nearest, suggestion
from ctxbench.scenarios.toml import Toml, parse

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

_WITHOUT = ("init", "config")  # they make the file, or show it

Setting = tuple[str, str]
"""Path of a command, such as `export mlflow`, and the name of its parameter; or no path, and the name of a variable."""


def _has_table(text: str) -> bool:
    """Return whether a pyproject.toml has our table. One that is no TOML has none: that is not ours to say."""
    try:
        tool = parse(text).get("tool")
    except tomllib.TOMLDecodeError:
        return bool(re.search(r"^[ \t]*+\[tool\.ctxbench[\].]", text, re.MULTILINE))
    return isinstance(tool, dict) and isinstance(tool.get("ctxbench"), dict)


def find(folder: Path) -> tuple[Path, str] | None:
    """Return the nearest file with settings, from a folder upwards, and its text. Raises UserError for a broken one."""
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
    """Return what the nearest file sets; None without a file. Raises UserError, with its line, for a mistake."""
    try:
        folder = Path.cwd()
    except FileNotFoundError:  # it was removed
        return None
    found = find(folder)
    return None if found is None else Configuration(app, Path(os.path.relpath(found[0], folder)), found[1])


class Configuration:
    """A file with what it sets, checked as it is read."""

    def __init__(self, app: Any, file: Path, text: str) -> None:
        self.file = file
        self.values: dict[Setting, Any] = {}
        self.places: dict[Setting, str] = {}
        """File of each value, with the line where it is known."""
        self.effects: dict[Setting, list[str]] = {}
        """Sentences on the effects of each value that need the user's approval."""
        self._app, self._toml = app, Toml(file, text)
        self._prefix = ("tool", "ctxbench") if file.name == PYPROJECT else ()
        for key, value in reduce(getitem, self._prefix, self._toml.tables).items():
            if key in app.commands:
                self._command(app.commands[key], (key,), value)
            else:
                self._shared(key, value)

    @property
    def environment(self) -> dict[str, str]:
        """Variables that the file sets, by name, without values that are not approved: no command sees them."""
        own = {name: value for (path, name), value in self.values.items() if not path}
        return {name: value for name, value in own.items() if ("", name) not in self.effects or self.is_approved}

    @property
    def all_effects(self) -> list[str]:
        """All that the file decides and the user has to approve, in its order."""
        return list(dict.fromkeys(chain.from_iterable(self.effects.values())))

    @cached_property
    def is_approved(self) -> bool:
        """Whether the user has approved all of that."""
        return trust.is_approved(self.file, self.all_effects)

    def require(self, path: str, context: Any) -> None:
        """Raise UserError if a command would use a value of the file that needs approval and has none."""
        sources = {name: context.get_parameter_source(name).name for name in context.params}
        used = [(path, name) for name, source in sources.items() if source == "DEFAULT_MAP"]
        named = sources.get("tracking_uri", "COMMANDLINE") != "COMMANDLINE" or context.params.get("mlflow")
        calls = context.params.get("replay") is False and ("run" in sources or trust.may_call(context.params))
        is_used = {"prices": True, "models": calls, "tracking": bool(named)}
        used += [("", VARIABLES[key]) for key, does in is_used.items() if does and VARIABLES[key] not in os.environ]
        sentences = [sentence for setting in used for sentence in self.effects.get(setting, ())]
        if sentences and not self.is_approved:
            trust.refuse(self.file, [*sentences, *self.all_effects])  # all of it would be approved

    def default_map(self) -> dict[str, Any]:
        """Return the values as the command line takes them: a mapping for each command, nested like the commands."""
        root: dict[str, Any] = {}
        for (path, parameter), value in self.values.items():
            reduce(lambda level, word: level.setdefault(word, {}), path.split(), root)[parameter] = value
        return root

    def _shared(self, key: str, value: Any) -> None:
        """Read a key at the top of the file."""
        if key in VARIABLES:
            if isinstance(value, dict) is not (key == "models"):
                what = "is a table of parameters of models" if key == "models" else f"must be text, not {value!r}"
                raise self._error((key,), what)
            if key == "models":
                from ctxbench.harness.models.settings import ModelAccess

                fields = ModelAccess.__dataclass_fields__
                for name, parameter in value.items():
                    if name not in fields:  # it could be read as another, or as several
                        raise self._error((key, name), f"is no parameter of a model{suggestion(name, fields)}")
                    self._judge("", VARIABLES[key], (key, name), name, parameter, parameter)
                value = ", ".join(f"{name}={parameter!r}" for name, parameter in value.items())
            else:
                self._judge("", VARIABLES[key], (key,), {"tracking": "tracking_uri"}.get(key, ""), value, value)
            self._keep("", VARIABLES[key], (key,), self._located(str(value)) if key == "prices" else str(value))
        elif key in SHARED:
            if key == "strategies" and isinstance(value, dict):  # by their names
                value = [f"{name}={text}" if isinstance(text, str) else text for name, text in value.items()]
            name, paths = SHARED[key]
            for path in paths:
                if (path, name) not in self.values:
                    parameter = next(each for each in command_at(self._app, path).params if each.name == name)
                    is_first = isinstance(value, list) and value and not _is_list(parameter)
                    self._set(path, parameter, (key,), value[0] if is_first else value)
        else:
            commands = [name for name in self._app.commands if name not in _WITHOUT]
            mine = next((name for name in commands if key in parameters_of(self._app.commands[name])), "")
            hint = (
                f"; write it below [{mine}]"
                if mine
                else suggestion(key, dict.fromkeys([*SHARED, *VARIABLES, *commands]))
            )
            raise self._error((key,), f"there is no such key{hint}")

    def _command(self, command: Any, path: tuple[str, ...], table: Any) -> None:
        """Read the table of a command, or of a group with the tables of its commands."""
        named = f"ctxbench {' '.join(path)}"
        if path[0] in _WITHOUT:
            raise self._error(path, "has no settings (leave the table out)")
        if not isinstance(table, dict):
            raise self._error(path, f"is a table of the options of `{named}` (write [{path[-1]}])")
        inner = getattr(command, "commands", None)
        parameters = parameters_of(command) if inner is None else {}
        for key, value in table.items():
            place = (*path, key)
            if key in parameters:
                self._set(" ".join(path), parameters[key], place, value)
            elif inner is None:
                what = f"`{named}` has no option {key!r}{nearest(key, parameters)} (`{named} --help` lists them)"
                raise self._error(place, what)
            elif key in inner:
                self._command(inner[key], place, value)
            else:
                raise self._error(place, f"`{named}` has no command {key!r}{suggestion(key, inner)}")

    def _set(self, path: str, parameter: Any, key: tuple[str, ...], value: Any) -> None:
        """Read the value of an option: type and bounds are the option's, and one value may stand for a list."""
        # A policy that stands here as a table is read from this file by the gate.
        if parameter.name == "policy" and isinstance(value, dict):
            value = self.file.name
        # A window may be written as a number of tokens.
        if parameter.name == "window" and type(value) is int:
            value = str(value)
        kind, is_list = parameter.type_descriptor.annotation, _is_list(parameter)
        kind = get_args(kind)[0] if is_list else kind
        values = value if is_list and isinstance(value, list) else [value]
        bounded: Any = Annotated[kind, msgspec.Meta(ge=parameter.min, le=parameter.max)]
        for each in values:
            try:
                msgspec.convert(each, str if kind is Path else bounded if kind in _WORDS else kind)
            except msgspec.ValidationError:
                choices = " or ".join(map(repr, getattr(kind, "__members__", None) or get_args(kind)))
                wanted = choices or _WORDS.get(kind) or ("true or false" if kind is bool else "text")
                raise self._error(key, f"must be {wanted.format(parameter)}, not {each!r}") from None
        if kind is Path or parameter.name == "inputs":
            values = [self._located(each, kind is Path) for each in values]
        if parameter.name == "adapter_python":  # the name of a program without a folder is looked for on PATH
            parts = [each.rpartition("=") for each in values]
            values = [head + mark + (self._located(path) if os.sep in path else path) for head, mark, path in parts]
        self._keep(path, parameter.name, key, values if is_list else values[0])
        for raw, each in zip(value if is_list and isinstance(value, list) else [value], values, strict=True):
            self._judge(path, parameter.name, key, parameter.name, raw, each)

    def _judge(self, path: str, name: str, key: tuple[str, ...], kind: str, raw: Any, value: Any) -> None:
        """Note what a value of an option, or parameter of a model, does that needs approval; alike from each folder."""
        place, does = self.file.parent, trust.effect(kind, value, self.file.parent)
        if not does and isinstance(raw, str):  # beside the file too, wherever the command would look
            does = trust.effect("", place / os.path.expanduser(raw), place)
        if does:
            self.effects.setdefault((path, name), []).append(f"{'.'.join(key)} = {raw!r} {does}")

    def _keep(self, path: str, name: str, key: tuple[str, ...], value: Any) -> None:
        self.values[path, name] = value
        self.places[path, name] = str(Place(str(self.file), self._line(key)))

    def _located(self, value: str, is_path: bool = True) -> str:
        """Return a path as seen from the working directory. In the file it is relative to the file."""
        expanded = os.path.expanduser(value)
        beside = os.path.join(self.file.parent, expanded)
        # What is not there may be the name of a scenario.
        return value if value == "-" else beside if is_path or os.path.exists(beside) else expanded

    def _error(self, key: tuple[str, ...], what: str) -> UserError:
        return UserError(f"{Place(str(self.file), self._line(key), '.'.join(key))}: {what}")

    def _line(self, key: tuple[str, ...]) -> int:
        return self._toml.line((*self._prefix, *key))


_WORDS = {int: "a whole number from {0.min} to {0.max}", float: "a number from {0.min} to {0.max}"}
"""Values of options that have bounds."""


def _is_list(parameter: Any) -> bool:
    return get_origin(parameter.type_descriptor.annotation) is list


def command_at(app: Any, path: str) -> Any:
    """Return the command at a path such as `export mlflow`."""
    return reduce(lambda command, word: command.commands[word], path.split(), app)


def parameters_of(command: Any) -> dict[str, Any]:
    """Map the keys that a command's table may have to its parameters: long options without their dashes, arguments."""
    settable = (parameter for parameter in command.params if parameter.expose_value and parameter.name != "help")
    named = (([name[2:] for name in parameter.opts if name.startswith("--")], parameter) for parameter in settable)
    return {(*long, parameter.name.replace("inputs", "recordings"))[0]: parameter for long, parameter in named}


def config(
    context: typer.Context, words: list[str] | None = None, *, trust_it: bool = False, as_json: bool = False
) -> None:
    """Show which settings count, and where each comes from: a default, the file, the environment or the command line.

    Without a command it shows what the file sets. With one it shows all options of that command as they would be, and
    runs nothing. What the file names of hosts, models, code, money and places outside its folder counts once it is
    approved with --trust, and until it changes.

    Args:
        words (COMMAND [OPTION]...): A command, with options as you would give them.
        trust_it (--trust): Approve what the file decides that leaves this machine, costs money or runs code.
    """
    from .output import print_json

    app = context.find_root().command
    settings = configuration(app)
    decisions = [(Path("runs"), trust.links())]
    if settings is not None:
        decisions.insert(0, (settings.file, settings.all_effects))
    for file, sentences in decisions if trust_it else ():
        trust.approve(file, sentences)
    rows = _command_rows(app, list(words), settings) if words else _set_rows(app, settings)
    if as_json:
        print_json({"file": None if settings is None else str(settings.file), "settings": rows})
        return
    if settings is None:
        typer.echo(
            f"There is no {FILE} and no [tool.ctxbench] in {PYPROJECT}, here or above: `ctxbench init` makes one."
        )
    elif not words:
        typer.echo(f"{settings.file} sets:" if rows else f"{settings.file} sets nothing.")
    cells = [[_text(cell) for cell in row.values()] for row in rows]
    widths = [min(max(map(len, column)), 60) for column in zip(*cells, strict=True)]
    for row in cells:
        typer.echo("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
    for file, sentences in decisions:
        if sentences:
            is_approved = trust.is_approved(file, sentences)
            typer.echo("approved:" if is_approved else "not approved (`ctxbench config --trust` approves it):")
        for sentence in sentences:
            typer.echo(f"  {printable_line(without_secrets(sentence))}")


def _set_rows(app: Any, settings: Configuration | None) -> list[dict[str, Any]]:
    """Return each option or variable that the file sets: as it is typed, its value, its place, and who takes it."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for (path, name), value in settings.values.items() if settings else ():
        parameters = parameters_of(command_at(app, path)).items() if path else ()
        option = next((_typed(key, parameter) for key, parameter in parameters if parameter.name == name), name)
        place = settings.places[path, name] if settings else ""
        row = {"option": option, "value": _plain(value), "source": place, "commands": []}
        rows.setdefault((option, str(row)), row)["commands"] += [path] * bool(path)
    return list(rows.values())


def _typed(key: str, parameter: Any) -> str:
    """Return an option as it stands on the command line; an argument has its key alone."""
    return f"--{key}" if parameter.param_type_name == "option" else key


def _command_rows(app: Any, words: list[str], settings: Configuration | None) -> list[dict[str, Any]]:
    """Return each option of a command with its value and source. Raises UserError for an unknown command."""
    values, places, defaults = (settings.values, settings.places, settings.default_map()) if settings else ({}, {}, {})
    command, path, rows = app, list[str](), []
    while (inner := getattr(command, "commands", None)) is not None:
        word = words.pop(0) if words else ""
        if word not in inner:
            raise UserError(f"`{' '.join(['ctxbench', *path])}` has no command {word!r}{suggestion(word, inner)}")
        command, defaults = inner[word], defaults.get(word, {})
        path.append(word)
    lenient = copy(command)  # what it would do can be shown before its arguments are known
    lenient.params = [copy(parameter) for parameter in command.params]
    for parameter in lenient.params:
        parameter.required = False
    context = lenient.make_context(" ".join(["ctxbench", *path]), words, default_map=defaults)
    for key, parameter in parameters_of(command).items():
        source, value = context.get_parameter_source(parameter.name), context.params.get(parameter.name)
        match source.name if source is not None else "DEFAULT":
            case "COMMANDLINE":
                where = "command line"
            case "DEFAULT_MAP":
                where = places[" ".join(path), parameter.name]
            case "ENVIRONMENT":
                where = f"environment: {parameter.envvar}"
            case _ if (variable := ("", parameter.envvar)) in values:
                value, where = values[variable], places[variable]
            case _:
                where = "default"
                if value in (None, "", [], ()) and isinstance(parameter.show_default, str):
                    value = parameter.show_default
                elif parameter.required:
                    where = "must be given"
        rows.append({"option": _typed(key, parameter), "value": _plain(value), "source": where})
    return rows


def _plain(value: Any) -> Any:
    """Return a value as JSON can have it, without the secrets of an address."""
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return without_secrets(str(value)) if isinstance(value, Path | str) else value


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_text, value)) or "–"
    if isinstance(value, bool):
        return str(value).lower()
    return "–" if value in (None, "") else str(value)


class Agent(msgspec.Struct):
    """A program that records conversations in a folder of its own, and how much of it is on this machine."""

    name: str
    folder: str  # where it keeps them, from the user's home
    files: str  # pattern of the files that hold conversations
    reader: str  # start of the name of the format that reads them
    count: int = 0  # number of files; nothing of them was read
    size: int = 0  # bytes of the files

    @property
    def number(self) -> str:
        """The number of files in words."""
        return f"{self.count:,} file{'s' * (self.count != 1)}"


def known_agents() -> list[Agent]:
    """Return the agents whose folders are known."""
    rows = tomllib.loads(files(__package__).joinpath("data/agents.toml").read_text("utf-8"))["agents"]
    return msgspec.convert(rows, list[Agent])


def found_agents() -> list[Agent]:
    """Return the agents whose folders are here. Files are counted by their names, and none is opened."""
    agents = known_agents()
    for agent in agents:
        with suppress(OSError):
            sizes = [file.lstat().st_size for file in Path(os.path.expanduser(agent.folder)).glob(agent.files)]
            agent.count, agent.size = len(sizes), sum(sizes)
    return [agent for agent in agents if agent.count]


def init(context: typer.Context, recordings: list[str] | None = None, *, force: bool = False) -> None:
    """Write a commented ctxbench.toml into this folder, with the recordings that agents keep on this machine.

    It looks for folders of known agents and counts their files by name. It opens none of them.

    Args:
        recordings (PATH|SCENARIO): Recordings to measure here. [default: to be filled in]
        force: Replace the file that is here.
    """
    from ctxbench.scenarios.embedded import SCENARIOS

    from .output import write_text

    file = Path(FILE)
    for name in recordings or ():
        if not os.path.exists(os.path.expanduser(name)) and name.partition("(")[0] not in SCENARIOS:
            raise UserError(f"{name}: there is no such file or folder, and no scenario of that name")
    found = {agent.folder: f"{agent.name}, {agent.number}" for agent in found_agents()}
    known = "".join(f"#   {folder}  ({words})\n" for folder, words in found.items()) or "#   none was found\n"
    named = ", ".join(msgspec.json.encode(name).decode() for name in recordings or ())  # a string of TOML too
    line = f"recordings = [{named}]" if named else '# recordings = ["recordings"]'
    text = files(__package__).joinpath("data/ctxbench.toml").read_text("utf-8")
    text = text.replace("{agents}\n", known).replace("{recordings}", line)
    if file.exists() and not force and not (file.is_file() and file.read_bytes() == text.encode()):
        raise UserError(f"{file} is here already: edit it, or give --force to replace it")
    write_text(text, file)
    trust.approve(file, Configuration(context.find_root().command, file, text).all_effects)
    for folder, words in found.items():
        typer.echo(f"found: {folder} ({words})")
    if not recordings:
        typer.echo(f"name what to measure as `recordings` in {FILE}; until then it is the scenario standard")
    typer.echo(f"to measure, and to write the report: {command_line('run')}")
