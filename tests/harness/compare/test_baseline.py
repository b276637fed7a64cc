"""A baseline comes back as it was written, in lines that can be reviewed; a damaged one is named by its field."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from ctxbench.harness.compare.figures import measured
from ctxbench.harness.compare.gate import _BaselineFile, _digest, baseline_text, read_baseline, write_baseline
from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder.run import KEYS, load, steps_of
from ctxbench.metrics.figures import METRICS, figures
from ctxbench.metrics.value import Missing, value
from ctxbench.scenarios.errors import RunError
from ctxbench.strategies.bounds import LastTurn
from tests.harness.compare.builders import made
from tests.harness.runs import fail, plan, recording

RUN = made(
    {
        "b": {"tokens_sent": [0, 0, 0], "grounding": [(1, 2), None, (0, 0)]},
        "a": {"tokens_sent": [5, None, 7], "cost(claude-sonnet-5)": [0.125, None, 0.1 + 0.2]},
    },
    ["z", "x", "y"],
)


def test_there_and_back(tmp_path: Path) -> None:
    """The same figures, to the last digit, in sorted order; what is written again is the same bytes."""
    file = tmp_path / "deep" / "baseline.json"
    write_baseline(RUN, file)
    found = read_baseline(file)
    assert dict(found.digests) == dict(RUN.digests)
    assert found.metrics == RUN.metrics
    order = [list(RUN.digests).index(name) for name in found.digests]
    for strategy, those in RUN.sums.items():
        for metric, sums in those.items():
            assert np.array_equal(found.sums[strategy][metric], sums[order], equal_nan=True)
    assert baseline_text(found) == file.read_text()
    assert [path.name for path in file.parent.iterdir()] == ["baseline.json"]


def test_lines() -> None:
    """One for each strategy and metric: a reviewer sees what changed."""
    lines = baseline_text(RUN).splitlines()
    assert '      "tokens_sent": [null,7,5]' in lines
    assert '      "grounding": [null,[0,0],[1,2]],' in lines
    assert '      "tokens_sent": 0' in lines
    assert '      "cost(claude-sonnet-5)": [null,0.30000000000000004,0.125],' in lines


def test_figures_are_those_of_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A baseline has the figures of each result; a strategy that failed has none, and says why."""
    fail(monkeypatch, LastTurn, "question 2 ")
    execute(plan(recording(tmp_path, conversations=4, turns=3)), tmp_path / "run")
    run = load(tmp_path / "run")
    found = measured(run, ("claude-sonnet-5",))
    assert list(found.failed) == ["last_turn"]
    assert list(found.failed["last_turn"]) == ["c2"]
    names = list(found.digests)
    for (conversation, strategy), steps in steps_of(run).groupby(KEYS, observed=True):
        for metric, figure in figures(steps).items():
            if metric not in found.sums[strategy] or METRICS[metric].unit == "us":
                continue
            sums = found.sums[strategy][metric][names.index(conversation)]
            if isinstance(figure, Missing):
                assert sums[1] == 0
            else:
                assert value(found.metrics[metric].form, *sums) == pytest.approx(figure)
    assert all(np.isnan(sums[names.index("c2")]).all() for sums in found.sums["last_turn"].values())
    assert "compression_ratio" not in found.sums["last_turn"]  # nor has it what it has nowhere
    assert not any(METRICS[metric].unit == "us" for metric in found.metrics if metric in METRICS)
    assert "latency_p50" in measured(run, clock=True).metrics
    assert (found.sums["none"]["cost(claude-sonnet-5)"][:, 0] > 0).all()


Change = Callable[[dict[str, Any]], Any]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda found: found.update(format=9), "was written by a later version: "),
        (lambda found: (found.update(format=2), found.pop("digest")), "was written by an earlier version: "),
        (lambda found: found.pop("figures"), "damaged, or no baseline .*figures"),
        # A digit that was flipped, and a figure too few.
        (lambda found: found["figures"]["a"].update(tokens_sent=[1, 2, 4]), "it was changed after it was written"),
        (lambda found: found["figures"]["a"].update(tokens_sent=[1, 2]), "it was changed after it was written"),
        (lambda found: found["figures"]["a"].update(tokens_sent=7), "damaged, or no baseline"),
        (
            lambda found: found["figures"]["a"].update(tokens_sent=[1, "2", 3]),
            "damaged, or no baseline .*got `str`",
        ),
        (lambda found: found["metrics"]["grounding"].pop("version"), "damaged, or no baseline .*version"),
    ],
)
def test_damaged(tmp_path: Path, change: Change, said: str) -> None:
    """One error that names the file, the field and what to do."""
    file = tmp_path / "baseline.json"
    found = msgspec.json.decode(baseline_text(RUN))
    change(found)
    file.write_bytes(msgspec.json.encode(found))
    with pytest.raises(RunError, match=said) as caught:
        read_baseline(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert f"make it anew with `ctxbench gate RUN --update --baseline {file}`" in str(caught.value)


@pytest.mark.parametrize("figures", [{"tokens_sent": [1, 2]}, {"other": [1, 2, 3]}])
def test_figures_of_no_metric_or_too_few(tmp_path: Path, figures: dict[str, Any]) -> None:
    """Whoever makes a digest may still have written what no baseline says: one clear error."""
    found = msgspec.json.decode(baseline_text(RUN))
    found["figures"]["a"] |= figures
    found["digest"] = _digest(msgspec.convert(found, _BaselineFile))
    (tmp_path / "baseline.json").write_bytes(msgspec.json.encode(found))
    with pytest.raises(RunError, match=f"a: {next(iter(figures))}: not in `metrics`, or not 3 figures: make it anew"):
        read_baseline(tmp_path / "baseline.json")


def test_a_run_without_the_whole_history_comes_back(tmp_path: Path) -> None:
    """There is no cost to save a share of: the figure is absent, and the baseline can be read."""
    execute(plan(recording(tmp_path, conversations=2, turns=2), strategies=("last_turn",)), tmp_path / "run")
    run = measured(load(tmp_path / "run"), ["claude-sonnet-5"])
    write_baseline(run, tmp_path / "baseline.json")
    sums = read_baseline(tmp_path / "baseline.json").sums["last_turn"]
    assert "cost_saving(claude-sonnet-5)" not in sums
    assert sums["cost(claude-sonnet-5)"][:, 0].all()
