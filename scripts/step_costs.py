"""Measure what a step of a strategy costs by the length of the conversation: `scripts/step_costs.py [--write]`.

    scripts/step_costs.py [--rounds 2] [--write]

A generated conversation (`load`, English) is cut to 500, 2,000 and 6,000 messages. Microseconds are processor time
without models and embedders: of each of the last 100 steps the fastest round, and the mean of them. Bytes are those of
the strategy's own files in a run folder, shared out over all steps.
"""

from __future__ import annotations

import argparse
import gc
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ctxbench.harness import replay
from ctxbench.harness.engine.shard import no_cycles
from ctxbench.harness.replay import ConversationIndex, RecordedContext
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.embedded import scenario
from ctxbench.scenarios.model import Conversation
from ctxbench.strategies.chain import parse

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
_PLACE = re.compile(r"(<!-- table: steps -->\n).*?(<!-- end -->)", re.DOTALL)
PROGRAM = str(Path(sys.executable).with_name("ctxbench"))
SIZES = (500, 2000, 6000)
STRATEGIES = (
    *("none", "window(max_tokens=8192)", "focus", "focus(truncation='conversation_merge')"),
    *("tiered", "retrieval", "facts", "layered"),
)
LAST = 100
"""Steps at the end of the conversation that are timed."""


def conversation(size: int) -> Conversation:
    """Return the first messages of the conversation."""
    made = next(scenario("load", SIZES[-1] // 4 + 60))
    return msgspec.structs.replace(made, messages=made.messages[:size], probes=())


def run(cut: Conversation, folder: Path) -> Path:
    """Run a conversation through all strategies, and return the run folder."""
    recording, out = folder / "recording.jsonl", folder / str(len(cut.messages))
    recording.write_bytes(cut.to_json() + b"\n")
    words = [PROGRAM, "run", str(recording), "--no-probes", "--out", str(out)]
    words += [word for name in STRATEGIES for word in ("-s", name)]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return out


def latencies(cut: Conversation, strategy: str) -> NDArray[np.float64]:
    """Return the microseconds of the last steps of a strategy."""
    services = RecordedContext(ConversationIndex(cut, TokenCounter()))
    with no_cycles():
        times = [step.latency_ns / 1000 for step in replay.replay(cut, parse(strategy), services)]
    gc.collect()
    return np.array(times[-LAST:])


def stored(out: Path, number: int) -> float:
    """Return the bytes of a strategy's own files for each step."""
    files = list(out.glob(f"*/00000-{number:03d}.parquet"))
    steps = pq.read_metadata(out / "steps" / f"00000-{number:03d}.parquet").num_rows
    return sum(file.stat().st_size for file in files) / steps


def table(rounds: int) -> str:
    """Return the figures as Markdown."""
    replay.perf_counter_ns = time.thread_time_ns  # type: ignore[attr-defined]  # others may use this machine
    conversations = {size: conversation(size) for size in SIZES}
    times: dict[tuple[int, int], NDArray[np.float64]] = {}
    for _ in range(rounds):
        for number, strategy in enumerate(STRATEGIES):
            for size, cut in conversations.items():
                measured = latencies(cut, strategy)
                times[number, size] = np.minimum(times.get((number, size), measured), measured)
    sizes: dict[tuple[int, int], float] = {}
    with tempfile.TemporaryDirectory() as name:
        for size, cut in conversations.items():
            out = run(cut, Path(name))
            sizes |= {(number, size): stored(out, number) for number in range(len(STRATEGIES))}
    columns = [f"{size:,} messages" for size in SIZES]
    lines = [
        f"| strategy | µs, {' | '.join(columns)} | bytes, {' | '.join(columns)} |",
        f"|---|{'---:|' * (2 * len(SIZES))}",
    ]
    for number, strategy in enumerate(STRATEGIES):
        cells = [f"{times[number, size].mean():,.0f}" for size in SIZES]
        cells += [f"{sizes[number, size]:,.0f}" for size in SIZES]
        lines.append(f"| `{strategy}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, print, and write where that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="write the table into docs/performance.md")
    options = parser.parse_args()
    figures = table(options.rounds)
    print(figures)
    if options.write:
        PAGE.write_text(_PLACE.sub(lambda place: f"{place[1]}{figures}\n{place[2]}", PAGE.read_text()))


if __name__ == "__main__":
    main()
