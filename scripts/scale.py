"""Measure how runs grow, with their recordings and with their workers, for docs/cluster.md: `scripts/scale.py`.

    scripts/scale.py size [--conversations 1000 8000] [--jobs 2] [--write]
    scripts/scale.py driver [--write]
    scripts/scale.py workers [--rounds 3] [--write]

`size` makes conversations of the scenario `load`, some 100 model calls each, replays them, and says what a billion
steps cost. `driver` measures what a shard costs the driver of a Ray cluster and what it costs a worker, and computes
from both how much of their time many workers would be busy. `workers` runs the same recordings by one and by two.

Processor time is that of a command and of all processes that it starts, read from /proc ten times a second; memory is
the largest resident set of one of them. Both need Linux.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow.parquet as pq

from ctxbench.harness.engine import cluster
from ctxbench.harness.engine.plan import DEFAULT_STRATEGIES, Plan, RunInputs, execute
from ctxbench.harness.engine.shard import Done, PartTask, PartWriter
from ctxbench.harness.engine.workers import Engine
from ctxbench.metrics.tokens import text_counter
from ctxbench.scenarios.errors import RunError

PAGE = Path(__file__).parents[1] / "docs" / "cluster.md"
PROGRAM = str(Path(sys.executable).with_name("ctxbench"))
TURNS = 46
"""User turns of a conversation of `load`: about 100 model calls."""
PAIR = ("none", "window(max_tokens=8000)")
STRATEGIES = (*PAIR, "archive | cache_marks")
WORKERS = (2, 16, 64, 256)
BILLION = 10**9
GLANCE = 0.1
"""Seconds between two looks at the processes of a command."""

_RUN = """
import sys, ctxbench
_, path, out, jobs, *strategies = sys.argv
ctxbench.run(path, out=out, jobs=int(jobs), strategies=strategies, probes=False, answers=False, overwrite=True)
"""


class Used(NamedTuple):
    """Resources that a command and the processes that it started have used."""

    processor: float
    wall: float
    memory: int
    """Largest resident set of the command itself, in bytes."""
    largest: int
    """Largest resident set of any of its processes."""


def used(words: list[str]) -> Used:
    """Run a command, and return what it used. Raises SystemExit with its last words if it fails."""
    # Else a process whose parent has ended, such as a worker's, would no longer be found below this one.
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    seconds: dict[tuple[int, int], float] = {}
    memory: dict[tuple[int, int], int] = {}
    began = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=said)
        first = None
        while process.poll() is None:
            for identity, processor, resident in _processes_below(os.getpid()):
                seconds[identity] = max(processor, seconds.get(identity, 0.0))
                memory[identity] = max(resident, memory.get(identity, 0))
                first = identity if identity[0] == process.pid else first
            time.sleep(GLANCE)
        wall = time.perf_counter() - began
        if process.returncode:
            said.seek(0)
            raise SystemExit(f"{' '.join(words)[:200]} …\n{said.read().decode('utf-8', 'replace')[-2000:]}")
    with suppress(ChildProcessError):
        while True:
            os.wait()
    assert first is not None
    return Used(sum(seconds.values()), wall, memory[first], max(memory.values()))


_TICK = os.sysconf("SC_CLK_TCK")


def _processes_below(root: int) -> list[tuple[tuple[int, int], float, int]]:
    """Return the processes that descend from one: number and start, processor seconds, largest resident set."""
    found: dict[int, tuple[int, int, float]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            ticks = int(fields[11]) + int(fields[12])
            found[int(path.parent.name)] = (int(fields[1]), int(fields[19]), ticks / _TICK)
    below = {root}
    for number in sorted(found, key=lambda number: found[number][1]):  # parents started before their children
        if found[number][0] in below:
            below.add(number)
    below.discard(root)
    return [((number, found[number][1]), found[number][2], _peak(number)) for number in below]


def _peak(number: int) -> int:
    try:
        peak = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{number}/status").read_text())
    except OSError:
        return 0
    return int(peak[1]) << 10 if peak else 0


def convert(scenario: str, turns: int, conversations: int, path: Path) -> list[str]:
    """Return the command that writes conversations of a scenario into a file."""
    numbers = ["--turns", str(turns), "--conversations", str(conversations)]
    return [PROGRAM, "convert", scenario, *numbers, "--to", str(path)]


def weight(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def size(options: argparse.Namespace, folder: Path) -> str:
    """Return the table of runs of several sizes, and what a billion steps cost by the last two of them."""
    lines = [
        "| conversations | MB | made in, s | memory for that, MB | steps | processor, s | steps per core-second | "
        "memory: driver, MB | largest worker, MB | stored, bytes per step |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    counted: list[tuple[int, float, int]] = []
    for conversations in options.conversations:
        path, out = folder / "load.jsonl", folder / "run"
        written = used(convert("load", TURNS, conversations, path))
        made = used([sys.executable, "-c", _RUN, str(path), str(out), str(options.jobs), *STRATEGIES])
        steps = sum(pq.read_metadata(part).num_rows for part in (out / "steps").glob("*.parquet"))
        stored = weight(out)
        counted.append((steps, made.processor, stored))
        cells = [f"{conversations:,}", f"{path.stat().st_size / 1e6:,.0f}", f"{written.processor:,.0f}"]
        cells += [f"{written.memory / 1e6:.0f}", f"{steps:,}", f"{made.processor:,.0f}"]
        cells += [f"{steps / made.processor:,.0f}", f"{made.memory / 1e6:.0f}", f"{made.largest / 1e6:.0f}"]
        lines.append(f"| {' | '.join(cells)} | {stored / steps:.0f} |")
        print(lines[-1], file=sys.stderr)
        path.unlink()
    (steps, processor, stored), (more, longer, larger) = counted[-2:]
    each = (longer - processor) / (more - steps)
    work = each * BILLION / 3600
    rented = work / options.efficiency
    lines += [
        "",
        f"A further step costs {each * 1e6:,.0f} µs of a core, so a billion steps are {work:,.0f} core-hours.",
        f"On {options.cores} cores that are busy {options.efficiency:.0%} of their time they take "
        f"{rented / options.cores:,.1f} hours, and cost {rented * options.price:,.2f} dollars if a core",
        f"costs {options.price} dollars an hour, which is an assumption. They take up "
        f"{(larger - stored) / (more - steps):,.0f} GB.",
    ]
    return "\n".join(lines)


@dataclass(frozen=True)
class Load:
    """Recordings and strategies, and whether probes are asked and answered."""

    name: str
    recordings: tuple[str, int, int]
    """Scenario, user turns and number of conversations."""
    strategies: tuple[str, ...]
    questions: bool = False

    def plan(self, folder: Path) -> Plan:
        """Return the plan, with the recordings in a file."""
        scenario, turns, number = self.recordings
        path = folder / f"{scenario}-{turns}-{number}.jsonl"
        if not path.exists():
            used(convert(scenario, turns, number, path))
        return Plan(RunInputs((str(path),)), self.strategies, probes=self.questions, answers=self.questions)


LOADS = (
    Load("none and window, short messages, no questions", ("mem_001", 45, 2400), PAIR),
    Load("none and window, no questions", ("load", TURNS, 500), PAIR),
    Load("none, window and archive, no questions", ("load", TURNS, 500), STRATEGIES),
    Load("every strategy, with questions", ("load", TURNS, 500), DEFAULT_STRATEGIES, questions=True),
)
WORKED = 2
"""Shards of a load whose work is measured; all are read and sent."""


class Shares(NamedTuple):
    """Seconds that a shard costs."""

    read: float
    """Processor seconds of a process that reads the shard, without a cluster."""
    sent: float
    """Processor seconds of the driver of a cluster, reading and all."""
    received: float
    """Processor seconds of a worker that does nothing with it."""
    work: float
    """Processor seconds of the work, all of it in one process."""
    apart: float
    """Processor seconds of the work if every part is done by another process."""
    megabytes: float

    def efficiency(self, workers: int) -> float:
        """Return the share of their time in which so many workers do what one process alone would have to do too."""
        alone = self.read + self.work
        return min(1.0, alone / (self.work + self.received), alone / (workers * self.sent))


def driver(options: argparse.Namespace, folder: Path) -> str:
    """Return the table of the model: seconds per shard, and the efficiency that follows from them."""
    lines = [
        "| load | a shard, MB | work, s | work in parts, s | driver, ms | driver, MB/s | worker's own, ms | "
        + " | ".join(f"{number} workers" for number in WORKERS)
        + " |",
        "|---|---:|---:|---:|---:|---:|---:|" + "---:|" * len(WORKERS),
    ]
    for load in LOADS:
        rounds = [shares(load, folder) for _ in range(options.rounds)]
        best = Shares(*(min(getattr(each, name) for each in rounds) for name in Shares._fields))
        cells = [f"{best.megabytes:.1f}", f"{best.work:.2f}", f"{best.apart:.2f}", f"{best.sent * 1e3:.0f}"]
        cells += [f"{best.megabytes / best.sent:.0f}", f"{best.received * 1e3:.0f}"]
        cells += [f"{best.efficiency(number):.2f}" for number in WORKERS]
        lines.append(f"| {load.name} | {' | '.join(cells)} |")
        print(lines[-1], file=sys.stderr)
    return "\n".join(lines)


def shares(load: Load, folder: Path) -> Shares:
    """Measure what a shard of a load costs whom."""
    plan = load.plan(folder)
    numbers: list[int] = []
    read = _alone(lambda: _execute(plan, folder, _doing(lambda _: None)))
    received: list[float] = []
    sent = _sent(plan, folder, received)
    _execute(plan, folder, _doing(lambda tasks: numbers.append(tasks[0].shard)))
    shards = len(numbers)
    apart, work = (_work(plan, folder, whole) / min(WORKED, shards) for whole in (False, True))
    megabytes = Path(plan.inputs.names[0]).stat().st_size / 1e6
    return Shares(read / shards, sent / shards, sum(received) / shards, work, apart, megabytes / shards)


def _doing(each: Callable[[list[PartTask]], None], most: int | None = None) -> Engine:
    """Return an engine that calls a function with the tasks of each shard, and says that they are done."""

    def engine(shards: Iterable[list[PartTask]], done: Callable[[Done], None]) -> None:
        for tasks in islice(shards, most):
            each(tasks)
            for task in tasks:
                done(Done(task.shard, task.part, ""))

    return engine


def _execute(plan: Plan, folder: Path, engine: Engine) -> None:
    with suppress(RunError):  # where the parts are missing that no engine has made
        execute(plan, folder / "run", engine=engine, overwrite=True)


def _alone(do: Callable[[], None]) -> float:
    """Return the processor seconds of a function in a process of its own, which knows nothing of earlier ones."""
    number = os.fork()
    if not number:
        code = 1
        try:
            do()
            code = 0
        finally:
            os._exit(code)
    _, status, usage = os.wait4(number, 0)
    if status:
        raise SystemExit("a measured process has failed")
    return usage.ru_utime + usage.ru_stime


def _work(plan: Plan, folder: Path, whole: bool) -> float:
    """Return the processor seconds of some shards of a plan, with a process for each of them, or for each part."""
    spent: list[float] = []
    text_counter(plan.encoding)  # a worker loads it once, and not for each shard

    def each(tasks: list[PartTask]) -> None:
        bundles = [tasks] if whole else [[task] for task in tasks]
        spent.extend(_alone(partial(_do_all, bundle)) for bundle in bundles)

    _execute(plan, folder, _doing(each, WORKED))
    return sum(spent)


def _do_all(tasks: list[PartTask]) -> None:
    writer = PartWriter()
    for task in tasks:
        writer.do(task)


def _nothing(packed: bytes, interpreters: object, *after: object) -> list[Done]:  # noqa: ARG001
    """Take the tasks of a worker and do none; the reports say how long this process was busy since the last ones."""
    now = time.process_time()
    tasks = msgspec.msgpack.decode(packed, type=list[PartTask])
    spent, _BUSY[0] = time.process_time() - (_BUSY[0] or now), time.process_time()
    return [Done(task.shard, task.part, "", seconds=spent / len(tasks)) for task in tasks]


_BUSY = [0.0]


def _sent(plan: Plan, folder: Path, received: list[float]) -> float:
    """Return the processor seconds of a driver whose Ray workers do nothing, and note those of the workers."""
    import ray

    def engine(shards: Iterable[list[PartTask]], done: Callable[[Done], None]) -> None:
        def noted(report: Done) -> None:
            received.append(report.seconds)
            done(report)

        cluster.on_ray(cores=2)(shards, noted)

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    real = cluster._do
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        cluster._do = _nothing
        _execute(plan, folder, engine)  # starts the workers
        received.clear()
        began = time.process_time()
        _execute(plan, folder, engine)
        return time.process_time() - began
    finally:
        cluster._do = real
        ray.shutdown()


def workers(options: argparse.Namespace, folder: Path) -> str:
    """Return the table of the same recordings by one and by two workers, the best of some rounds."""
    path = folder / "load.jsonl"
    used(convert("load", TURNS, options.conversations[0], path))
    words = [PROGRAM, "run", str(path), *(word for name in STRATEGIES for word in ("-s", name))]
    words += ["--no-probes", "--no-answers", "--overwrite", "--out", str(folder / "run")]
    ways = {
        "one process": ["--jobs", "1"],
        "two processes": ["--jobs", "2"],
        "Ray, two workers": ["--jobs", "2", "--engine", "ray"],
    }
    rounds: dict[str, list[Used]] = {name: [] for name in ways}
    for _ in range(options.rounds):
        for name, way in ways.items():
            rounds[name].append(used([*words, *way]))
            print(name, rounds[name][-1], file=sys.stderr)
    alone = min(each.wall for each in rounds["one process"])
    lines = ["| | wall-clock, s | processor, s | efficiency |", "|---|---:|---:|---:|"]
    for name, every in rounds.items():
        wall, processor = min(each.wall for each in every), min(each.processor for each in every)
        share = "–" if name == "one process" else f"{alone / wall / 2:.2f}"
        lines.append(f"| {name} | {wall:.0f} | {processor:.0f} | {share} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, print, and write where that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("size", "driver", "workers"))
    parser.add_argument("--conversations", type=int, nargs="+", default=[1_000, 8_000])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=64)
    parser.add_argument("--efficiency", type=float, default=0.8)
    parser.add_argument("--price", type=float, default=0.04, help="dollars per core-hour: an assumption")
    parser.add_argument("--write", action="store_true", help="write the table into docs/cluster.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        measure: dict[str, Any] = {"size": size, "driver": driver, "workers": workers}
        table = measure[options.what](options, Path(name))
    print(table)
    if options.write:
        place = re.compile(rf"(<!-- table: {options.what} -->\n).*?(<!-- end -->)", re.DOTALL)
        PAGE.write_text(place.sub(lambda found: f"{found[1]}{table}\n{found[2]}", PAGE.read_text()))


if __name__ == "__main__":
    main()
