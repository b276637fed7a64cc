"""Complete words in a shell, after `ctxbench --install-completion`: strategies, scenarios, paths, models and runs.

A function is given what the user has typed of a word, and returns what it may become, each with a line of help.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

Choice = tuple[str, str]  # a word, and a line about it
_MOST_MODELS = 50


def strategies(incomplete: str) -> list[Choice]:
    """Return strategies and recipes; of a chain the stages that are written stay."""
    from inspect import getdoc

    from ctxbench.strategies.chain import NAMED, lists
    from ctxbench.strategies.chain import strategies as registered

    done, bar, begun = incomplete.rpartition("|")
    about = {name: (getdoc(kind) or "").partition("\n\n")[0] for name, kind in registered().items()}
    about |= {name: recipe.about for name, recipe in NAMED.items()}
    about |= {f"@{name}": f"{len(entries)} strategies" for name, entries in lists().items()}
    before = f"{done.rstrip()} {bar} " if bar else ""
    return [(before + name, " ".join(text.split())) for name, text in about.items() if name.startswith(begun.lstrip())]


def inputs(incomplete: str) -> list[Choice]:
    """Return scenarios by name, and files and folders."""
    from ctxbench.scenarios.embedded import SCENARIOS

    named = [(name, about) for name, about in SCENARIOS.items() if name.startswith(incomplete)]
    return [*named, *((path, "") for path in _paths(incomplete))]


def runs(incomplete: str) -> list[Choice]:
    """Return the run folders in `runs/`, and other files and folders."""
    made = sorted(str(path.parent) for path in Path("runs").glob("*/manifest.json"))
    found = [path for path in made if path.startswith(incomplete)]
    return [(path, "a run") for path in found] or [(path, "") for path in _paths(incomplete)]


def models(incomplete: str) -> list[Choice]:
    """Return models with a price, a few at most."""
    from ctxbench.metrics.models import model_names

    return [(name, "") for name in sorted(model_names()) if name.startswith(incomplete)][:_MOST_MODELS]


def _paths(incomplete: str) -> Iterator[str]:
    """Yield the paths that begin so; folders end in a slash."""
    folder, _, begun = incomplete.rpartition("/")
    place = Path(f"{folder}/" if folder or incomplete.startswith("/") else ".")
    if not place.is_dir():
        return
    for path in sorted(place.iterdir()):
        if path.name.startswith(begun) and not (path.name.startswith(".") and not begun):
            yield f"{folder}/" * bool(folder or incomplete.startswith("/")) + path.name + "/" * path.is_dir()
