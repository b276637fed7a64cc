"""Check a release: the sdist, the wheel built from it, one version in all places, and the issue templates."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path, PurePosixPath

import pytest

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
PACKAGE = ROOT / "src" / "ctxbench"
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def build(what: str, tree: Path, into: Path) -> Path:
    """Build a wheel or an sdist as `make dist` does, at a fixed time; return it."""
    code = f"import sys; from setuptools.build_meta import build_{what} as build; build(sys.argv[1])"
    environment = os.environ | {"SOURCE_DATE_EPOCH": "1700000000"}
    subprocess.run([sys.executable, "-c", code, into], cwd=tree, env=environment, check=True, capture_output=True)
    (built,) = into.glob("*.whl" if what == "wheel" else "*.tar.gz")
    return built


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of this tree, with the tests in it."""
    left_out = shutil.ignore_patterns(".*", "build", "dist", "runs", "*.egg-info", "__pycache__", "notebooks")
    return Path(shutil.copytree(ROOT, tmp_path_factory.mktemp("tree") / "tree", symlinks=True, ignore=left_out))


@pytest.fixture(scope="module")
def sdist(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist of this tree."""
    return build("sdist", tree, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that is built from the sdist."""
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    return build("wheel", folder / f"ctxbench-{VERSION}", sdist.parent)


def shipped() -> set[str]:
    """Return the files of the package in this tree, by their paths below src/."""
    files = (Path(at) / name for at, _, names in os.walk(PACKAGE, followlinks=True) for name in names)
    return {str(file.relative_to(PACKAGE.parent)) for file in files if file.suffix != ".pyc"}


def test_the_sdist_has_what_the_build_needs_and_no_tests(sdist: Path) -> None:
    """Every file of the package, the project's own texts, and nothing else: no test, no data of a test."""
    with tarfile.open(sdist) as archive:
        names = {PurePosixPath(*PurePosixPath(item.name).parts[1:]) for item in archive if item.isfile()}
    texts = ("CHANGELOG.md", "LICENSE", "MANIFEST.in", "PKG-INFO", "README.md", "SECURITY.md")
    assert {str(name) for name in names if name.parts[0] != "src"} == {*texts, "pyproject.toml", "setup.cfg"}
    package = {str(name.relative_to("src")) for name in names if name.parts[:2] == ("src", "ctxbench")}
    assert package == shipped()


def test_the_sdist_builds_the_same_wheel(tree: Path, sdist: Path, wheel: Path, tmp_path: Path) -> None:
    """Byte by byte what the tree builds, in another folder at another time; it has every file of the package."""
    assert build("wheel", tree, tmp_path).read_bytes() == wheel.read_bytes()
    with zipfile.ZipFile(wheel) as archive:
        assert {name for name in archive.namelist() if ".dist-info/" not in name} == shipped()
    assert (sdist.name, wheel.name) == (f"ctxbench-{VERSION}.tar.gz", f"ctxbench-{VERSION}-py3-none-any.whl")


def test_the_action_installs_the_wheel(wheel: Path, tmp_path: Path) -> None:
    """Its first step puts a wheel that it is given into an empty environment, which then has the command."""
    venv.create(tmp_path, with_pip=True)
    step, _ = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["runs"]["steps"]
    offline = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1"}
    subprocess.run(["bash", "-eo", "pipefail", "-c", step["run"]], env={**offline, "CTXBENCH": str(wheel)}, check=True)
    assert (tmp_path / "bin" / "ctxbench").exists()
    (installed,) = tmp_path.glob("lib/python*/site-packages/ctxbench-*.dist-info")
    assert installed.name == f"ctxbench-{VERSION}.dist-info"


def test_the_version_is_one() -> None:
    """The newest entry of the changelog, and every wheel or tag that a page names, have the project's version."""
    newest = re.search(r"^## \[(.*?)\]", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == VERSION
    pages = [ROOT / "README.md", ROOT / "action.yml", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    text = "".join(page.read_text("utf-8") for page in pages)
    assert set(re.findall(r"ctxbench(?:-|==|@v)(\d+\.\d+\.\d+)", text)) == {VERSION}


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_an_issue_form_can_be_filled_in(form: Path) -> None:
    """It has what GitHub asks of a form."""
    content = yaml.safe_load(form.read_text("utf-8"))
    assert {"name", "description", "body"} <= content.keys()
    assert len({(field["id"], field["attributes"]["label"]) for field in content["body"]}) == len(content["body"])
