"""Memory follows the longest record and the parts under way, not the size of the files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

GIGABYTE = 1_000_000_000
MOST = 500 * 1024
"""kB of resident memory."""

READ = """
import resource, sys
from pathlib import Path
from ctxbench.scenarios.read import find, read
from ctxbench.scenarios.source import Problems
problems = Problems()
count = sum(1 for _ in read(find([Path(sys.argv[1])], problems), problems))
print(count, len(problems.errors), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
RUN = """
import resource, sys
from pathlib import Path
from ctxbench.harness.engine.plan import RunInputs
from ctxbench.harness.engine.plan import Plan, execute
manifest = execute(Plan(RunInputs((sys.argv[1],)), ("none", "window(max_tokens=8000)")), Path(sys.argv[2]))
print(manifest.conversations, len(manifest.problems), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def chat(number: int) -> str:
    text = " ".join(f"line {number} {at} of the log says {number * at % 9973}" for at in range(60))
    said = [{"role": role, "content": f"{text} {role} {turn}"} for turn in range(20) for role in ("user", "assistant")]
    return json.dumps({"id": f"c{number}", "messages": said})


def lines(path: Path) -> int:
    """A JSON Lines file of a gigabyte."""
    count = 0
    with path.open("w") as file:
        while file.tell() < GIGABYTE:
            file.write(chat(count) + "\n")
            count += 1
    return count


def test_a_gigabyte_in_500_mb(tmp_path: Path) -> None:
    """A file of 1 GB is replayed within 500 MB."""
    path = tmp_path / "big.jsonl"
    count = lines(path)
    command = [sys.executable, "-c", RUN, str(path), str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found, problems, most = map(int, done.stdout.split())
    assert (found, problems) == (count, 0)
    assert most < MOST
