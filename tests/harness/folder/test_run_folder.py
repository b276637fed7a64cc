"""The folder that a run goes into: what may be in it, and what is never touched."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder.run import load
from ctxbench.harness.folder.store import account, alone, read_manifest, write_manifest
from ctxbench.harness.models import Settings
from ctxbench.scenarios.errors import RunError
from tests.harness.runs import bytes_of, plan, recording


def test_another_run_is_not_written_over(tmp_path: Path) -> None:
    """A folder with a run by another tokenizer is refused, and what differs is named."""
    path = recording(tmp_path)
    execute(plan(path), tmp_path / "run")
    with pytest.raises(RunError, match=r"holds another run \(it differs in encoding\): add --overwrite"):
        execute(plan(path, strategies=("none",), encoding="cl100k_base"), tmp_path / "run")
    execute(plan(path, strategies=("none",)), tmp_path / "run", overwrite=True)
    assert set(load(tmp_path / "run").table("results").strategy) == {"none"}


def test_another_summariser_adds_columns(tmp_path: Path) -> None:
    """Strategies that call it are new ones, which name it; the others are those that are there."""
    path, called = recording(tmp_path, conversations=2), Settings(summariser="openai/gpt-4o-mini", replay=True)
    execute(plan(path, strategies=("none",), models=called), tmp_path / "run")
    execute(plan(path, strategies=("none", "mine=summary(every=2) | window(max_tokens=900)")), tmp_path / "run")
    at_once = ("none", "mine=summary(every=2, summariser='offline') | window(max_tokens=900)")
    execute(plan(path, strategies=at_once, models=called), tmp_path / "once")
    grown, made = bytes_of(tmp_path / "run"), bytes_of(tmp_path / "once")
    assert grown == made
    assert set(load(tmp_path / "run").table("results").strategy) == {"none", at_once[1][5:]}
    asked = list[str]()
    again = plan(path, strategies=("none", "mine=summary(every=2) | window(max_tokens=900)"))
    execute(again, tmp_path / "run", check=asked.extend)
    assert set(load(tmp_path / "run").manifest.plan.strategies) <= set(asked), "the same command names what it added"


def test_another_summariser_is_refused_where_nobody_sees_who_calls_it(tmp_path: Path) -> None:
    """A strategy of a file may call the run's summariser, so it is not measured beside that of another."""
    path, file = recording(tmp_path, conversations=2), tmp_path / "mine.py"
    file.write_text(MINE)
    execute(plan(path, strategies=("none",)), tmp_path / "run")
    models = Settings(summariser="openai/gpt-4o-mini", replay=True)
    with pytest.raises(RunError, match="holds a run with the summariser offline"):
        execute(plan(path, strategies=("none", f"{file}:mine"), models=models), tmp_path / "run")


MINE = "def mine(context):\n    return context\n"


def test_one_run_at_a_time_writes_to_a_folder(tmp_path: Path) -> None:
    """While one does, another is refused, --overwrite or not, and touches nothing; then it may."""
    out = tmp_path / "run"
    path = recording(tmp_path, conversations=1)
    execute(plan(path), out)
    before = (out / "manifest.json").read_bytes()
    with alone(out):
        for overwrite in (False, True):
            with pytest.raises(RunError, match="another run is writing there"):
                execute(plan(path), out, overwrite=overwrite)
    assert (out / "manifest.json").read_bytes() == before
    execute(plan(path), out)


def test_a_folder_of_other_things_is_left_alone(tmp_path: Path) -> None:
    """Neither a file nor a folder that holds something else is ever written to."""
    path = recording(tmp_path)
    with pytest.raises(RunError, match="not a run folder and not empty"):
        execute(plan(path), tmp_path)
    with pytest.raises(RunError, match="not a run folder and not empty"):
        execute(plan(path), path, overwrite=True)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["some.jsonl"]


