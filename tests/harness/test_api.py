"""`import ctxbench`, as programs and notebooks use it."""

import gc
import subprocess
import sys
from pathlib import Path
from traceback import extract_tb

import pandas as pd
import pytest

import ctxbench
from ctxbench.api.runs import FIGURES
from ctxbench.scenarios.errors import RunError
from tests.harness.command import ctxbench as command
from tests.harness.runs import bytes_of, recording

STRATEGIES = ("none", "window(max_tokens=400)", "last_turn")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> ctxbench.BenchmarkRun:
    """A run of nine conversations and three strategies."""
    folder = tmp_path_factory.mktemp("frames")
    path = recording(folder, conversations=9, turns=6)
    return ctxbench.run(path, strategies=STRATEGIES, out=folder / "run")


@pytest.fixture(scope="module")
def smoke() -> ctxbench.BenchmarkRun:
    """A run of the embedded conversations, which have questions with known answers."""
    return ctxbench.run(
        "smoke", strategies=["none", "archive(trigger='keyword')", "window(max_tokens=2000)", "summary(every=2)"]
    )


def test_the_package_is_imported_without_its_rooms() -> None:
    """`ctxbench --help` and every plug-in import the package: nothing of ours, and no pandas, comes with it."""
    code = (
        "import sys; import ctxbench; ours = [name for name in sys.modules if name.startswith('ctxbench.')];"
        "assert not ours and 'pandas' not in sys.modules, ours;"
        "assert set(ctxbench.__all__) <= set(dir(ctxbench));"
        "assert ctxbench.run and 'pandas' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_run_is_that_of_the_command(made: ctxbench.BenchmarkRun, tmp_path: Path) -> None:
    """`ctxbench run` on the same recordings writes the same figures, and `print(verdict)` prints what it prints."""
    words = [word for name in STRATEGIES for word in ("-s", name)]
    command("run", made.manifest.plan.names[0], *words, "-o", "again", cwd=tmp_path)
    again = ctxbench.load(tmp_path / "again")
    assert again.manifest.digest == made.manifest.digest
    assert {} != bytes_of(again.folder / "bills").items() <= bytes_of(made.folder / "bills").items()
    clock = ["latency_p50", "latency_p99"]
    pd.testing.assert_frame_equal(again.summary().drop(columns=clock), made.summary().drop(columns=clock))
    printed = command("report", made.folder, "--print-only", cwd=tmp_path)
    assert printed.stdout.split() == str(made.verdict()).split()


def test_no_folder_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `out` the run lives as long as anything that was made of it, a verdict too."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = recording(tmp_path, conversations=2, turns=3)
    verdict = ctxbench.run(path, strategies=STRATEGIES).verdict()
    assert "everything else: report() of the run" in str(verdict), "no command will find the folder"
    (folder,) = tmp_path.glob("ctxbench-*")
    assert "No verdict" in str(verdict)
    del verdict
    gc.collect()
    assert not folder.exists()
    with pytest.raises(RunError, match="nosuch: there is no such file"):
        ctxbench.run("nosuch", strategies="none")
    assert not list(tmp_path.glob("ctxbench-*"))


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    """A recording that cannot be read is a warning with its place, stays with the run, and is an error if strict."""
    path = recording(tmp_path, conversations=2, turns=3)
    (tmp_path / "bad.jsonl").write_text('{"messages": [{"role": 5}]}\n')
    with pytest.warns(UserWarning, match=r"left out: .*bad\.jsonl"):
        run = ctxbench.run([path, tmp_path / "bad.jsonl"], strategies="none")
    assert len(run.problems) == 1
    assert "bad.jsonl" in run._repr_html_()
    with pytest.raises(ctxbench.UserError, match=r"bad\.jsonl"):
        ctxbench.run([path, tmp_path / "bad.jsonl"], strategies="none", strict=True)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda run: ctxbench.run("smoke", strategies="windw"), "unknown strategy 'windw'; did you mean 'window'"),
        (lambda run: ctxbench.run("smoke", strategies=[]), "strategies: none is named"),
        (lambda run: ctxbench.run([]), "inputs: none is named"),
        (lambda run: ctxbench.run("smoke", strategies="none", jobs=-1), "jobs=-1: give 1 or more"),
        (lambda run: ctxbench.run("smoke", strategies="none", window="gpt-9000"), "unknown model 'gpt-9000'"),
        (lambda run: ctxbench.load("nosuch"), "nosuch: no run is here"),
        (lambda run: run.verdict().objections("windo"), "'windo' was not run here"),
        (lambda run: run.summary(names="nice"), 'give "keys" or "display"'),
        (lambda run: run.gate("no.json"), "no.json: there is no baseline"),
        (lambda run: run.compare(against="archive"), "'archive' was not run here"),
        (lambda run: run.table("step"), "no table 'step'"),
        (lambda run: run.plot("survival"), "nothing to draw: No fact was followed"),
    ],
)
def test_a_mistake_is_one_clear_error(made: ctxbench.BenchmarkRun, asked: object, said: str) -> None:
    """Whatever the caller can mend is a UserError that says what was wrong."""
    assert callable(asked)
    with pytest.raises(ctxbench.UserError, match=said.replace("(", r"\(")):
        asked(made)


