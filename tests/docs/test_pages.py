"""README.md, CONTRIBUTING.md and docs/: what they name is there, and the site builds without a warning."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
ROOMS = ("scenarios", "metrics", "strategies", "harness", "reports", "tests", "docs", "notebooks")
page = pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))


def test_the_readme_is_short() -> None:
    """A newcomer reads it in five minutes."""
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 100


@page
def test_links_lead_somewhere(page: Path) -> None:
    """Every link to a file of the repository, and to a heading where it names one."""
    for target, heading in re.findall(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]*))?\)", page.read_text("utf-8")):
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), target
        if heading:
            heads = re.findall(r"^#+ (.*)$", file.read_text("utf-8"), re.MULTILINE)
            assert heading in [re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads], heading


@page
def test_paths_are_there(page: Path) -> None:
    """Every path in a room that is set as code. The names of files that the reader is to make are not in a room yet."""
    paths = re.findall(rf"`((?:{'|'.join(ROOMS)})/[\w./-]*)`", page.read_text("utf-8"))
    missing = {path for path in paths if "my_" not in path and not (ROOT / path).exists()}
    assert not missing


def commands(text: str) -> Iterator[list[str]]:
    """Yield every ctxbench command of the blocks of commands, as words, without comments."""
    for block in re.findall(r"^ *```console\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["ctxbench"]:
                yield words[1:]


@page
def test_commands_have_the_options_that_they_are_given(page: Path) -> None:
    """Every command on the page is one of the program's, with options that it has."""
    import typer

    from ctxbench.cli import app

    for words in commands(page.read_text("utf-8")):
        command: Any = typer.main.get_command(app)
        if words[0] == "config" and words[1:2] != ["--json"]:  # which is followed by another command
            words = words[1:] or words
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        assert not hasattr(command, "commands"), words
        known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        given = {word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        assert given <= known | {"--help"}, (words, given - known)


def test_every_decision_is_in_the_index() -> None:
    """The index names each page by its title."""
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text("utf-8")
    for file in folder.glob("0*.md"):
        title = file.read_text("utf-8").splitlines()[0].partition(". ")[2]
        assert f"[{title}]({file.name})" in index


@pytest.mark.slow
def test_the_site_builds(tmp_path: Path) -> None:
    """MkDocs finds no broken link, no missing page and no module that cannot be documented; nothing is fetched."""
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    reference = (tmp_path / "reference" / "commands.html").read_text("utf-8")
    assert 'id="ctxbench-run"' in reference
    assert 'id="ctxbench-lab-tiers"' in reference
    fetches = re.compile(r'(?:<script[^>]* src|<link[^>]* rel="stylesheet"[^>]* href)="(https?:[^"]*)"')
    for html in tmp_path.rglob("*.html"):
        assert not fetches.findall(html.read_text("utf-8")), html.name
    titles = [entry["title"] for entry in json.loads((tmp_path / "search/search_index.json").read_bytes())["docs"]]
    for sought in ("cost", "window", "my own model", "CI"):  # a page or a heading has all words
        words = [re.compile(rf"\b{word}\b", re.I) for word in sought.split()]
        assert any(all(word.search(title) for word in words) for title in titles), sought


PROMISES = (ROOT / "docs" / "promises.md").read_text("utf-8").partition("## What was attacked")[0]
HELD = re.findall(r"^\| (.+) \| `(tests/\S+)::(\w+)` \|$", PROMISES, re.M)


@pytest.mark.parametrize(("promise", "path", "name"), HELD, ids=[row[2] for row in HELD])
def test_a_promise_is_held_by_a_test(promise: str, path: str, name: str) -> None:
    """The test that a promise names is defined in that file; none stands without one, and there are few."""
    assert re.search(rf"^def {name}\(", (ROOT / path).read_text("utf-8"), re.M), promise
    rows = re.findall(r"^\| .+ \|$", PROMISES, re.M)
    assert len(HELD) == len(rows) - rows.count("| promise | held by |") <= 12


VECTORS = {
    "strategies/test_providers.py": "A1–A10, C3–C6, D2–D5, S1–S3, O1–O4, O11, O12, G1, G2",
    "harness/bill/test_bill.py": "A6, A10, C1, C2",
    "metrics/validation/test_comparison.py": "A10",
    "metrics/cache/test_explicit.py": "C7",
    "scenarios/readers/test_claude_code.py": "D1",
    "metrics/cache/test_boundary.py": "O5–O10",
    "strategies/adapters/test_google_adk.py": "G3",
    "metrics/cache/test_cached_content.py": "G4",
    "strategies/test_agents.py": "B1–B19",
    "scenarios/readers/test_pi.py": "B15",
}
NUMBERED = {"A": 10, "B": 19, "C": 7, "D": 5, "G": 4, "O": 12, "S": 3}
"""Number of test vectors by their letter: documented examples, and numbers worked out from providers' rules."""


def vectors(text: str) -> Iterator[str]:
    """Yield the vectors that a text names, each by itself: A1–A3 are A1, A2 and A3."""
    for part in text.split(", "):
        first, _, last = part.partition("–")
        yield from (f"{first[0]}{at}" for at in range(int(first[1:]), int((last or first)[1:]) + 1))


def test_every_vector_is_held_by_a_test() -> None:
    """A test of the file has the vector's number in its name or its first line, and none is left out."""
    every = {f"{letter}{at}" for letter, last in NUMBERED.items() for at in range(1, last + 1)}
    files = {path: (ROOT / "tests" / path).read_text("utf-8") for path in VECTORS}
    held = {name: files[path] for path, text in VECTORS.items() for name in vectors(text)}
    assert held.keys() == every
    assert [name for name, source in held.items() if not re.search(rf"\b{name}\b", source)] == []
