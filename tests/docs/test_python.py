"""docs/mlflow-and-notebooks.md: the Python on it runs, line by line, on recordings of a user's own."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

import pytest

import ctxbench
from ctxbench.scenarios.embedded import scenario

TEXT = (Path(__file__).parents[2] / "docs" / "mlflow-and-notebooks.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_the_first_lines_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From `import ctxbench` to the report, with an earlier run to compare with, and strategies of one's own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recordings").mkdir()
    for number, each in enumerate(islice(scenario("demo"), 2)):
        (tmp_path / "recordings" / f"{number}.jsonl").write_bytes(each.to_json())
    ctxbench.run("recordings", strategies="none", out="runs/before")
    exec(compile("".join(BLOCKS[:2]), "docs/mlflow-and-notebooks.md", "exec"), {"__name__": "__main__"})
    assert "2 conversations" in capsys.readouterr().out
    assert (tmp_path / "runs" / "mine" / "report" / "report.html").is_file()