def test_a_trace_ends_at_the_border(made: ctxbench.BenchmarkRun) -> None:
    """A mistake and Ctrl-C show the caller's line, one of ours and the text, and nothing in
    between."""

    def stop(messages: object) -> object:
        raise KeyboardInterrupt

    for ask in (
        lambda: ctxbench.run("smoke", strategies=stop),
        lambda: ctxbench.run("smoke", strategies="windw"),
        lambda: ctxbench.load("nosuch"),
        lambda: made.verdict("gpt-9000"),
        lambda: made.verdict().objections("windo"),
    ):
        with pytest.raises((ctxbench.UserError, KeyboardInterrupt)) as caught:
            ask()
        assert [frame.name for frame in extract_tb(caught.tb)][1:] == ["<lambda>", "call"]
        assert caught.value.__suppress_context__


def test_a_trace_has_the_line_of_the_caller_that_raised(tmp_path: Path) -> None:
    """An error in the caller's own class stays the cause, with its line: without it nobody finds the mistake."""
    (tmp_path / "bad.py").write_text(
        "from dataclasses import dataclass\n\n\n@dataclass(frozen=True, slots=True)\nclass Bad:\n"
        "    def __post_init__(self):\n        {}['lost']\n\n    def start(self, context): ...\n"
    )
    with pytest.raises(ctxbench.UserError, match="KeyError: 'lost'") as caught:
        ctxbench.run("smoke", strategies=f"{tmp_path}/bad.py:Bad")
    assert isinstance(cause := caught.value.__cause__, KeyError)
    assert extract_tb(cause.__traceback__)[-1].line == "{}['lost']"


