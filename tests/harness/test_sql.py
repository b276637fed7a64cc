"""`run.sql()`: queries over the parts of a run, which read the run and nothing else."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import ctxbench
from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder.schema import SCHEMAS
from ctxbench.scenarios.errors import SpecError
from tests.harness.runs import STRATEGIES, bytes_of, plan, recording

pytest.importorskip("duckdb")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> ctxbench.BenchmarkRun:
    """A run of nine conversations in three shards, in a folder whose name has what globs and SQL read as theirs."""
    folder = tmp_path_factory.mktemp("sql") / "it's [a] strategy=x"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ctxbench.harness.engine.plan.SHARD_CONVERSATIONS", 3)
        execute(plan(recording(folder, conversations=9, turns=6)), folder / "run")
    return ctxbench.load(folder / "run")


@pytest.fixture(scope="module")
def smoke() -> ctxbench.BenchmarkRun:
    """A run of embedded conversations with questions, answered by the embedded reader."""
    return ctxbench.run("smoke", strategies=["none", "last_turn"])


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_table_has_the_rows_and_columns_of_the_frame(made: ctxbench.BenchmarkRun, name: str) -> None:
    """`select *` is `run.table()`, in its order; a table for which the run wrote nothing has no rows."""
    rows, table = made.sql(f"select * from {name}"), made.table(name)
    assert list(rows.columns) == list(table.columns)
    assert len(rows) == len(table)
    assert [list(map(str, row)) for row in rows[["conversation"]].to_numpy()] == [
        list(map(str, row)) for row in table[["conversation"]].to_numpy()
    ]
    numbers = table.select_dtypes("number").columns
    pd.testing.assert_frame_equal(rows[numbers], table[numbers], check_dtype=False)


def test_the_frames_are_tables(made: ctxbench.BenchmarkRun) -> None:
    """Summary, growth and bill have the columns of the methods, the strategy too, and can be joined with others."""
    for name in ("summary", "growth", "bill"):
        frame = getattr(made, name)()
        frame = frame if isinstance(frame.index, pd.RangeIndex) else frame.reset_index()
        rows = made.sql(f"from {name}")
        assert list(rows.columns) == list(frame.columns)
        assert len(rows) == len(frame)
    joined = made.sql(
        "select strategy, sum(cost) as cost from bill join conversations using (conversation)"
        " where model = ? group by strategy order by strategy",
        [made.models[0]],
    )
    bill = made.bill(made.models[0]).astype({"strategy": str}).groupby("strategy").cost.sum()
    assert joined.cost.tolist() == pytest.approx(bill.tolist(), rel=1e-12)


def test_answers_and_grades_say_whose_they_are(smoke: ctxbench.BenchmarkRun) -> None:
    """The answer model and the grader are the last columns."""
    rows = smoke.sql(
        "select a.answerer, g.grader, count(*) as answers from answers a join grades g"
        " using (conversation, strategy, number) group by all"
    )
    assert rows.answerer.tolist() == ["offline"]
    assert rows.grader[0].startswith("rules")
    assert rows.answers[0] == len(smoke.sql("select * from answers")) > 0
    assert list(smoke.sql("select * from grades limit 0").columns)[-2:] == ["answerer", "grader"]


def test_values_are_bound(made: ctxbench.BenchmarkRun) -> None:
    """By place and by name; a value is never read as SQL."""
    asked = "select count(*) as steps from steps where strategy = "
    steps = made.table("steps")
    for strategy in STRATEGIES:
        wanted = int((steps.strategy == strategy).sum())
        assert made.sql(f"{asked}?", [strategy]).steps[0] == wanted
        assert made.sql(f"{asked}$strategy", {"strategy": strategy}).steps[0] == wanted
    assert made.sql(f"{asked}?", ["none' or ''='"]).steps[0] == 0


ATTACKS = (
    "copy steps to '{file}'",
    "copy (select 1) to '{file}' (format parquet, use_tmp_file false)",
    "with x as (copy (select 1) to '{file}' (use_tmp_file false)) select 1",
    "with x as (copy (select 1) to '{part}' (format parquet, use_tmp_file false)) select * from steps",
    "explain analyze copy (select 1) to '{file}' (use_tmp_file false)",
    "export database '{file}'",
    "attach '{file}'",
    "install httpfs",
    "select * from read_csv('/etc/passwd')",
    "select * from read_blob('{part}')",
    "select * from read_csv('https://example.org/x.csv')",
    "select * from glob('/etc/*')",
    "select * from '/etc/passwd'",
    "from query('copy (select 1) to ''{file}''')",
    "set enable_external_access = true",
    "select 1; set enable_external_access = true; select * from read_csv('/etc/passwd')",
    "call enable_logging(storage = 'file', storage_path = '{file}')",
    "create table t as select 1",
    "create persistent secret (type s3)",
    "select * from secret_frame",
    "select getenv('HOME')",
)


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_query_reads_the_run_and_nothing_else(made: ctxbench.BenchmarkRun, tmp_path: Path, attack: str) -> None:
    """SQL that reads or writes files, the network, extensions, settings or the caller's frames is one clear error."""
    secret_frame = pd.DataFrame({"a": [1]})
    assert len(secret_frame)
    before = bytes_of(made.folder)
    part = str(made.reader.files("steps")[0]).replace("'", "''")
    with pytest.raises(SpecError, match=r"^sql: ") as caught:
        made.sql(attack.format(file=tmp_path / "file", part=part))
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())
    assert bytes_of(made.folder) == before


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda run: run.sql("selec 1"), 'syntax error at or near "selec"'),
        (lambda run: run.sql("select tokns_sent from steps"), 'Candidate bindings: .*"tokens_sent"'),
        (lambda run: run.sql("select * from stps"), "no table 'stps'; did you mean 'steps'"),
        (lambda run: run.sql(""), "this is nothing: give one query"),
        (lambda run: run.sql("select 1; select 2"), "this is SELECT and SELECT: give one query"),
        (lambda run: run.sql("select ?"), "Values were not provided"),
        (lambda run: run.sql("select ?", "none"), "parameters='none': give a list"),
        (lambda run: run.sql("select 1", memory="much"), "memory='much': give a size"),
        (
            lambda run: run.sql("select list(s order by step) from steps s", memory="1MB"),
            "needs more than memory='1MB'",
        ),
    ],
)
def test_a_mistake_is_one_clear_error(made: ctxbench.BenchmarkRun, asked: object, said: str) -> None:
    """Return the error of a query or of its settings, which is one line."""
    assert callable(asked)
    with pytest.raises(SpecError, match=said) as caught:
        asked(made)
    assert "\n" not in str(caught.value)
