"""Write the tables of a run into the pages that show them: `scripts/renew_docs.py runs/standard` (`make tables`).

A page marks a table's place with `<!-- table: NAME -->` and `<!-- end -->`. Figures in sentences are for a person to
renew: the script prints those that the pages quote.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ctxbench.harness import api
from ctxbench.harness.bill import MODELS

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/quality.md", "docs/cost.md")
TIERED = "tiered(working=8192, archive=131072)"
FEW = ("window(max_tokens=8000)", "window(max_tokens=32000)", "summary(every=5)", "retrieval", "archive", "none")
_PLACE = re.compile(r"(<!-- table: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


class Measured:
    """The figures of a run, as its commands print them."""

    def __init__(self, folder: Path) -> None:
        run = api.load(folder)
        self.summary = api.summary(run, *MODELS)
        self.plan = run.manifest.plan
        self.report: dict[str, Any] = ctxbench("report", folder)
        first, _, _ = printed("report", folder, "--print-only").strip().partition("\n\n")
        self.verdict = [line.rstrip() for line in first.replace(str(folder), "runs/standard").splitlines()]
        self.numbers = list(pd.read_csv(folder / "report" / "tables" / "frontier.csv").strategy)
        memory = ("--memory", "131072", "--memory", "393216", "--longest-pause", "5")
        self.kv_cache: dict[str, Any] = ctxbench("kv-cache", folder, *memory)


def main(folder: Path) -> None:
    """Renew the pages and the README's picture from a run that has its report."""
    measured = Measured(folder)
    for page in PAGES:
        path = ROOT / page
        text = _PLACE.sub(
            lambda match: match[1] + "\n".join(TABLES[match[2]](measured)) + "\n" + match[3], path.read_text()
        )
        path.write_text(text)
    shutil.copyfile(folder / "report" / "figures" / "frontier.svg", ROOT / "docs" / "images" / "frontier.svg")
    report, answers = measured.report, measured.report["answers"][0]
    bounds = {name: answers["strategies"][name]["correct"] for name in ("last_turn", "evidence_only")}
    print({key: report[key] for key in ("conversations", "messages", "calls", "tokens")}, answers["probes"], bounds)


def ctxbench(command: str, folder: Path, *options: str) -> Any:
    """Return what a command prints as JSON."""
    return json.loads(printed(command, folder, *options, "--json"))


def printed(command: str, folder: Path, *options: str) -> str:
    """Return what a command prints on a terminal of 100 columns."""
    words = [str(Path(sys.executable).with_name("ctxbench")), command, str(folder), *options]
    environment = {**os.environ, "COLUMNS": "100"}
    return subprocess.run(words, check=True, capture_output=True, text=True, env=environment).stdout


def answer(measured: Measured) -> Iterator[str]:
    """Yield the verdict, as `report` prints it."""
    yield "```text"
    yield from measured.verdict
    yield "```"


def strategies(measured: Measured) -> Iterator[str]:
    """Yield the README's table."""
    heads = (
        "strategy",
        "tokens saved",
        "cache hit rate",
        "cost",
        "compression",
        "context recall",
        "answers right (95 %)",
    )
    yield from head("#", *heads, "problems")
    rows = (
        "none",
        "tiered(working=8192, archive=131072)",
        "retrieval",
        "archive",
        *FEW[:1],
        "summary(every=5)",
        FEW[1],
        "facts",
    )
    for name in rows:
        figures, correct = measured.summary.loc[name], measured.report["answers"][0]["strategies"][name]
        low, high = correct["correct_interval"]
        compression = "–" if pd.isna(figures.compression_ratio) else f"{figures.compression_ratio:.0f}×"
        yield row(
            measured.numbers.index(name) + 1,
            f"`{name}`" + " (the whole history)" * (name == "none"),
            percent(figures.saving),
            percent(figures[f"cache_hit_rate({MODELS[0]})"]),
            f"${figures[f'cost({MODELS[0]})']:.2f}",
            compression,
            percent(figures.context_recall),
            f"{percent(correct['correct'])} ({100 * low:.1f}–{100 * high:.1f})",
            "; ".join(problems(figures)) or "–",
        )


def problems(figures: pd.Series[float]) -> Iterator[str]:
    """Yield what a strategy breaks, in words."""
    words = {"without_newest": "lack the newest message", "overflows": "over 128k tokens"}
    for metric, text in words.items():
        if number := int(figures[metric]):
            yield f"{number} {'call' if number == 1 else 'calls'} {text}"


def context_recall(measured: Measured) -> Iterator[str]:
    """Yield what becomes of the evidence, for some strategies."""
    metrics = ("context_recall", "evidence_partial", "evidence_summary", "answer_in_context", "evidence_density")
    yield from head("", "context recall", "in part", "summary", "answer in context", "evidence density")
    for name in FEW:
        yield row(f"`{name}`", *(percent(measured.summary.loc[name][metric]) for metric in metrics))


def answers_right(measured: Measured) -> Iterator[str]:
    """Yield the answers of some strategies."""
    yield from head("", "right", "95 %", "normalised gain", "abstained")
    for name in FEW:
        answers = measured.report["answers"][0]["strategies"][name]
        low, high = answers["correct_interval"]
        shares = (percent(answers[key]) for key in ("normalised_gain", "abstained"))
        yield row(f"`{name}`", percent(answers["correct"]), f"{100 * low:.1f}–{100 * high:.1f}", *shares)


def cost_saved(measured: Measured) -> Iterator[str]:
    """Yield what strategies save of the bill under three providers."""
    yield from head("", "tokens saved, net", *MODELS)
    names = (*FEW[:2], "smart(window=32000)", "retrieval", "facts", "archive", "cache_marks")
    for name in names:
        figures = measured.summary.loc[name]
        yield row(
            f"`{name}`", *map(percent, (figures.net_saving, *(figures[f"cost_saving({model})"] for model in MODELS)))
        )


def kv_cache(measured: Measured) -> Iterator[str]:
    """Yield the tokens that an own server computes, by the size of its cache."""
    heads = ("strategy", "131,072 tokens of KV cache", "", "393,216", "", "unlimited", "")
    yield from head(*heads)
    rows = {(each["strategy"], each["memory"]): each for each in measured.kv_cache["rows"]}
    for name in ("none", FEW[1], "session_summary", "archive"):
        cells: list[str] = []
        for memory in (131072, 393216, None):
            served = rows[name, memory]
            saved = "" if name == "none" else percent(served["saved"])
            cells += (f"{served['computed'] / 1e6:.2f}M", saved)
        yield row(f"`{name}`", *cells)


TABLES: dict[str, Callable[[Measured], Iterator[str]]] = {
    "verdict": answer,
    "strategies": strategies,
    "context-recall": context_recall,
    "answers": answers_right,
    "cost-saved": cost_saved,
    "kv-cache": kv_cache,
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
