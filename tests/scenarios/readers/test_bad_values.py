"""A wrong value in a recording of each format: the error names line and field, and the rest is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxbench.scenarios.read import find, read
from ctxbench.scenarios.source import Problems
from tests.scenarios.readers.samples import SAMPLES
from tests.scenarios.readers.test_fuzz import changed

ROWS = [row.strip("| ").split(" | ") for row in Path(__file__).with_name("bad_values.md").read_text().splitlines()[2:]]


@pytest.mark.parametrize(("name", "path", "value", "fault", "left"), ROWS, ids=[f"{row[0]} {row[1]}" for row in ROWS])
def test_a_wrong_value_is_named_by_line_and_field(
    name: str, path: str, value: str, fault: str, left: str, tmp_path: Path
) -> None:
    """It is one problem, whose place is that of the value or of what it spoils; the other conversations are read."""
    sample = SAMPLES[name]
    steps = tuple(int(step) if step.isdecimal() else step for step in path.split("."))
    records = changed(sample.records(2), steps, "replace", json.loads(value))
    file = sample.write(tmp_path, sample.text(records))
    problems = Problems()
    found = list(read(find([file], problems, name), problems))
    [error] = problems.errors
    assert f"{error.place.line}: {error.place.field}: {error.what}".startswith(fault)
    assert error.place.file == str(file)
    assert error.remedy
    assert len(found) == int(left)
