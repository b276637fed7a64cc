"""`ctxbench describe`: a set that cannot be read."""

from pathlib import Path

from tests.harness.command import ctxbench


def test_a_set_that_cannot_be_read_loses_nothing_else(tmp_path: Path) -> None:
    """A path that is not there is named once, and the others are described; none at all is an error."""
    described = ctxbench("describe", "nowhere", "questions", cwd=tmp_path, code=2)
    assert "left out: nowhere: there is no such file or folder" in described.stderr
    assert "questions" in described.stdout
    assert "nothing to describe" in ctxbench("describe", "nowhere", cwd=tmp_path, code=2).stderr
