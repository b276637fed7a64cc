"""The Python on the pages of the API runs, line by line, on recordings of a user's own."""

import re
from itertools import islice
from pathlib import Path

import pytest

import ctxbench
from ctxbench.metrics.figures import OWN
from ctxbench.scenarios.embedded import scenario

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("mlflow-and-notebooks.md", "metrics.md", "reference/python.md")
CODE = {
    page: "".join(re.findall(r"^```python\n(.*?)^```$", (DOCS / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)[:2])
    for page in PAGES
}


@pytest.mark.parametrize("page", PAGES)
def test_the_first_lines_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From `import ctxbench` to the report, with an earlier run to compare with; one's own strategies and metrics."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recordings").mkdir()
    for number, each in enumerate(islice(scenario("demo"), 2)):
        (tmp_path / "recordings" / f"{number}.jsonl").write_bytes(each.to_json())
    ctxbench.run("recordings", strategies="none", out="runs/before")
    try:
        exec(compile(CODE[page], page, "exec"), {"__name__": "__main__"})
    finally:
        OWN.clear()
    if page == PAGES[0]:
        assert "2 conversations" in capsys.readouterr().out
        assert (tmp_path / "runs" / "mine" / "report" / "report.html").is_file()


def test_every_public_name_has_an_example() -> None:
    """Every public name of `ctxbench` stands in code that the test above runs."""
    assert [name for name in ctxbench.__all__ if f"ctxbench.{name}" not in CODE["reference/python.md"]] == []
