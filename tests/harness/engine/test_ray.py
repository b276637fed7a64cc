"""Runs on Ray: the same bytes as in one process, whoever is lost on the way."""

import os
import random
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctxbench.harness.engine.cluster import on_ray
from ctxbench.harness.engine.plan import Plan, RunInputs, execute
from ctxbench.scenarios.errors import RunError
from tests.harness.command import ctxbench
from tests.harness.runs import bytes_of, processes, recording

ray = pytest.importorskip("ray")
# Of Ray's own: it opens files and sockets that it leaves to the end of the process.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")

STRATEGIES = ("none", "window(max_tokens=100)", "summary(every=2)", "archive")


def plan(path: Path) -> Plan:
    return Plan(RunInputs((str(path),)), STRATEGIES)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Recordings of several shards, and a run of them in this process."""
    folder = tmp_path_factory.mktemp("made")
    path = recording(folder, conversations=700, turns=3)
    execute(plan(path), folder / "run")
    return path, folder / "run"


@pytest.fixture
def cluster() -> Iterator[Any]:
    """Two nodes of one processor each, on this machine."""
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_AUTH_MODE="disabled")
    from ray.cluster_utils import Cluster

    size = {"num_cpus": 1, "object_store_memory": 80_000_000}
    nodes = Cluster(initialize_head=True, head_node_args={**size, "include_dashboard": False})
    nodes.add_node(**size)
    yield nodes
    ray.shutdown()
    nodes.shutdown()


def test_two_workers_write_the_same_bytes(
    made: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run on a Ray of two workers has the bytes of one in this process, and runs no module of the folder it is in."""
    path, alone = made
    monkeypatch.chdir(tmp_path)
    for name in ("ctxbench", "msgspec", "pyarrow", "pydantic"):
        Path(f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    manifest = execute(plan(path), tmp_path / "run", engine=on_ray(cores=2))
    assert manifest.complete
    assert manifest.shards > 2
    assert bytes_of(tmp_path / "run") == bytes_of(alone)
    assert not Path("ran").exists()


def test_no_cluster_there(made: tuple[Path, Path], tmp_path: Path) -> None:
    """An address with no cluster is one line."""
    with pytest.raises(RunError, match=r"no Ray cluster can be reached at 127\.0\.0\.1:1 "):
        execute(plan(made[0]), tmp_path / "run", engine=on_ray("127.0.0.1:1"))


def test_models_stay_on_one_machine(made: tuple[Path, Path], tmp_path: Path) -> None:
    """A summariser that is called is refused: the cassette and the spend limit are one machine's."""
    done = ctxbench("run", str(made[0]), "--summariser", "openai/some", "--engine", "ray", cwd=tmp_path, code=2)
    assert "--engine ray: calls no models" in done.stderr
    done = ctxbench("run", str(made[0]), "--engine", "auto", cwd=tmp_path, code=2)
    assert "--engine auto: give local, ray, ray:HOST:PORT" in done.stderr


@pytest.mark.slow
def test_killed_workers_and_a_lost_node(made: tuple[Path, Path], tmp_path: Path, cluster: Any) -> None:
    """Workers are killed at random 50 times and one of two nodes is lost, and the bytes are the same."""
    path, alone = made
    address, kills, told = cluster.address, 0, list[str]()
    while kills < 50:
        out, stop = tmp_path / f"run{kills}", threading.Event()
        before = kills

        def harm(seed: int, stop: threading.Event = stop) -> None:
            nonlocal kills
            chance = random.Random(seed)
            while not stop.wait(chance.uniform(0.2, 1.0)) and kills < 50:
                if workers := [pid for pid in processes("ray::_do") if pid != os.getpid()]:
                    os.kill(chance.choice(workers), signal.SIGKILL)
                    kills += 1

        killer = threading.Thread(target=harm, args=(kills,))
        killer.start()
        try:
            execute(plan(path), out, engine=on_ray(address))
        except RunError as error:
            told.append(str(error))
        finally:
            stop.set()
            killer.join()
        execute(plan(path), out, engine=on_ray(address))
        assert bytes_of(out) == bytes_of(alone)
        assert kills > before, "no worker was under way"
    lost = threading.Timer(2.0, lambda: cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False))
    lost.start()
    execute(plan(path), tmp_path / "lost", engine=on_ray(address))
    lost.join()
    assert bytes_of(tmp_path / "lost") == bytes_of(alone)
    assert all("run the same command again to go on" in words for words in told)
