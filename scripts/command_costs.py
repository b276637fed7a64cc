"""Measure what ctxbench's commands cost beside their floors, and write docs/performance.md: `scripts/command_costs.py`.

    scripts/command_costs.py [--steps 1000000] [--rounds 3] [--recordings FOLDER] [--bench] [--write]

Each command runs in a process of its own, the rounds of all commands and floors in turn; the median of each counts.
Processor time is that of the process and its children, memory the largest resident set. A floor is the least work that
anyone has to do for the same result: parse the same bytes, tokenise each text once, copy the same Parquet. The fixed
cost of a command is what it takes for a conversation of two model calls; the rest is divided by the MB or the steps.
`--bench` measures the two long stages of `make bench` too.

`docs/performance.json` keeps the figures of each version that they were written for.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import version
from pathlib import Path

import msgspec

from ctxbench.scenarios.model import Conversation, Message, ToolCall

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
HISTORY = PAGE.with_suffix(".json")
_PLACE = re.compile(r"(<!-- table: commands -->\n).*?(<!-- end -->)", re.DOTALL)
PROGRAM = str(Path(sys.executable).with_name("ctxbench"))
PAIR = ("-s", "none", "-s", "window(max_tokens=8000)")
CALLS = 334
"""Model calls of a generated conversation, so that 1,000 of them under three strategies are a million steps."""
STRATEGIES = ("none", "window(max_tokens=8000)", "archive | cache_marks")

_PARSE = """
import sys, msgspec
for path in sys.argv[1:]:
    data = open(path, "rb").read()
    try:
        msgspec.json.decode(data)
    except msgspec.DecodeError:
        for line in data.splitlines():
            try:
                msgspec.json.decode(line)
            except msgspec.DecodeError:
                pass
"""
_TOKENISE = """
import os, sys, msgspec
from importlib.metadata import distribution
os.environ["TIKTOKEN_CACHE_DIR"] = str(distribution("litellm").locate_file("litellm/litellm_core_utils/tokenizers"))
import tiktoken
encoding = tiktoken.get_encoding("o200k_base")
for text in msgspec.json.decode(open(sys.argv[1], "rb").read()):
    encoding.encode_ordinary(text)
"""
_COPY = """
import sys
import pyarrow.parquet as pq
from pathlib import Path
out = Path(sys.argv[2]); out.mkdir(exist_ok=True)
for path in sorted(Path(sys.argv[1], "steps").glob("*.parquet")):
    pq.write_table(pq.read_table(path), out / path.name, compression="zstd")
"""
# A program that is shown a terminal draws its progress bar at once: the time until then is what a user waits.
_FIRST = """
import os, pty, signal, sys
process, terminal = pty.fork()
if not process:
    os.execv(sys.argv[1], sys.argv[1:])
while not os.read(terminal, 1 << 16).strip(b"\\x1b[?25l\\r\\n "):
    pass
os.kill(process, signal.SIGKILL)
os.waitpid(process, 0)
"""


@dataclass
class Measured:
    """A command, or a floor, and what each round of it cost."""

    name: str
    words: list[str]
    floor: str = ""
    once: bool = False
    least: list[str] | None = None
    """The same command on a conversation of two calls."""
    size: float = 0.0
    """Megabytes, or thousands of steps, that it works on."""
    unit: str = ""
    """Unit of milliseconds for each of them."""
    fixed: list[float] = field(default_factory=list)
    """Processor time of `least`, in each round."""
    processor: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    memory: int = 0

    def round(self, folder: Path) -> None:
        """Run it, unless it is measured once and has been."""
        if self.once and self.processor:
            return
        if self.least is not None:
            self.fixed.append(cost(self.least, folder)[0])
        processor, wall, memory = cost(self.words, folder)
        self.processor.append(processor)
        self.wall.append(wall)
        self.memory = max(self.memory, memory)


# Workers are children of a fork server, which outlives the command: whoever adopts it has their time.
_COST = """
import ctypes, json, os, resource, subprocess, sys, time
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
began = time.perf_counter()
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
wall = time.perf_counter() - began
try:
    while True:
        os.wait()
except ChildProcessError:
    pass
