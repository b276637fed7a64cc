"""Lists of what is installed: a hash for every file, the versions of constraints.txt, and no addresses."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LISTS = sorted((ROOT / "requirements").glob("*.txt"))
APART = sorted((ROOT / "constraints").glob("*.txt"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
PIN = re.compile(r"([a-z0-9][a-z0-9.-]*)==([A-Za-z0-9.+!-]+)(?: ; [^\\]+?)?(?: \\\n    --hash=sha256:[0-9a-f]{64})+\n")


def plain(name: str) -> str:
    """Return a package's name as an index writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(path: Path) -> dict[str, str]:
    """Return the version of each package in a list."""
    return {plain(name): version for name, version in PIN.findall(path.read_text())}


def constraints() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return {plain(name): version for name, version in (line.split("==") for line in lines)}


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_every_line_is_a_pin_with_hashes(path: Path) -> None:
    """Nothing else stands in the list: no address, no option, no package without a hash."""
    assert PIN.sub("", path.read_text()) == ""


@pytest.mark.parametrize("path", [ROOT / "constraints.txt", *APART], ids=lambda path: path.stem)
def test_constraints_are_names_and_versions(path: Path) -> None:
    """One `name==version` a line, in order, and nothing else; a file of its own belongs to an extra."""
    lines = path.read_text().splitlines()
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line) for line in lines)
    assert lines == sorted(lines, key=lambda line: line.encode().upper())
    assert path.stem in ("constraints", *EXTRAS)


@pytest.mark.slow
@pytest.mark.parametrize("extra", EXTRAS)
def test_every_extra_can_be_installed(extra: str) -> None:
    """uv finds versions for it under its own file of constraints, else under constraints.txt. Needs an index."""
    own = ROOT / "constraints" / f"{extra}.txt"
    given = ["-q", "-c", own if own.exists() else ROOT / "constraints.txt"]
    given += ["--no-python-downloads", "--python-version=3.12"] if extra == "adapter-openhands" else []
    uv = pytest.importorskip("uv").find_uv_bin()
    done = subprocess.run(
        [uv, "pip", "compile", ROOT / "pyproject.toml", "--extra", extra, *given], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("name", ["bench", "test", "hnswlib", "libcachesim"])
def test_versions_are_those_of_the_constraints(name: str) -> None:
    """The lists agree, but for packages that another system or another Python needs alone."""
    text, pinned = (ROOT / "requirements" / f"{name}.txt").read_text(), constraints()
    elsewhere = {plain(line.split("==")[0]) for line in text.splitlines() if " ; " in line}
    found = pins(ROOT / "requirements" / f"{name}.txt")
    assert {each: version for each, version in found.items() if pinned.get(each) != version}.keys() <= elsewhere


@pytest.mark.parametrize(("name", "extras"), [("bench", ()), ("test", ("test", "mlflow", "docs", "adapter-langchain"))])
def test_what_the_project_names_is_listed(name: str, extras: tuple[str, ...]) -> None:
    """A dependency added to pyproject.toml without `make hashes` would not be installed."""
    wanted = [*PROJECT["dependencies"], *(each for extra in extras for each in EXTRAS[extra])]
    names = {plain(re.split(r"[<>=!\[; ]", each)[0]) for each in wanted}
    assert names <= pins(ROOT / "requirements" / f"{name}.txt").keys()