def test_a_cell_is_read_from_its_own_file(tmp_path: Path) -> None:
    """All other files of the table may be damaged. A conversation that is not there has no rows."""
    out = tmp_path / "run"
    execute(plan(recording(tmp_path, conversations=300)), out)
    run = load(out)
    steps = run.table("steps")
    whole = [rows.strategy.tolist() for _, rows in steps[steps.strategy == "last_turn"].groupby("conversation")]
    for other in (out / "steps").glob("*.parquet"):
        if other.name != "00000-002.parquet":
            other.write_bytes(b"PAR1")
    assert [row["strategy"] for row in run.rows("steps", "c0", "last_turn")] == whole[0]
    assert run.rows("steps", "c300", "last_turn") == []


def test_an_unfinished_run_is_not_read(tmp_path: Path) -> None:
    """A folder without a manifest, an unfinished and a damaged run are each one clear error."""
    with pytest.raises(RunError, match="no run is here"):
        load(tmp_path)
    path = recording(tmp_path)
    out = tmp_path / "run"
    execute(plan(path), out)
    text = (out / "manifest.json").read_text()
    write_manifest(out, replace(read_manifest(out), complete=False))
    with pytest.raises(RunError, match="not finished"):
        load(out)
    (out / "manifest.json").write_text(text[:40])
    with pytest.raises(RunError, match="damaged"):
        load(out)
    (out / "manifest.json").write_text(text)
    next((out / "steps").iterdir()).write_bytes(b"PAR1")
    with pytest.raises(RunError, match=r"steps/00000-\d+.parquet is not as it was written: give the command"):
        load(out).table("steps")


def test_overwrite_removes_nothing_but_a_run(tmp_path: Path) -> None:
    """A folder with another program's manifest.json is refused; in a run folder, files of others stay."""
    path = recording(tmp_path, conversations=2)
    (tmp_path / "other" / "messages").mkdir(parents=True)
    (tmp_path / "other" / "manifest.json").write_text('{"name": "an extension"}')
    (tmp_path / "other" / "messages" / "en.json").write_text("{}")
    with pytest.raises(RunError, match="not of a run"):
        execute(plan(path), tmp_path / "other", overwrite=True)
    assert (tmp_path / "other" / "messages" / "en.json").exists()
    execute(plan(path), tmp_path / "run")
    (tmp_path / "run" / "steps" / "notes.txt").write_text("mine")
    execute(plan(path), tmp_path / "run", overwrite=True)
    assert (tmp_path / "run" / "steps" / "notes.txt").read_text() == "mine"


def test_a_changed_account(tmp_path: Path) -> None:
    """The money of a folder is counted under the same name each time; a changed one is an error."""
    path = tmp_path / ".account"
    assert account(tmp_path) == account(tmp_path)
    path.write_text("x" + path.read_text()[1:])
    with pytest.raises(RunError, match="account: is not as it was written"):
        account(tmp_path)


@pytest.mark.parametrize("left", [".manifest.json.0123456789abcdef", ".DS_Store"])
def test_leftovers_do_not_fill_a_folder(tmp_path: Path, left: str) -> None:
    """What a kill in the first write or a file browser leaves in a folder does not keep a run out of it."""
    path = recording(tmp_path, conversations=2)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / left).write_text("{")
    execute(plan(path), tmp_path / "run")
    assert (tmp_path / "run" / left).exists() == (left == ".DS_Store")
    assert load(tmp_path / "run").manifest.conversations == 2


def test_a_run_of_another_layout(tmp_path: Path) -> None:
    """A run of an older version is refused with what to do, and gives way to --overwrite."""
    asked = plan(recording(tmp_path, conversations=1))
    execute(asked, tmp_path / "run")
    manifest = tmp_path / "run" / "manifest.json"
    manifest.write_text(re.sub(r'"format": \d+', '"format": 1', manifest.read_text()))
    with pytest.raises(RunError, match=r"format 1.*--overwrite"):
        execute(asked, tmp_path / "run")
    assert execute(asked, tmp_path / "run", overwrite=True).complete
