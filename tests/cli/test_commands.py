"""The table of commands, and what is imported of them."""

import subprocess
import sys
from importlib import import_module
from inspect import getdoc

import pytest

from ctxbench.cli.commands import entries, load

ENTRIES = entries()


@pytest.mark.parametrize("path", ENTRIES)
def test_the_table_says_what_the_command_says(path: str) -> None:
    """The line in the help of a group is the beginning of the command's own docstring."""
    entry = ENTRIES[path]
    module, name = entry.function.split(".")
    first = " ".join((getdoc(getattr(import_module(f"ctxbench.cli.{module}"), name)) or "").split("\n\n")[0].split())
    assert first.startswith(entry.about.removesuffix("."))
    assert load(path, entry).short_help == entry.about


def test_the_first_help_imports_no_command() -> None:
    """`ctxbench --help` imports the module of no command, and no library of numbers."""
    script = (
        "import sys; sys.argv = ['ctxbench', '--help']\n"
        "from ctxbench.__main__ import main\n"
        "try:\n    main()\nfinally:\n    print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    imported = set(done.stderr.split())
    modules = {f"ctxbench.cli.{entry.function.split('.')[0]}" for entry in ENTRIES.values()}
    assert not imported & {*modules, "numpy", "pandas", "pyarrow", "pydantic"}
    assert all(path.split()[0] in done.stdout for path in ENTRIES)
