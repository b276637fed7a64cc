"""The commands of the program by name. A command's module is imported when it runs, so that `--help` is quick."""

from __future__ import annotations

import inspect
import os
import tomllib
from collections import UserDict
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
import typer
from typer.core import TyperCommand, TyperGroup

from ctxbench.scenarios.errors import UserError
from ctxbench.scenarios.files import check_file
from ctxbench.scenarios.spec import nearest


class CommandEntry(msgspec.Struct, forbid_unknown_fields=True, rename={"command_class": "class"}):
    """A command, as `data/commands.toml` has it."""

    function: str  # where it is in this package: `run.demo`
    about: str  # the line that the help of its group has of it: the beginning of the function's docstring
    example: str = ""  # arguments of the example that its help opens with
    panel: str | None = None  # the panel of the group's help that it stands in
    command_class: str = ""  # where its class is, if it reads its arguments in another way than commands do
    takes_all: bool = False  # whether what follows its name, options too, is for it to read


def entries() -> dict[str, CommandEntry]:
    """Return all commands by path, such as `export mlflow`."""
    text = files(__package__).joinpath("data/commands.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, CommandEntry])


def load(path: str, entry: CommandEntry) -> Any:
    """Import a command and return it."""
    from rich.markup import escape

    from .arguments import command_of

    function = _named(entry.function)
    # Without the section `Args`, which typer shows at the parameters themselves.
    first, *rest = (inspect.getdoc(function) or "").partition("\n\nArgs:\n")[0].split("\n\n")
    # typer keeps line breaks: only lists and examples are laid out, sentences are filled to the terminal's width.
    parts = [part if "[bold]" in part or part.startswith(" ") else " ".join(part.split()) for part in (first, *rest)]
    alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
    alone.command(
        name=path.split()[-1],
        cls=_named(entry.command_class) if entry.command_class else PlainCommand,
        context_settings={"allow_interspersed_args": False} if entry.takes_all else None,
        help=f"[bold]{escape(f'ctxbench {path} {entry.example}'.rstrip())}[/bold]\n\n" + "\n\n".join(parts),
        short_help=f"{parts[0].partition(':')[0].rstrip('.')}.",
        rich_help_panel=entry.panel,
    )(command_of(function))
    return typer.main.get_command(alone)


def _named(place: str) -> Any:
    module, name = place.split(".")
    return getattr(import_module(f".{module}", __package__), name)


class _Commands(UserDict[str, Any]):
    """Commands by name. Each is imported when it is asked for."""

    def __init__(self, entries: Mapping[str, tuple[str, CommandEntry]], groups: Mapping[str, Any]) -> None:
        super().__init__({**dict.fromkeys(entries), **groups})
        self._entries = entries

    def __getitem__(self, name: str) -> Any:
        command = super().__getitem__(name)
        if command is None:
            command = self[name] = load(*self._entries[name])
        return command


class _PlainFlags:
    """Shows options that take no value without a type: typer writes `<bool>`, as if one had to follow."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return all parameters, `--help` too."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_flag", False) and parameter.metavar is None:
                parameter.metavar = ""
        return parameters


_WANTED = {
    "float_parsing": "give a number",
    "int_parsing": "give a whole number",
    "greater_than_equal": "give {ge:g} or more",
    "less_than_equal": "give {le:g} or less",
}
"""Values to give instead, by the fault that typer finds in one."""


class PlainCommand(_PlainFlags, TyperCommand):
    """A command of the program, which looks at every text and path on its command line before it does any work."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments. Raises UserError for a value that is no number, or not one that a parameter can have."""
        if "" in args:  # as a path it would be the working directory
            raise UserError("an argument is an empty text: an unset variable?")
        try:
            rest: list[str] = super().parse_args(ctx, args)
        except Exception as error:
            if type(error).__name__ == "NoSuchOption":  # typer's own, which it gives no public name
                wrong = str(getattr(error, "option_name", ""))
                raise UserError(f"{_path_of(ctx)}: there is no option {wrong}{_hint(wrong, ctx)}") from None
            if not isinstance(error, typer.BadParameter):
                raise
            cause = error.__cause__
            if error.param is None or cause is None or not hasattr(cause, "errors"):
                raise
            fault = cause.errors()[0]
            name = next((name for name in error.param.opts if name.startswith("-")), error.param.metavar)
            wanted = _WANTED.get(fault["type"], fault["msg"].removeprefix("Value error, ").rstrip("."))
            raise UserError(f"{name} {fault['input']}: {wanted.format(**fault.get('ctx', {}))}") from None
        return rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command. It ends with code 2 if a path of recordings is not there, after those that are.

        Raises UserError for a text that is not UTF-8, for a path that no file can have, and for a pipe or a device that
        is to be a FILE, whether it would be read or written. A folder is the command's to judge: it may make one.
        Raises it, too, if the nearest ctxbench.toml decides something that the user has not approved.
        """
        settings, path, is_absent = ctx.find_root().obj, _path_of(ctx), False
        for parameter in self.params:
            values = ctx.params.get(parameter.name)
            for value in values if isinstance(values, list | tuple) else (values,):
                _check(value, is_file=parameter.metavar == "FILE")
                if value is not None and (parameter.metavar or "").startswith("PATH") and _is_absent(str(value)):
                    is_absent |= path != "init"  # which reads nothing, and expands `~`
        if settings is not None:
            settings.require(path, ctx)
        sources = {ctx.get_parameter_source(name).name for name in ("run", "runs", "out") if name in ctx.params}
        if sources and "COMMANDLINE" not in sources:
            from ctxbench.api import trust

            if not trust.is_approved(Path("runs"), links := trust.links()):
                trust.refuse(Path("runs"), links)
        if ctx.params.get("replay") is False:
            from .replies import say_models

            say_models(ctx, {} if settings is None else settings.places, path)
        result = super().invoke(ctx)
        if is_absent:  # what read it has said so
            raise typer.Exit(2)
        return result


def _path_of(ctx: Any) -> str:
    """Return the path of a running command, such as `export mlflow`."""
    return "" if ctx.parent is None else f"{_path_of(ctx.parent)} {ctx.info_name}".lstrip()


def _hint(wrong: str, ctx: Any) -> str:
    """Return what an unknown option may mean: what it is called here, which command has it, or what looks like it."""
    here = {name: each for each in ctx.command.params for name in (*each.opts, *each.secondary_opts, each.metavar)}
    told = next((name for name in _words()["options"].get(wrong, ()) if name in here or name[0] == "("), None)
    if told is not None and told in here:
        shown = dict.fromkeys(filter(None, (told, here[told].metavar)))  # an argument is called by its metavar alone
        return f"; here it is {' '.join(shown)}"
    if told is not None:
        return f" {told}"
    for path, entry in entries().items():
        if any(wrong in each.opts for each in load(path, entry).params):
            return f"; ctxbench {path} has one"
    close = nearest(wrong, {name: name for name in here if name and name.startswith("--")})
    return close or f": ctxbench {_path_of(ctx)} -h lists all"


@cache
def _words() -> dict[str, dict[str, Any]]:
    """Return what commands and options are called here, by what other programs call them."""
    return tomllib.loads(files(__package__).joinpath("data/words.toml").read_text("utf-8"))


def _is_absent(name: str) -> bool:
    """Return whether recordings of a name are not there: no scenario, file, part of an archive, or address."""
    if os.path.exists(name):
        return False
    from ctxbench.scenarios.embedded import SCENARIOS
    from ctxbench.scenarios.packed import is_packed

    return name.partition("(")[0] not in SCENARIOS and not is_packed(Path(name))


def _check(value: object, is_file: bool) -> None:
    if not isinstance(value, str | Path):
        return
    try:
        str(value).encode()
        if isinstance(value, Path):
            value.stat()
            if is_file:
                check_file(value)
    except UnicodeEncodeError:
        raise UserError(f"{value}: is not UTF-8: rename the file, or type it anew") from None
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError):
        pass  # it is said where it is used
    except OSError as error:
        raise UserError(f"{value}: cannot be used: {error.strerror or error}") from None


class LazyGroup(_PlainFlags, TyperGroup):
    """A group of commands that imports one only when it runs, or when its own help is asked for."""

    entries: Mapping[str, tuple[str, CommandEntry]] = {}  # by name the path and the entry of each command

    def __init__(self, *, commands: Mapping[str, Any], **settings: Any) -> None:
        """Take the groups in this group as `commands`, behind its own."""
        super().__init__(**settings)
        self.commands = _Commands(self.entries, commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """Return what the help of the group and completion need of a command."""
        if cmd_name not in self.entries:
            return self.commands.get(cmd_name)
        _, entry = self.entries[cmd_name]
        return TyperCommand(cmd_name, short_help=entry.about, rich_help_panel=entry.panel)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the command that is to run, imported. Raises UserError for an unknown one, with what it may mean."""
        if (wrong := args[0]) not in self.commands and not wrong.startswith("-"):
            here = "" if (group := _path_of(ctx)) else _words()["commands"].get(wrong, "")
            close = nearest(wrong, self.commands) or f": {f'ctxbench {group}'.rstrip()} -h lists all"
            raise UserError(f"there is no command {wrong!r}{f'; here it is ctxbench {here}' if here else close}")
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else self.commands[name], rest

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a list of the commands for each panel, without rich."""
        panels = dict[str, list[tuple[str, str]]]()
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            rows = panels.setdefault(command.rich_help_panel or "Commands", [])
            rows.append((name, command.short_help or command.help))
        for panel, rows in panels.items():
            with formatter.section(panel):
                formatter.write_dl(rows)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Return the names in the order in which the help shows them."""
        return list(self.commands)


def group_of(path: str) -> type[LazyGroup]:
    """Return the class of the group that has the commands of a path; the empty path is the program's."""
    whose = {full: entry for full, entry in entries().items() if full.rpartition(" ")[0] == path}
    return type("Group", (LazyGroup,), {"entries": {full.split()[-1]: (full, entry) for full, entry in whose.items()}})
