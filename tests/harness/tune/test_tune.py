"""A whole search, in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxbench.harness.engine.plan import RunInputs
from ctxbench.harness.tune import tune as module
from ctxbench.harness.tune.tune import TOKENS, Search, Tried, Tuned
from ctxbench.reports.tune import as_json
from ctxbench.scenarios.errors import RunError
from ctxbench.strategies.window import Window
from tests.harness.runs import fail
from tests.harness.tune.builders import recording

SPEC = "window(max_tokens=?)"


def tune(path: Path, out: Path, **more: Any) -> Tuned:
    """Six trials are a batch and a half."""
    usual: dict[str, Any] = {"strategy": SPEC, "inputs": RunInputs((str(path),)), "cost": TOKENS, "trials": 6}
    return Search(out=out, **{**usual, **more}).run()


def exact(found: Tuned) -> str:
    import msgspec

    return msgspec.json.encode(as_json(found)).decode()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recording(tmp_path_factory.mktemp("codes"), turns=5)


@pytest.fixture(scope="module")
def found(path: Path, tmp_path_factory: pytest.TempPathFactory) -> Tuned:
    return tune(path, tmp_path_factory.mktemp("tune") / "out")


def test_the_frontier(found: Tuned) -> None:
    """More tokens, more codes that are still there, on both sides; the whole history has them all."""
    assert found.quality == "grounding"
    assert (found.train, found.held_out, found.trials) == (4, 4, 6)
    chosen = [each for each in found.settings if each.chosen]
    assert chosen
    points = [each.train.point for each in chosen]
    assert points == sorted(points, reverse=True)  # type: ignore[type-var]
    assert len({point.quality for point in points if point}) == len(points)
    whole = found.settings[-1]
    assert whole.whole
    assert whole.train.quality.mean == whole.held_out.quality.mean == 1.0  # type: ignore[union-attr]


def test_what_is_held_out_is_measured_apart(found: Tuned) -> None:
    """Its cost is that of other conversations, with their range, and with a difference to the whole history."""
    first = found.settings[0]
    assert first.held_out.cost != first.train.cost
    low, high = first.held_out.cost.low.across  # type: ignore[union-attr]
    assert low < first.held_out.cost.mean < high  # type: ignore[union-attr]
    assert first.against is not None
    assert first.against.cost.value < 0  # type: ignore[operator]


def test_stopped_and_continued(path: Path, tmp_path: Path, found: Tuned, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped after any measurement, the search goes on with the same trials and ends with the same figures."""
    plain, left = module.tried, 0

    def counted(task: Any) -> Tried:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return plain(task)

    monkeypatch.setattr(module, "tried", counted)
    for stop in (1, 3, 4):
        left = stop
        with pytest.raises(KeyboardInterrupt):
            tune(path, tmp_path / "out")
    left = 1000
    assert exact(tune(path, tmp_path / "out")) == exact(found)


@pytest.mark.slow
def test_workers_change_nothing(path: Path, tmp_path: Path, found: Tuned) -> None:
    """Two workers give what one does."""
    assert exact(tune(path, tmp_path / "out", jobs=2)) == exact(found)


def test_settings_that_fail(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting that the strategy refuses, and one that raises: each has its reason, and the rest goes on."""
    fail(monkeypatch, Window, "The code is KX-")
    with pytest.raises(RunError, match=r"no setting of .* could be tried.*IndexError"):
        tune(path, tmp_path / "all")
    monkeypatch.undo()
    found = tune(path, tmp_path / "some", strategy="window(max_tokens=?[-5, 0, 300])")
    assert [each.spec for each in found.settings if each.chosen] == ["window(max_tokens=300)"]
    assert [setting for setting, _ in found.failed] == ["max_tokens=-5", "max_tokens=0"]
    assert "max_tokens must be at least 1" in found.failed[0][1]
    assert found.exhaustive


def test_another_search(path: Path, tmp_path: Path, found: Tuned) -> None:
    """Searches may share a folder; damaged figures are measured again; a folder of something else is refused."""
    tune(path, tmp_path / "out", trials=1, seed=1)
    assert exact(tune(path, tmp_path / "out")) == exact(found)
    for file in (tmp_path / "out" / "figures").iterdir():
        file.write_text('{"spec": ')
    assert exact(tune(path, tmp_path / "out")) == exact(found)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(RunError, match="not the folder of a search"):
        tune(path, tmp_path / "mine")
    assert (tmp_path / "mine" / "notes.txt").read_text() == "mine"


def test_the_bill(path: Path, tmp_path: Path) -> None:
    """Under a model cost is in dollars."""
    made = tune(path, tmp_path / "out", strategy="summary(threshold=?)", cost="gpt-4o", trials=2)
    tried = [json.loads(each.read_text()) for each in (tmp_path / "out" / "figures").iterdir()]
    assert made.cost == "gpt-4o"
    assert all(0 < cost < 1 for each in tried for cost in each["cost"])


def test_what_cannot_be_searched(path: Path, tmp_path: Path) -> None:
    """A model without a price; recordings without anything to tell quality by. Nothing is written for the first."""
    with pytest.raises(RunError, match="the price of gpt-4p is not known; did you mean"):
        tune(path, tmp_path / "out", cost="gpt-4p")
    assert not (tmp_path / "out").exists()
    with pytest.raises(RunError, match="no answer_quality can be measured on both sides"):
        tune(path, tmp_path / "out", quality="answer_quality")
