"""Recordings of absurd sizes: each is read whole in bounded memory, or refused in one line."""

from __future__ import annotations

import gzip
import json
import random
import re
import resource
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import zstandard

from tests.attacks import Outcome, outcome
from tests.harness.command import CTXBENCH

MEMORY = 3 << 30
"""Bytes of address space that an attacked command may have."""
HEAD = b'{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hi"}]}\n{"messages": ['
NOTHING = b" " * (1 << 26)


def bombs(seed: int, tries: int) -> Outcome:
    """Pack much of nothing into little: gzip, zstd, zip and tar."""

    def bomb(folder: Path, chance: random.Random) -> None:
        times = chance.randint(24, 48)
        match chance.choice(("gz", "zst", "tar.gz", "zip")):
            case "gz":
                (folder / "a.jsonl.gz").write_bytes(gzip.compress(HEAD) + gzip.compress(NOTHING) * times)
            case "zst":
                (folder / "a.jsonl.zst").write_bytes(zstandard.compress(HEAD) + zstandard.compress(NOTHING) * times)
            case "tar.gz":
                member = tarfile.TarInfo("a.jsonl")
                member.size = len(HEAD) + times * len(NOTHING)
                (folder / "a.tar.gz").write_bytes(gzip.compress(member.tobuf() + HEAD) + gzip.compress(NOTHING) * times)
            case _:
                _zipped(folder / "a.zip", times)

    return _run(seed, tries, bomb, says=r"(left out|not recordings): |to over 1,024 MiB, 1,000 times its size")


def many_files(seed: int, tries: int) -> Outcome:
    """Read 10,000 small files."""

    def fill(folder: Path, chance: random.Random) -> None:
        for number in range(10_000):
            messages = [{"role": "user", "content": f"hello {number}"}, {"role": "assistant", "content": "hi"}]
            below = folder / f"{chance.randrange(100)}"
            below.mkdir(exist_ok=True)
            (below / f"{number}.json").write_text(json.dumps({"messages": messages}))

    return _run(seed, tries, fill, says="10,000 conversations")


def long_conversation(seed: int, tries: int) -> Outcome:
    """Read one conversation of 100,000 messages."""

    def write(folder: Path, chance: random.Random) -> None:
        messages = [
            {"role": ("user", "assistant")[at % 2], "content": f"message {at} {chance.random()}"}
            for at in range(100_000)
        ]
        (folder / "a.json").write_text(json.dumps({"messages": messages}))

    return _run(seed, tries, write, says="50,000")


def long_line(seed: int, tries: int, size: int = 200 << 20) -> Outcome:
    """Convert and check a recording that is one line, of a long message or of many: at most 3 times its size."""
    chance, lost = random.Random(seed), []
    for number in range(tries):
        with TemporaryDirectory() as name:
            contents = chance.choice((("x" * size,), tuple(f"{at} " + "y" * 990 for at in range(size // 1000))))
            _write_chat(Path(name, "small.jsonl"), ("hi",))
            _write_chat(Path(name, "big.jsonl"), contents)
            done = subprocess.run(
                [sys.executable, "-c", _PEAKS], cwd=name, capture_output=True, text=True, check=False, timeout=600
            )
            peaks = [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("peak ")]
            if done.returncode or len(peaks) != 2 or peaks[1] - peaks[0] > 3 * size:
                lost.append(f"try {number}: {len(contents):,} messages: {peaks}: {done.stderr[-300:]}")
    return outcome(tries, lost)


# The highest memory of each command with each file, in bytes; what is imported for the small one is not the big one's.
_PEAKS = """
import re
from pathlib import Path
from ctxbench.cli import app
for name in ("small", "big"):
  Path("/proc/self/clear_refs").write_text("5")
  app(["convert", f"{name}.jsonl", "--to", f"{name}-out.jsonl"], standalone_mode=False)
  print("peak", 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]))
"""


def _write_chat(path: Path, contents: Sequence[str]) -> None:
    messages = [{"role": "user", "content": "go"}, *({"role": "assistant", "content": text} for text in contents)]
    path.write_text(json.dumps({"messages": messages}) + "\n")


def _run(seed: int, tries: int, make: Callable[[Path, random.Random], None], says: str) -> Outcome:
    """Run `none` and a window over what is made; it must end in one piece, with those words."""
    chance, lost = random.Random(seed), []
    for number in range(tries):
        with TemporaryDirectory() as name:
            Path(name, "in").mkdir()
            make(Path(name, "in"), chance)
            command = [CTXBENCH, "run", "in", "-s", "none", "-s", "window(messages=10)", "-o", "run", "--jobs", "1"]
            done = subprocess.run(
                command, cwd=name, capture_output=True, text=True, check=False, preexec_fn=_bounded, timeout=600
            )
            said = done.stdout + done.stderr
            if done.returncode not in (0, 2) or not re.search(says, said) or "Traceback" in said:
                lost.append(f"try {number}: exit code {done.returncode}: {said[-300:]}")
    return outcome(tries, lost)


def _bounded() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def _zipped(path: Path, times: int) -> None:
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed,
        packed.open("a.jsonl", "w", force_zip64=True) as file,
    ):
        file.write(HEAD)
        for _ in range(times):
            file.write(NOTHING)
