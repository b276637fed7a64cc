"""Golden output of each command: its JSON, or else its text, on the embedded `smoke` or a small recording made here.

    python -m tests.goldens.write commands      # writes tests/goldens/commands/*.json

Times and paths are replaced, so a file changes only with what its command computes or says.
"""

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ctxbench.scenarios.model import Call, Compaction, Conversation, Mark, Message, Probe, ToolCall, Usage
from tests.harness.command import ctxbench

GOLDENS = Path(__file__).parent / "commands"
BILL = ("-m", "claude-sonnet-5")
RUNS = {
    "before": ("smoke", "none", "window(max_tokens=1000)", "archive(threshold=400)"),
    "after": ("smoke", "none", "window(max_tokens=1000)", "archive(threshold=400, trigger='keyword')"),
    "small": ("agent", "none", "window(max_tokens=600)", "recorded"),
    "one": ("agent", "window(max_tokens=600)"),
}
"""For each run what is replayed, and the strategies."""
LOADS = tuple(f"--only={claim}" for claim in ("C11", "C19", "C20", "C22", "C23", "C24", "C30"))
TIERS = (
    "working(trace='agent', capacity=512)",
    "archive(recordings='agent')",
    "rag(recordings='agent')",
)
TIERED = "tiered(limit=2048, working=1024, archive=8192, recall=512)"
METRICS = ("net_saving", "grounding", "prefix_reuse", "overflows", "answer_quality")
COMMANDS: dict[str, tuple[object, ...]] = {
    "run": (
        "run",
        "agent",
        "-s",
        "none",
        "-s",
        "tiered(limit=2048, working=1024, archive=8192, recall=512)",
        *BILL,
        "--json",
    ),
    "report": ("report", "before", *BILL, "--json", "--print-only"),
    "report as text": ("report", "before", *BILL, "--print-only"),
    "show": ("show", "before", "--json"),
    "show step": ("show", "small", 1, 3, "-s", "window", "--json"),
    "show probe": ("show", "small", "-p", "s1/p1", "--json"),
    "compare": ("compare", "before", "after", *BILL, *(f"--metric={name}" for name in METRICS), "--json"),
    "compare strategies": ("compare", "small", "--against", "none", *BILL, "--markdown", "compare.md"),
    "gate": ("gate", "small", "--baseline", "baseline.json", "--json"),
    "bill": ("bill", "before", "-m", "claude-sonnet-5", "-m", "gpt-5.6", "-m", "deepseek-chat", "--json"),
    "tune": ("tune", "window(max_tokens=?)", "agent", "--trials", 3, *BILL, "--json"),
    "audit": ("audit", "agent", *BILL, "--json"),
    "list": ("list", "strategies"),
    "list strategy": ("list", "strategies", "window", "--json"),
    "list scenarios": ("list", "scenarios", "--json"),
    "list formats": ("list", "formats", "--json"),
    "list metrics": ("list", "metrics", "--json"),
    "list encodings": ("list", "encodings", "--json"),
    "list prices": ("list", "prices", "deepseek-chat", "--json"),
    "list caches": ("list", "caches", "claude-sonnet-4-5", "--json"),
    "describe": ("describe", "smoke", "agent", "--json"),
    "convert": ("convert", "agent", "--to", "converted.jsonl", "--as", "openai"),
    "init": ("init", "agent"),
    "config": ("config", "--json", "run", "--jobs", 2),
    "export prometheus": ("export", "prometheus", "small", *BILL),
    "export dataset": ("export", "dataset", "small", "--out", "dataset"),
    "show as": ("show", "small", 1, 3, "-s", "window", "--as", "anthropic"),
    "lab answer": ("lab", "answer", "small", "--json"),
    "lab validate": ("lab", "validate", "agent", "--json"),
    "lab calibrate": ("lab", "calibrate", "labels.jsonl", "--json"),
    "lab claims": ("lab", "claims", "before", "--only", "C09", "--only", "C10", "--only", "C12", "--json"),
    "lab tiers": ("lab", "tiers", *TIERS, "--json"),
}
"""The command of each golden file. What it names is made before it runs."""
SLOW: dict[str, tuple[object, ...]] = {
    "demo": ("demo",),
    "lab claims of loads": ("lab", "claims", "before", *LOADS, "--effort", "quick", "--json"),
    "lab tiers of loads": ("lab", "tiers", "--json"),
}
FILES = {
    "compare strategies": "compare.md",
    "convert": "converted.jsonl",
    "init": "ctxbench.toml",
    "export dataset": "dataset/README.md",
}
"""Files that a command writes and that belong into its golden file."""
VARIES = {"versions", "timed", "milliseconds", "seconds", "embedding", "speed"}
VARIES |= {"latency_us", "latency_p50", "latency_p99"}
"""Keys of what a machine decides: times, and versions of programs."""
WIDTH = 150


