"""Print how the code is laid out, beside its budget. `make house` and `make lint` run it.

The import graph counts every import of the project's own modules, also those inside functions and under TYPE_CHECKING.
With `--check` the exit code is 1 if a figure is over its budget, if there is an import circle, if two classes that are
not private have the same name, or if a docstring begins with a word that leaves its subject open (`What`, `Those` …).
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
OPEN = re.compile(r"(What|Whatever|Who|Whose|Which|Those|Of (each|every|those)|That which)\b")
"""First words of docstrings that do not say what they are about."""
BUDGET = {
    "lines of Python without tests": 70_000,
    "files": 360,
    "lines of tests": 46_000,
    "commands": 30,
    "parameters of all commands": 200,
    "parameters of `ctxbench run`": 26,
}
"""The most that there may be of each. Who adds, takes away."""


def main(arguments: list[str]) -> int:
    """Print the figures of this checkout; `arguments` is `--check` or nothing."""
    texts = {ROOT / name: (ROOT / name).read_text("utf-8") for name in tracked()}
    tests = [path for path in texts if path.relative_to(ROOT).parts[0] == "tests"]
    lines_of_tests = sum(len(texts.pop(path).splitlines()) for path in tests)
    lines = sum(len(text.splitlines()) for text in texts.values())
    parameters = parameters_of_commands()
    figures = dict(
        zip(
            BUDGET,
            (lines, len(texts), lines_of_tests, len(parameters), sum(parameters.values()), parameters["run"]),
            strict=True,
        )
    )
    over = [name for name, figure in figures.items() if figure > BUDGET[name]]
    for name, figure in figures.items():
        print(f"{name:44} {figure:>7,} of at most {BUDGET[name]:>7,}{'  OVER' if name in over else ''}")

    trees = {path: ast.parse(text) for path, text in texts.items()}
    circles, same, vague = circles_of(), same_classes(trees), list(open_docstrings(trees))
    print(f"{'import circles':44} {len(circles):>7,}")
    for circle in circles:
        print("    " + ", ".join(circle))
    print(f"{'classes of one name':44} {len(same):>7,}")
    for name, places in same.items():
        print(f"    {name}: {', '.join(places)}")
    print(f"{'docstrings without a subject':44} {len(vague):>7,}")
    for place in vague:
        print(f"    {place}")
    return int("--check" in arguments and bool(over or circles or same or vague))


def tracked() -> list[str]:
    """Return the Python files of the checkout, links aside."""
    listing = subprocess.run(["git", "ls-files", "-z", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    return sorted(name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file())


def parameters_of_commands() -> dict[str, int]:
    """Map each command of `ctxbench` to its number of parameters, `--help` aside."""
    import typer

    from ctxbench.cli import app

    def leaves(group: Any, path: str) -> Iterator[tuple[str, int]]:
        for name, command in group.commands.items():
            command = group.commands[name]  # imports it
            if hasattr(command, "commands"):
                yield from leaves(command, f"{path}{name} ")
            else:
                yield path + name, len(command.params)

    return dict(leaves(typer.main.get_command(app), ""))


def open_docstrings(trees: Mapping[Path, ast.Module]) -> Iterator[str]:
    """Yield the docstrings, those of attributes too, that begin with a word of `OPEN`, with their places."""
    for path, tree in trees.items():
        for node in ast.walk(tree):
            match node:
                case ast.Expr(value=ast.Constant(value=str(text))) if OPEN.match(text):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}: {text.splitlines()[0]}"


def same_classes(trees: Mapping[Path, ast.Module]) -> dict[str, list[str]]:
    """Map the names of public classes that stand in more than one file to the files."""
    places: dict[str, list[str]] = defaultdict(list)
    for path, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path.relative_to(ROOT).as_posix())
    return {name: paths for name, paths in sorted(places.items()) if len(paths) > 1}


def circles_of() -> list[list[str]]:
    """Return a group of modules that import each other in a loop, if there is one."""
    import grimp

    graph = grimp.build_graph("ctxbench", cache_dir=None)
    try:
        TopologicalSorter({name: graph.find_modules_directly_imported_by(name) for name in graph.modules}).prepare()
    except CycleError as error:
        return [error.args[1]]
    return []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
