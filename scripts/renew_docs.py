"""Write the tables of a run into the pages that show them: `scripts/renew_docs.py runs/standard` (`make readme`).

A page marks a table's place with `<!-- table: NAME -->` and `<!-- end -->`. Figures in sentences are for a person to
renew: the script prints those that the pages quote.

`docs/tables.json` says what the tables were written from: the recordings, and the baseline of `smoke`, which stands for
all code that the gate measures. `stale` compares it with what is here, so that CI need not run `standard`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ctxbench import load
from ctxbench.harness.bill import MODELS
from ctxbench.harness.claims.registry import read
from ctxbench.reports.claims import tables as claim_tables
from ctxbench.reports.render import markdown
from ctxbench.scenarios.embedded import scenario

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/bench.md", "docs/quality.md", "docs/cost.md", "docs/claims.md", "docs/tiers.md")
FEW = ("window(max_tokens=8000)", "window(max_tokens=32000)", "summary(every=5)", "retrieval", "archive", "none")
ROWS = 8  # rows of the last table of `make bench` that the README has
WRITTEN_FROM, BASELINE = ROOT / "docs" / "tables.json", ROOT / "tests" / "baseline.smoke.json"
_PLACE = re.compile(r"(<!-- table: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


class Printed:
    """The figures of a run, as its commands print them."""

    def __init__(self, folder: Path) -> None:
        run, self.folder = load(folder), folder
        self.summary = run.summary(*MODELS)
        self.plan = run.manifest.plan
        self.report: dict[str, Any] = ctxbench("report", folder)
        self.quality: dict[str, Any] = json.loads(printed("lab", "quality", "--json"))
        parts = [
            printed("lab", "quality", "--brief"),
            printed("lab", "claims", folder, "--effort", "quick", "--brief"),
            printed("lab", "tiers", *["all(index='hnsw')"] * (find_spec("hnswlib") is not None)),
            printed("report", folder, "--print-only"),
        ]
        stored = read(run.reader)
        assert stored is not None  # `lab claims` has just written them
        self.claims = stored.findings
        text = "".join(parts).replace(str(folder), "runs/standard") + "report: runs/standard/report/report.html"
        self.bench = [line.rstrip() for line in text.strip().splitlines()]


def main(folder: Path) -> None:
    """Renew the pages and the README's picture from a run."""
    measured = Printed(folder)
    for page in PAGES:
        path = ROOT / page
        text = _PLACE.sub(
            lambda match: match[1] + "\n".join(TABLES[match[2]](measured)) + "\n" + match[3], path.read_text()
        )
        path.write_text(text)
    digests = load(folder).reader.table("conversations").digest.astype(str)
    facts = {"recordings": sha256("\n".join(digests)), "baseline": sha256(BASELINE.read_text()), "tables": tables()}
    WRITTEN_FROM.write_text(json.dumps(facts, indent=2) + "\n")
    subprocess.run([sys.executable, "-m", "tests.judging", "--write"], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    printed("report", folder, "--figures")
    shutil.copyfile(folder / "report" / "figures" / "frontier.svg", ROOT / "docs" / "images" / "frontier.svg")
    report, answers = measured.report, measured.report["answers"][0]
    bounds = {name: answers["strategies"][name]["correct"] for name in ("last_turn", "evidence_only")}
    print({key: report[key] for key in ("conversations", "messages", "calls", "tokens")}, answers["probes"], bounds)


def sha256(text: str) -> str:
    """Return a digest of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def tables() -> dict[str, str]:
    """Map each table of the pages to the digest of its text."""
    places = (match for page in PAGES for match in _PLACE.finditer((ROOT / page).read_text()))
    return {match[2]: sha256(match[0]) for match in places}


def stale() -> Iterator[str]:
    """Yield in words why the tables are not those of the scenarios and strategies that are here."""
    facts = json.loads(WRITTEN_FROM.read_text())
    if facts["recordings"] != sha256("\n".join(conversation.digest() for conversation in scenario("standard"))):
        yield "the scenario `standard` has changed since the tables were written"
    if facts["baseline"] != sha256(BASELINE.read_text()):
        yield "the figures of `smoke` have changed since the tables were written"
    for name, digest in tables().items():
        if facts["tables"].get(name) != digest:
            yield f"the table {name} was not written by `make readme`"


def ctxbench(*command: object) -> Any:
    """Return what a command prints as JSON."""
    return json.loads(printed(*command, "--json"))


def printed(*command: object) -> str:
    """Return what a command prints on a terminal of 100 columns."""
    words = [str(Path(sys.executable).with_name("ctxbench")), *map(str, command)]
    environment = {**os.environ, "COLUMNS": "100"}
    return subprocess.run(words, check=True, capture_output=True, text=True, env=environment).stdout


def bench(measured: Printed) -> Iterator[str]:
    """Yield what `make bench` prints."""
    yield from ("```text", *measured.bench, "```")


def verdict(measured: Printed) -> Iterator[str]:
    """Yield the verdict of `make bench` and the first rows of its table."""
    yield from ("```text", *cut(measured.bench), "```")


HEADLINES = ("Use ", "Try ", "Keep ", "No recommendation")
"""How the first line of a verdict begins."""


def cut(lines: Sequence[str]) -> Sequence[str]:
    """Return what follows the last empty line before a headline, as far as the first rows of the last table."""
    empty = [at for at, line in enumerate(lines) if not line]
    first, last = next(at for at in reversed(empty) if "".join(lines[at + 1 : at + 2]).startswith(HEADLINES)), empty[-1]
    head = next(at for at in range(last, len(lines)) if lines[at].startswith("strategy"))
    return lines[first + 1 : head + 1 + ROWS]


def quality(measured: Printed) -> Iterator[str]:
    """Yield the answers of the small model, by each grader whose agreement with people is known."""
    first, *others = measured.quality
    graders = [each for each in (first, *others) if each["answerer"] == first["answerer"]]
    names = [each["grader"].partition("(")[0] for each in graders]
    yield from head("strategy", *(f"right by {name} (95 %)" for name in names), "abstained", "tokens in")
    for name in first["strategies"]:
        of_graders = [each["strategies"][name] for each in graders]
        shares = [f"{percent(of['correct'])} ({span(of['correct_interval'])})" for of in of_graders]
        answers = first["strategies"][name]
        yield row(f"`{name}`", *shares, percent(answers["abstained"]), f"{answers['input_tokens']:,}")


def span(ends: Mapping[str, float], decimals: int = 0) -> str:
    """Return an interval of shares, in per cent."""
    return "–".join(f"{100 * ends[end]:.{decimals}f}" for end in ("low", "high"))


def context_recall(measured: Printed) -> Iterator[str]:
    """Yield what becomes of the evidence, for some strategies."""
    metrics = ("context_recall", "evidence_partial", "evidence_summary", "answer_in_context", "evidence_density")
    yield from head("", "context recall", "in part", "summary", "answer in context", "evidence density")
    for name in FEW:
        yield row(f"`{name}`", *(percent(measured.summary.loc[name][metric]) for metric in metrics))


def answers_right(measured: Printed) -> Iterator[str]:
    """Yield the answers of some strategies."""
    yield from head("", "right", "95 %", "normalised gain", "abstained")
    for name in FEW:
        answers = measured.report["answers"][0]["strategies"][name]
        shares = (percent(answers[key]) for key in ("normalised_gain", "abstained"))
        yield row(f"`{name}`", percent(answers["correct"]), span(answers["correct_interval"], 1), *shares)


def cost_saved(measured: Printed) -> Iterator[str]:
    """Yield what strategies save of the bill under three providers."""
    yield from head("", "tokens saved, net", *MODELS)
    names = (*FEW[:2], "smart(window=32000)", "retrieval", "facts", "archive", "cache_marks")
    for name in names:
        figures = measured.summary.loc[name]
        yield row(
            f"`{name}`", *map(percent, (figures.net_saving, *(figures[f"cost_saving({model})"] for model in MODELS)))
        )


def claims(measured: Printed) -> Iterator[str]:
    """Yield the verdicts on the claims of which `make bench` prints the number."""
    yield from markdown(claim_tables(measured.claims)[:1]).strip().splitlines()


def ladder(measured: Printed) -> Iterator[str]:
    """Yield what each tier adds to those above it, at what cost and latency."""
    folder = measured.folder.with_name("ladder")
    rungs = [f"tiered(tiers={tiers}, working=8192, archive=131072)" for tiers in (1, 2, 3, 4)]
    printed("run", "standard", *(f"--strategy={each}" for each in ("none", *rungs)), "--out", folder, "--overwrite")
    model, times = MODELS[0], ("latency_p50", "latency_p99")
    shares = ("answer_in_context", "evidence_absent", f"cost_saving({model})", f"cache_hit_rate({model})")
    cells = ("answer in context", "evidence lost", "cost saved", "cache hit", "LRU-K hit", "latency p50", "latency p99")
    yield from head("", *cells)
    names = ("Focus", "with Working", "with Archive", "with RAG")
    for name, (_, of) in zip(names, load(folder).summary(model).iloc[1:].iterrows(), strict=True):
        hits = "–" if of.lru_k_hit_rate != of.lru_k_hit_rate else percent(of.lru_k_hit_rate)
        yield row(name, *(percent(of[key]) for key in shares), hits, *(f"{of[key]:,.0f} µs" for key in times))


TABLES: dict[str, Callable[[Printed], Iterator[str]]] = {
    "bench": bench,
    "verdict": verdict,
    "quality": quality,
    "context-recall": context_recall,
    "answers": answers_right,
    "cost-saved": cost_saved,
    "claims": claims,
    "ladder": ladder,
}


def head(*cells: str) -> Sequence[str]:
    """Return a head whose columns are right-aligned but for the names."""
    names = {"strategy", "", "problems"} if "#" in cells else {cells[0]}
    return row(*cells), "|" + "|".join("---" if cell in names else "---:" for cell in cells) + "|"


def row(*cells: object) -> str:
    """Return a row of a table."""
    return "| " + " | ".join(map(str, cells)) + " |"


def percent(share: float) -> str:
    """Return a share as the tables print it."""
    return f"{100 * share:.1f} %".replace("-", "−")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
