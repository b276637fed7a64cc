"""docs/pytest.md: its test, its settings and its commands, in a project of their own."""

import re
import shlex
from pathlib import Path

from ctxbench.scenarios.embedded import scenario
from tests.harness.command import forked
from tests.harness.test_pytest_plugin import PLUGIN

TEXT = (Path(__file__).parents[2] / "docs" / "pytest.md").read_text("utf-8")
FILES = dict(re.findall(r"^`(\S+)`\n\n```\w+\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL))
COMMANDS = re.findall(r"^```console\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_what_the_page_shows_runs(tmp_path: Path) -> None:
    """Its strategy fails on recordings that it breaks, as the page shows; the baseline is written, the gate passes."""
    (tmp_path / "recordings").mkdir()
    coding = [each for each in scenario("demo") if each.id.startswith("coding/")]
    for number, each in enumerate(coding[:2]):
        (tmp_path / "recordings" / f"{number}.jsonl").write_bytes(each.to_json())
    assert set(FILES) == {"test_context.py", "pytest.ini"}
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, "utf-8")
    (tmp_path / "gate.toml").write_text("[metrics.tokens_sent]\nrelative = 0.02\n")
    (block,) = COMMANDS
    printed = []
    for line in block.splitlines():
        program, *words = shlex.split(line)
        assert program == "pytest"
        done = forked("pytest", ["pytest", *PLUGIN, *words], tmp_path)
        printed.append(done.stdout)
        assert done.returncode == 1, done.stdout + done.stderr
    assert "assert not run.verdict().objections(STRATEGY)" in printed[0]
    assert "AssertionError: assert not ['" in printed[0]
    assert "written: " in printed[0]
    assert "The gate passes" in printed[1]