used = resource.getrusage(resource.RUSAGE_CHILDREN)
said = done.stderr.decode("utf-8", "replace")[-2000:] if done.returncode else ""
print(json.dumps([used.ru_utime + used.ru_stime, wall, used.ru_maxrss << 10, said]))
"""


def cost(words: list[str], folder: Path) -> tuple[float, float, int]:
    """Return processor and wall-clock seconds, and the largest resident set in bytes, of a command."""
    # By a small process in between: a child is at first as large as its parent.
    command = [sys.executable, "-S", "-c", _COST, *words]
    done = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE)
    processor, wall, memory, said = json.loads(done.stdout)
    if said:
        raise SystemExit(f"{' '.join(words)[:200]} …\n{said}")
    return processor, wall, memory


def generated(count: int, calls: int = CALLS) -> Iterator[Conversation]:
    """Yield conversations of an agent that calls a tool at each turn: no two texts of one conversation are the same."""
    for number in range(count):
        messages = [Message("s", "system", "You read files and say what is in them.")]
        for turn in range(calls // 2):
            call = f"call{turn}"
            messages += [
                Message(f"u{turn}", "user", f"What does file {turn} of project {number} say of part {turn * 7 % 13}?"),
                Message(
                    f"a{turn}", "assistant", "", (ToolCall(call, "read", f'{{"path": "src/{number}/{turn}.txt"}}'),)
                ),
                Message(f"t{turn}", "tool", f"line {turn * number}: value {turn}. " * 8, answers=call),
                Message(f"b{turn}", "assistant", f"It says {turn * number}, and the value is {turn}."),
            ]
        yield Conversation(f"c{number}", tuple(messages))


def texts_of(folder: Path) -> list[str]:
    """Return every text of some recordings."""
    from ctxbench.harness.engine.plan import RunInputs
    from ctxbench.scenarios.source import Problems

    conversations = RunInputs((str(folder),)).open(Problems()).conversations()
    return [message.text for conversation in conversations for message in conversation.messages if message.text]


def measured(options: argparse.Namespace, folder: Path) -> list[Measured]:
    """Return all commands and floors, with what they need made."""
    recordings = Path(options.recordings).resolve()
    files = [str(path) for path in sorted(recordings.rglob("*")) if path.suffix in (".json", ".jsonl")]
    texts = folder / "texts.json"
    texts.write_bytes(msgspec.json.encode(texts_of(recordings)))
    megabytes = sum(Path(path).stat().st_size for path in files) / 1e6
    conversations = max(1, options.steps // (CALLS * len(STRATEGIES)))
    thousands = conversations * CALLS * len(STRATEGIES) / 1000
    write(folder / "large.jsonl", generated(conversations))
    write(folder / "least.jsonl", generated(1, calls=2))
    run = [PROGRAM, "run", "--jobs", "1", "--overwrite"]
    strategies = [word for name in STRATEGIES for word in ("-s", name)]
    python = [sys.executable, "-c"]
    bare = ["--no-probes", "--no-answers"]
    empty, parse, tokens, copy = "an empty Python", "parse the same files", "tokenise each text", "copy the same steps"

    def pair(what: str, out: str, *words: str) -> Measured:
        ways = ([*run, name, *PAIR, *words, "--out", out] for name in (str(recordings), "least.jsonl"))
        return Measured(what, next(ways), tokens, least=next(ways), size=megabytes, unit="ms/MB")

    def large(what: str, *words: str, floor: str = copy, once: bool = False) -> Measured:
        least = [word.replace("large", "least") for word in words]
        return Measured(what, [*words], floor, once, least, thousands, "µs/step")

    made = large("run, large", *run, "large.jsonl", *strategies, *bare, "--out", "large", floor="", once=True)
    made.round(folder)
    for name in ("large", "least"):
        cost([PROGRAM, "gate", name, "--update", "--baseline", f"{name}.json"], folder)
    rows = [
        Measured(empty, [*python, "pass"]),
        Measured("ctxbench --help", [PROGRAM, "--help"], empty),
        Measured("ctxbench list strategies", [PROGRAM, "list", "strategies"], empty),
        Measured("first line of run", [*python, _FIRST, *run, str(recordings), *PAIR, "--out", "first"]),
        Measured(parse, [*python, _PARSE, *files]),
        Measured(tokens, [*python, _TOKENISE, str(texts)]),
        pair("run, none and window", "pair"),
        pair("the same without questions", "bare", *bare),
        Measured(copy, [*python, _COPY, "large", "copied"]),
        made,
        large("compare, large", PROGRAM, "compare", "large", "--json"),
        large("gate, large", PROGRAM, "gate", "large", "--baseline", "large.json", "--json"),
        large("report, large", PROGRAM, "report", "large", "--json"),
        large("report with its page, large", PROGRAM, "report", "large"),
        large("bill, large", PROGRAM, "bill", "large", "--json"),
    ]
    if options.bench:
        for way, jobs in (("one process", "1"), ("a process a core", "0")):
            out = f"standard-{jobs}"
            standard = [PROGRAM, "run", "standard", "--quiet", "--overwrite", "--jobs", jobs, "--out", out]
            claims = [PROGRAM, "lab", "claims", out, "--quick", "--brief", "--jobs", jobs]
            rows += [Measured(f"run standard, {way}", standard, once=True)]
            rows += [Measured(f"claims, {way}", claims, once=True)]
    return rows


def write(path: Path, conversations: Iterator[Conversation]) -> None:
    """Write conversations into a file, one in a line."""
    with path.open("wb") as file:
        file.writelines(conversation.to_json() + b"\n" for conversation in conversations)


def table(all_measured: list[Measured]) -> str:
    """Return the figures as Markdown."""
    floors = {each.name: statistics.median(each.processor) for each in all_measured}
    lines = [
        "| what | processor, s | the first time | of it fixed | and for each | wall-clock, s | memory, MB | "
        "times its floor | floor |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    for each in all_measured:
        processor, wall = statistics.median(each.processor), statistics.median(each.wall)
        ratio = f"{processor / floors[each.floor]:.1f} ×" if each.floor else "–"
        fixed, further = "–", "–"
        if each.fixed:
            least = statistics.median(each.fixed)
            fixed, further = f"{least:.2f}", f"{(processor - least) / each.size * 1e3:,.0f} {each.unit}"
        cells = (
            f"{processor:.2f}",
            f"{each.processor[0]:.2f}",
            fixed,
            further,
            f"{wall:.2f}",
            f"{each.memory / 1e6:.0f}",
            ratio,
        )
        lines.append(f"| {each.name} | {' | '.join(cells)} | {each.floor or '–'} |")
    return "\n".join(lines)


def remember(all_measured: list[Measured], options: argparse.Namespace) -> None:
    """Write the page, and add the figures to the history."""
    PAGE.write_text(_PLACE.sub(lambda place: f"{place[1]}{table(all_measured)}\n{place[2]}", PAGE.read_text()))
    history = json.loads(HISTORY.read_text()) if HISTORY.exists() else []
    figures = {
        each.name: {
            "processor": round(statistics.median(each.processor), 3),
            "wall": round(statistics.median(each.wall), 3),
            "fixed": round(statistics.median(each.fixed), 3) if each.fixed else None,
            "memory": each.memory,
        }
        for each in all_measured
    }
    entry = {
        "date": date.today().isoformat(),
        "ctxbench": version("ctxbench"),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "steps": options.steps,
        "rounds": options.rounds,
        "figures": figures,
    }
    HISTORY.write_text(json.dumps([*history, entry], indent=1) + "\n")


def main() -> None:
    """Measure, print, and write where that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1_000_000, help="steps of the large run")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--recordings", default=os.environ.get("CTXBENCH_RECORDINGS", "../shared/data"))
    parser.add_argument("--bench", action="store_true", help="measure the stages of `make bench` too")
    parser.add_argument("--write", action="store_true", help="write docs/performance.md and docs/performance.json")
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else every process compiles what it imports
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        all_measured = measured(options, folder)
        for _ in range(options.rounds):
            for each in all_measured:
                each.round(folder)
    print(table(all_measured))
    if options.write:
        remember(all_measured, options)


if __name__ == "__main__":
    main()
