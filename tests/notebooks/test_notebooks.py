"""The notebooks: what is committed of them, and that they run from top to bottom without a network."""

import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
AT_MOST = 300
"""Seconds for a cell; a notebook takes 10 s on an idle machine."""


def cells(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return found


def test_there_are_four() -> None:
    """All that the README names, and each begins with its title."""
    names = {path.stem for path in NOTEBOOKS}
    assert names == {
        "choose-a-strategy", "fewer-tokens-higher-cost", "write-a-strategy-and-a-metric", "compare-two-versions"
    }  # fmt: skip
    about = (NOTEBOOKS[0].parent / "README.md").read_text(encoding="utf-8")
    for path in NOTEBOOKS:
        assert "".join(cells(path)[0]["source"]).startswith("# ")
        assert f"({path.name})" in about


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_output_is_committed(path: Path) -> None:
    """No output, no count of executions, and nothing that an editor adds."""
    for cell in cells(path):
        assert set(cell) <= {"id", "cell_type", "metadata", "source", "outputs", "execution_count"}
        assert cell["metadata"] == {}
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
    metadata = json.loads(path.read_text(encoding="utf-8"))["metadata"]
    assert set(metadata) == {"kernelspec", "language_info"}
    assert metadata["kernelspec"]["name"] == "python3"
    assert metadata["language_info"] == {"name": "python"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Jupyter's own
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From top to bottom, in an empty folder and without a network: it draws, writes nothing to stderr, and ends with
    a sentence that its last cell prints."""
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    notebook = nbformat.read(path, as_version=4)
    where = {"metadata": {"path": str(tmp_path)}}
    client.NotebookClient(notebook, timeout=AT_MOST, kernel_name="python3", resources=where).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert "".join(output.text for output in notebook.cells[-1].outputs).endswith(".\n")
    assert not [output.text for output in outputs if output.output_type == "stream" and output.name == "stderr"]