class Workplace:
    """A folder in which commands run. The recording, the runs and files that they name are made there once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def golden(self, name: str) -> Any:
        """Return what a command prints (its JSON, or the lines of its text) and writes, as its golden file has it."""
        words = {**COMMANDS, **SLOW}[name]
        for word in re.findall(r"[\w.]+", " ".join(map(str, words[1:]))):
            self._make(word)
        text = ctxbench(*words, cwd=self.folder).stdout
        golden = {
            "command": " ".join(map(str, words)),
            "prints": json.loads(text) if "--json" in words else _lines(text),
        }
        if name in FILES:
            golden["writes"] = _lines((self.folder / FILES[name]).read_text("utf-8"))
        return self._normalised(golden)

    def _make(self, name: str) -> None:
        path = self.folder / name
        if path.exists():
            return
        if name == "agent":
            path.mkdir()
            for number in range(4):
                (path / f"s{number}.jsonl").write_bytes(_session(number).to_json() + b"\n")
        elif name == "labels.jsonl":
            path.write_text("".join(f"{json.dumps(answer)}\n" for answer in _labelled_answers()))
        elif name == "baseline.json":
            self._make("one")
            ctxbench("gate", "one", "--update", "--baseline", name, *BILL, cwd=self.folder)
        elif name in RUNS:
            source, *strategies = RUNS[name]
            self._make(source)
            options = [f"--strategy={strategy}" for strategy in strategies]
            ctxbench("run", source, *options, *BILL, "--out", name, "--quiet", cwd=self.folder)

    def _normalised(self, value: Any) -> Any:
        match value:
            case dict():
                return {
                    key: "(varies)" if key in VARIES and item else self._normalised(item) for key, item in value.items()
                }
            case list():
                return [self._normalised(item) for item in value]
            case str():
                text = value.replace(str(self.folder), "FOLDER")
                text = re.sub(r"\bgenai-prices [\d.]+\d", "genai-prices VERSION", text)
                return re.sub(r"\bprices [0-9a-f]{8}\b", "prices DIGEST", text)
        return value


def _lines(text: str) -> list[str]:
    """Return the lines of a text without what a machine decides: times, and where programs are installed."""
    return [re.sub(r"\S*/bin/ctxbench", "ctxbench", line.rstrip()) for line in text.splitlines()]


def _session(number: int) -> Conversation:
    """A session of 12 calls that reads files, compacts after 8 of them, and then needs one from before."""
    messages = [Message("s", "system", "You look after a data warehouse. " * 60)]
    start = 1.79e9 + 86_400 * number
    for turn in range(12):
        path = f"/srv/{number}/{turn if turn != 10 else 3}.csv"
        rows = f"account {number}{turn}: balance {7 * turn + number} EUR\n" * 20
        read, size = 400 + 300 * (turn - 1) if turn not in (0, 8) else 0, 400 + 300 * turn
        call = Call(
            "claude-sonnet-5",
            usage=Usage(size + 10, 30, read, size - read),
            started=start + 60 * turn + 1,
            marks=(Mark("s"), Mark(f"u{turn}")),
        )
        messages += [
            Message(f"u{turn}", "user", f"What is the balance in {path}?", time=start + 60 * turn),
            Message(
                f"a{turn}",
                "assistant",
                calls=(ToolCall(f"t{turn}", "read_file", json.dumps({"path": path})),),
                call=call,
                time=start + 60 * turn + 3,
            ),
            Message(f"r{turn}", "tool", rows, answers=f"t{turn}"),
        ]
    probes = tuple(
        Probe(
            f"p{turn}", f"What is the balance of account {number}{turn}?", (f"{7 * turn + number} EUR",), (f"r{turn}",)
        )
        for turn in (2, 9)
    )
    compactions = (Compaction("r7", f"Accounts {number}0 to {number}7 were read."),)
    return Conversation(f"s{number}", tuple(messages), probes=probes, compactions=compactions)


def _labelled_answers() -> list[dict[str, Any]]:
    """Answers of which people took two thirds for right, and rules others."""
    return [
        {
            "question": f"What is {number} and {number}?",
            "accepted": [str(2 * number)],
            "candidate": f"It is {2 * number + (number % 5 == 0)}.",
            "correct": number % 3 > 0,
        }
        for number in range(40)
    ]


def path_of(name: str) -> Path:
    """Return the golden file of a command."""
    return GOLDENS / f"{name.replace(' ', '-')}.json"


def written(value: Any, indent: str = "") -> str:
    """Return JSON with as many items on a line as fit, but a line for each line of a text."""
    short = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or len(indent) + len(short) <= WIDTH:
        return short
    deeper = indent + " "
    keys = [f"{json.dumps(key)}: " for key in value] if isinstance(value, dict) else [""] * len(value)
    items = list(value.values() if isinstance(value, dict) else value)
    are_texts = isinstance(value, list) and all(isinstance(item, str) for item in items)
    lines: list[str] = []
    for key, item in zip(keys, items, strict=True):
        text = f"{key}{written(item, deeper)},"
        fits = lines and "\n" not in lines[-1] + text and len(deeper) + len(lines[-1]) + len(text) < WIDTH
        if fits and not are_texts:
            lines[-1] += f" {text}"
        else:
            lines.append(text)
    first, last = "{}" if isinstance(value, dict) else "[]"
    body = "\n".join(deeper + line for line in lines)
    return f"{first}\n{body[:-1]}\n{indent}{last}"


def write() -> None:
    """Write the golden file of each command, and remove those of no command."""
    GOLDENS.mkdir(exist_ok=True)
    for path in GOLDENS.glob("*.json"):
        path.unlink()
    with TemporaryDirectory() as folder:
        place = Workplace(Path(folder))
        for name in (*COMMANDS, *SLOW):
            path_of(name).write_text(written(place.golden(name)) + "\n", "utf-8")
