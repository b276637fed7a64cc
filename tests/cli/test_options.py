"""The commands and options that there are: ten commands first, an example in each help, one meaning for each option."""

import shlex
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from ctxbench.cli import app
from ctxbench.cli.list_ import KINDS
from ctxbench.harness.bill import MODELS

# Options whose help differs between commands although their meaning is the same, and what that is.
SAME = {
    "--all": "print everything; each command says in place of what",
    "--as": "a form to write; each command says of what",
    "--grader": "who grades; `calibrate` compares several",
    "--metric": "a metric: compared alone, or one's own that is measured as well",
    "--model": "the model billed; `tune` has one, and `tokens`",
    "--no-text": "leave recorded text out; each command says of what",
    "--out": "a folder to make; each command says what will be in it",
    "--sample": "how many are taken; each command says of what",
    "--seed": "what chance goes by; each command says what is drawn",
    "--strict": "nothing may be missing; each command says of what",
    "--strategy": "a strategy: to run, to compare, or one of the run's",
}
SHORT = {"-g": "--grader", "-m": "--model", "-o": "--out", "-s": "--strategy"}


def commands(group: Any = None, path: str = "ctxbench") -> Iterator[tuple[str, Any]]:
    """Every command with its path."""
    group = group or typer.main.get_command(app)
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def meanings() -> dict[str, dict[tuple[str, str], list[str]]]:
    """Map each option to its meanings, each with the commands that give it that meaning."""
    table: dict[str, dict[tuple[str, str], list[str]]] = {}
    for path, command in commands():
        for parameter in command.params:
            if parameter.param_type_name == "option":
                for name in (*parameter.opts, *parameter.secondary_opts):
                    about = (parameter.help, str(parameter.metavar or ""))
                    table.setdefault(name, {}).setdefault(about, []).append(path)
    return table


def test_an_option_has_one_meaning() -> None:
    """The same help and the same kind of value in all commands, or it is listed here why the words differ."""
    table = meanings()
    for option, abouts in sorted(table.items()):
        for (about, metavar), paths in abouts.items():
            print(f"{option} {metavar}\n    {about}\n    {', '.join(paths)}")
    differing = {option for option, abouts in table.items() if len(abouts) > 1}
    assert differing == {*SAME, *SHORT}
    for short, long in SHORT.items():
        for path, command in commands():
            assert all(long in parameter.opts for parameter in command.params if short in parameter.opts), path


def test_what_other_programs_call_something_is_something_here() -> None:
    """Every hint leads to a command, option or argument that there is, and no word is one of ours already."""
    words = tomllib.loads(files("ctxbench.cli").joinpath("data/words.toml").read_text("utf-8"))
    paths = {path.removeprefix("ctxbench ") for path, _ in commands()}
    assert {*words["commands"].values()} <= {*paths, *(f"list {kind}" for kind in KINDS), "-h", "--version"}
    assert not paths & words["commands"].keys()
    known = {name for _, command in commands() for each in command.params for name in (*each.opts, each.metavar)}
    assert {name for names in words["options"].values() for name in names if name[0] != "("} <= known


def test_the_models_of_a_bill_are_named() -> None:
    """The help of --model names those that a run is billed under."""
    for _, command in commands():
        for parameter in command.params:
            if parameter.name == "model" and parameter.multiple:
                assert f"the first three of: recorded models, {', '.join(MODELS)}" in str(parameter.show_default)


def test_out_makes_folders_and_to_writes_files() -> None:
    """`--out` is a FOLDER and `--to` a FILE in every command that has one."""
    table = meanings()
    assert {metavar for _, metavar in table["--out"]} == {"FOLDER"}
    assert {metavar for _, metavar in table["--to"]} == {"FILE"}


@pytest.mark.parametrize(
    ("path", "command"), list(commands()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_help_begins_with_an_example(path: str, command: Any) -> None:
    """The first line of the help is a command that can be given so, and rare options stand below common ones."""
    example, _, about = command.help.partition("\n\n")
    words = shlex.split(example.removeprefix("[bold]").removesuffix("[/bold]"))
    assert " ".join(words).startswith(path)
    assert about[0].isupper()
    command.make_context(path, words[len(path.split()) :])
    shown = CliRunner().invoke(app, [*path.split()[1:], "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"}).stdout
    assert shown.index(words[0]) < shown.index("Options")
    for rare in ("Reading recordings", "Models"):
        assert f"─ {rare} ─" not in shown or shown.index("─ Options ─") < shown.index(f"─ {rare} ─")
