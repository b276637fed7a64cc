"""A whole search, in this process and as a user runs it, and which conversations it holds out."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ctxbench.harness.engine.plan import RunInputs
from ctxbench.harness.tune import tune as module
from ctxbench.harness.tune.tune import TOKENS, Search, Tried, Tuned, split
from ctxbench.reports.tune import as_json
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.model import Conversation, Probe
from ctxbench.strategies.window import Window
from tests.builders import talk
from tests.harness.command import ctxbench
from tests.harness.runs import fail
from tests.harness.tune.builders import conversation, recording

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
    monkeypatch.setenv("CTXBENCH_CACHE", str(tmp_path / "cache"))

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
    """Searches may share a folder; a folder of something else is refused."""
    tune(path, tmp_path / "out", trials=1, seed=1)
    assert exact(tune(path, tmp_path / "out")) == exact(found)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(RunError, match="not the folder of a search"):
        tune(path, tmp_path / "mine")
    assert (tmp_path / "mine" / "notes.txt").read_text() == "mine"


def test_the_bill(path: Path, tmp_path: Path) -> None:
    """Under a model cost is in dollars."""
    made = tune(path, tmp_path / "out", strategy="summary(threshold=?)", cost="gpt-4o", trials=2)
    assert made.cost == "gpt-4o"
    assert all(0 < figures.cost.mean < 1 for _, figures in made.tried)  # type: ignore[union-attr]


def test_what_cannot_be_searched(path: Path, tmp_path: Path) -> None:
    """A model without a price; recordings without anything to tell quality by. Nothing is written for the first."""
    with pytest.raises(RunError, match="the price of gpt-4p is not known; did you mean"):
        tune(path, tmp_path / "out", cost="gpt-4p")
    assert not (tmp_path / "out").exists()
    with pytest.raises(RunError, match="no answer_quality can be measured on both sides"):
        tune(path, tmp_path / "out", quality="answer_quality")


SEARCH = ("tune", "window(max_tokens=?)", "codes.jsonl", "--model", "tokens", "-n", "6")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with recordings, and one search over them."""
    made = tmp_path_factory.mktemp("tune")
    recording(made, turns=5)
    (made / "first.txt").write_text(ctxbench(*SEARCH, "-o", "one", cwd=made).stdout)
    return made


def test_what_is_printed(folder: Path) -> None:
    """The frontier, what was held out beside it, the space, and texts that `run` takes."""
    text = (folder / "first.txt").read_text()
    assert "Which window(max_tokens=?) is worth its cost? Cost in tokens a conversation" in text
    assert "Searched on 4 conversations; 4 conversations held out." in text
    assert "Held out: against the whole history" in text
    assert "up to the longest conversation" in text
    found = json.loads((folder / "one" / "tune.json").read_text())
    specs = [each["spec"] for each in found["settings"] if each["chosen"]]
    assert specs
    assert all(each in text for each in specs)
    ctxbench("run", "codes.jsonl", "-s", specs[0], "-o", "pasted", cwd=folder)
    assert not (folder / "one" / "running").exists()


def test_bad_input(folder: Path) -> None:
    """One line each, exit code 2, and no folder is made."""
    for words, says in (
        (("window(max_tokens=?)", "absent.jsonl"), "no such file"),
        (("window(max_token=?)", "codes.jsonl"), "did you mean 'max_tokens'"),
        (("window(max_tokens=?[9..1])", "codes.jsonl"), "9 is more than 1"),
    ):
        done = ctxbench("tune", *words, "-o", "bad", cwd=folder, code=2)
        assert says in done.stderr
        assert not (folder / "bad").exists()
    (folder / "single.jsonl").write_bytes((folder / "codes.jsonl").read_bytes().splitlines(keepends=True)[0])
    done = ctxbench("tune", "window(max_tokens=?)", "single.jsonl", "-o", "bad", cwd=folder, code=2)
    assert "one conversation: none can be held out" in done.stderr


MANY = [conversation(number, 2) for number in range(20)]


def names(conversations: list[Conversation]) -> list[str]:
    return [each.id for each in conversations]


def test_a_share_is_held_out() -> None:
    """Half of twenty are ten; each is on one side, in the order in which it was read."""
    train, held = split(MANY)
    assert (len(train), len(held)) == (10, 10)
    assert sorted(names(train) + names(held)) == sorted(names(MANY))
    assert names(train) == [each.id for each in MANY if each.id in names(train)]


def test_the_order_changes_nothing_and_the_seed_does() -> None:
    """A conversation's side is by what it says and the seed."""
    held = set(names(split(MANY).held_out))
    assert set(names(split(MANY[::-1]).held_out)) == held
    assert set(names(split(MANY, seed=1).held_out)) != held


def test_what_says_the_same_is_on_one_side() -> None:
    """Else a copy of what chose the settings would judge them."""
    copies = [msgspec.structs.replace(each, id=f"{each.id} again") for each in MANY]
    held = set(names(split([*MANY, *copies]).held_out))
    assert held == {
        name for each in held for name in (each.removesuffix(" again"), f"{each.removesuffix(' again')} again")
    }


def test_a_unit_is_on_one_side() -> None:
    """A session and its subagents, and what names one unit, are held out together or not at all."""
    parts = [
        each
        for number, parent in enumerate(MANY[:10])
        for each in (parent, msgspec.structs.replace(MANY[10 + number], id=f"{parent.id}/agent"))
    ]
    held = set(names(split(parts).held_out))
    assert len(held) == 10
    assert {name.removesuffix("/agent") for name in held} == {name for name in held if "/" not in name}
    twins = [msgspec.structs.replace(each, meta={"unit": f"u{at // 2}"}) for at, each in enumerate(MANY)]
    sides = split(twins, seed=3)
    assert not {each.meta["unit"] for each in sides.train} & {each.meta["unit"] for each in sides.held_out}


def test_probes_are_on_both_sides() -> None:
    """Of twenty conversations two have probes: one of them is held out, whatever the seed."""
    probe = Probe("p", "What is the code?", answers=("KX",), evidence=("m1",))
    some = [msgspec.structs.replace(each, probes=(probe,)) if at < 2 else each for at, each in enumerate(MANY)]
    for seed in range(10):
        assert sum(bool(each.probes) for each in split(some, seed=seed).held_out) == 1


def test_few_conversations() -> None:
    """Of one nothing can be held out, and that is said; so it is of copies. Of two it is one."""
    assert len(split(MANY[:2]).held_out) == 1
    with pytest.raises(RunError, match=r"one conversation: none can be held out.*give more recordings"):
        split([talk(("user", "hello"))])
    with pytest.raises(RunError, match="2 conversations that say the same"):
        split([talk(("user", "hello"), name=name) for name in "ab"])