def test_the_verdict_has_its_figures(smoke: ctxbench.BenchmarkRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row per strategy, its intervals around its figures, and against `none` nothing; objections say the same."""
    fewer_are_enough(monkeypatch)
    verdict = smoke.verdict()
    rows = verdict.figures
    assert tuple(rows.index) == smoke.strategies
    others = rows.drop(index="none")
    for name in ("cost_saved", "tokens_saved"):
        assert not (others[f"{name}_low"] > others[name]).any()  # NaN where one conversation weighs too much
        assert not (others[name] > others[f"{name}_high"]).any()
    assert rows.loc["none", ["cost_saved", "cheaper_in"]].isna().all()
    assert set(rows.index[rows.on_frontier]) == set(verdict.frontier)
    assert verdict.quality == "answer in context"
    assert verdict.ship is None
    assert verdict.objections("none") == []
    assert verdict.choice(0) == "none"
    window = verdict.objections("window(max_tokens=2000)")
    *breaks, lost, live = window
    assert breaks == list(verdict.breaks["window(max_tokens=2000)"])
    assert lost == "it lost 23.1 points here: 5 points are accepted"
    assert live.startswith("cheaper only while live it makes at most ")
    assert set(rows.place) == set(verdict.places.values())
    assert "newest dropped" in rows.breaks["window(max_tokens=2000)"]


def fewer_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """The conversations of `smoke` are six independent units."""
    for module in ("ctxbench.reports.verdict", "ctxbench.api.verdict"):
        monkeypatch.setattr(f"{module}.FEWEST", 6)


def test_what_a_notebook_shows(made: ctxbench.BenchmarkRun, smoke: ctxbench.BenchmarkRun) -> None:
    """A run, a verdict, a gate, live runs and a comparison are tables of HTML; no text in them becomes markup."""
    html = pytest.importorskip("html5lib")
    made.write_baseline(made.folder.parent / "baseline.json")
    live = ctxbench.compare_live(*made.manifest.plan.names * 2)
    for shown in (made, smoke.verdict(), made.gate(made.folder.parent / "baseline.json"), live):
        html.HTMLParser(strict=True).parseFragment(shown._repr_html_())
        assert repr(shown).startswith("<Benchmark")
    compared = made.compare(metrics="saving").assign(verdict="<b>")
    assert "<b>" not in type(made.compare())(compared)._repr_html_()
    html.HTMLParser(strict=True).parseFragment(made.compare(metrics="saving")._repr_html_())
    assert "<strong>No recommendation: " in smoke.verdict()._repr_html_()
    from ctxbench.reports.render import Table
    from ctxbench.reports.render import html as as_html

    assert "<b>" not in as_html([Table("<b>", ("<b>",), (("<b>",),), ("<b>",))])


def test_every_figure_is_drawn(smoke: ctxbench.BenchmarkRun) -> None:
    """On the embedded conversations, with a strategy that summarises, each figure that `plot` knows."""
    for name in FIGURES.keys() - {"survival"}:
        assert smoke.plot(name).axes
    with pytest.raises(ctxbench.UserError, match="No fact was followed through"):  # of 20 that are needed
        smoke.plot("survival")
    with pytest.raises(ctxbench.UserError, match="unknown figure 'frontir'; did you mean 'frontier'"):
        smoke.plot("frontir")


def test_compare(made: ctxbench.BenchmarkRun, tmp_path: Path) -> None:
    """Strategies against one of them, or two runs: a row per strategy and metric; what only one side has is named."""
    rows = made.compare(metrics="saving")
    assert list(rows.strategy) == ["window(max_tokens=400)", "last_turn"]
    assert str(rows).split()[:8] == ["strategy", "metric", "before", "after", "difference", "low", "high", "verdict"]
    assert set(rows.verdict) == {"better"}
    assert set(rows.better_in - rows.worse_in) == {9}
    assert (rows.low <= rows.difference).all()
    other = ctxbench.run(made.manifest.plan.names, strategies=["none", "last_turn"], out=tmp_path / "other")
    rows = made.compare(other)
    assert set(rows.strategy) == {"none", "last_turn"}
    assert rows.attrs["unpaired"] == ["lost: strategy window(max_tokens=400)"]
    assert set(made.compare(other, strategies="none").strategy) == {"none"}


def test_a_gate_passes_and_fails(made: ctxbench.BenchmarkRun, tmp_path: Path) -> None:
    """Against its own baseline a run passes; with a strategy gone it fails; it prints what the command prints."""
    baseline = made.write_baseline(tmp_path / "baseline.json")
    gate = made.gate(baseline)
    assert gate.passes
    assert (gate.comparisons.verdict != "worse").all()
    printed = command("gate", made.folder, "--baseline", baseline, cwd=tmp_path)
    assert printed.stdout.split() == str(gate).split()
    fewer = ctxbench.run(made.manifest.plan.names, strategies="none")
    assert fewer.gate(baseline).result == "fails"
    (tmp_path / "gate.toml").write_text('strategies = ["none"]\n')
    assert fewer.gate(baseline, policy=tmp_path / "gate.toml").passes


def test_a_run_that_has_grown_is_opened_again(tmp_path: Path) -> None:
    """A run grows by what is named, and loses its old bills; opened before, it gives one error, opened again none."""
    path, folder = recording(tmp_path, conversations=3, turns=3), tmp_path / "run"
    made = ctxbench.run(path, strategies=["none", "last_turn"], out=folder)
    made.bill()
    assert list(folder.glob("bills/*"))
    grown = ctxbench.run(path, strategies=["archive", "window(max_tokens=400)"], out=folder)
    assert not list(folder.glob("bills/*"))
    assert grown.strategies == ("none", "last_turn", "archive", "window(max_tokens=400)")
    assert not list(folder.glob("bills/*"))
    for ask in (made.report, made.summary, made.compare, made.verdict):
        with pytest.raises(RunError, match="run: the run has changed since it was opened: open it again"):
            ask()
    assert len(ctxbench.load(folder).summary()) == 4


def test_contexts_and_report(made: ctxbench.BenchmarkRun, tmp_path: Path) -> None:
    """What was sent at each step, by the strategy in any spelling; and the report, where it is asked for."""
    contexts = made.contexts("c1", "window( max_tokens = 400 )")
    assert len(contexts) == len(made.reader.rows("steps", "c1", "window(max_tokens=400)"))
    assert len(list(made.conversations())) == 9
    assert made.report(tmp_path / "page") == tmp_path / "page" / "report.html"
