"""Print how the code is laid out: files, lines, import circles, `Any`, comments. `make house` and `make lint` run it.

The import graph counts every relative import, also those inside functions and under TYPE_CHECKING. With `--check` the
exit code is 1 if there is an import circle, if two classes that are not private have the same name, or if a docstring
begins with a word that leaves its subject open (`What`, `Those` …).
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ("scenarios", "metrics", "strategies", "harness", "reports")
OPEN = re.compile(r"(What|Whatever|Who|Whose|Which|Those|Of (each|every|those)|That which)\b")
"""First words of docstrings that do not say what they are about."""


def main(arguments: list[str]) -> int:
    """Print the figures of a checkout; `arguments` are `--check` and a folder, both optional."""
    folders = [argument for argument in arguments if not argument.startswith("-")]
    root = Path(folders[0]) if folders else ROOT
    texts = {path: path.read_text("utf-8") for room in ROOMS for path in sorted((root / room).rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    sizes = sorted((len(text.splitlines()) for text in texts.values()), reverse=True)
    graph = imports(root, trees)
    circles, same, vague = circles_of(graph), same_classes(root, trees), list(open_docstrings(root, trees))
    comments = sum(map(comment_lines, texts.values()))
    print(f"files                                       {len(sizes):>7,}")
    print(f"lines                                       {sum(sizes):>7,}")
    print(f"half of the lines stand in files of at least {half(sizes):>6,}")
    print(f"longest file                                {sizes[0]:>7,}")
    print(f"comment lines in a hundred                  {100 * comments / sum(sizes):>7.1f}")
    print(f"uses of Any                                 {sum(map(uses_of_any, trees.values())):>7,}")
    print(f"import circles                              {len(circles):>7,}")
    for circle in circles:
        print("    " + ", ".join(circle))
    print(f"classes of one name                         {len(same):>7,}")
    for name, places in same.items():
        print(f"    {name}: {', '.join(places)}")
    print(f"docstrings without a subject                {len(vague):>7,}")
    for place in vague:
        print(f"    {place}")
    return int("--check" in arguments and bool(circles or same or vague))


def open_docstrings(root: Path, trees: dict[Path, ast.Module]) -> Iterator[str]:
    """Yield the docstrings, those of attributes too, that begin with a word of `OPEN`, with their places."""
    for path, tree in trees.items():
        for node in ast.walk(tree):
            match node:
                case ast.Expr(value=ast.Constant(value=str(text))) if OPEN.match(text):
                    yield f"{path.relative_to(root)}:{node.lineno}: {text.splitlines()[0]}"


def half(sizes: list[int]) -> int:
    """Return the size of the file in which the middle line stands, largest files first."""
    lines = 0
    for size in sizes:
        lines += size
        if lines >= sum(sizes) / 2:
            return size
    return 0


def comment_lines(text: str) -> int:
    """Return how many comments a text has."""
    return sum(token.type == tokenize.COMMENT for token in tokenize.generate_tokens(io.StringIO(text).readline))


def uses_of_any(tree: ast.Module) -> int:
    """Return how often the name `Any` is used, its import aside."""
    return sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(tree))


def same_classes(root: Path, trees: dict[Path, ast.Module]) -> dict[str, list[str]]:
    """Return the public classes whose name stands in more than one file, with the files."""
    places: dict[str, list[str]] = defaultdict(list)
    for path, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path.relative_to(root).as_posix())
    return {name: paths for name, paths in sorted(places.items()) if len(paths) > 1}


def imports(root: Path, trees: dict[Path, ast.Module]) -> dict[str, set[str]]:
    """Return which module of the project imports which."""
    modules = {module_of(root, path): path for path in trees}
    graph: dict[str, set[str]] = {}
    for name, path in modules.items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        graph[name] = {target for target in targets(trees[path], package, modules) if target != name}
    return graph


def module_of(root: Path, path: Path) -> str:
    """Return the dotted name of a module below the root."""
    return path.relative_to(root).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")


def targets(tree: ast.Module, package: str, modules: dict[str, Path]) -> Iterator[str]:
    """Yield the modules of the project that relative imports of a file name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            parts = package.split(".")
            base = ".".join([*parts[: len(parts) - node.level + 1], *([node.module] if node.module else [])])
            for alias in node.names:
                name = f"{base}.{alias.name}"
                if name in modules:
                    yield name
                elif base in modules:
                    yield base


def circles_of(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that import each other in a loop (Tarjan's strongly connected components)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    circles: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = low[module] = len(order)
        stack.append(module)
        for target in sorted(graph[module]):
            if target not in order:
                visit(target)
                low[module] = min(low[module], low[target])
            elif target in stack:
                low[module] = min(low[module], order[target])
        if low[module] == order[module]:
            circle = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(circle) > 1:
                circles.append(sorted(circle))

    for module in sorted(graph):
        if module not in order:
            visit(module)
    return circles


if __name__ == "__main__":
    sys.setrecursionlimit(10_000)
    sys.exit(main(sys.argv[1:]))
