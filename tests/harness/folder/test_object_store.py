"""Run folders in a bucket that is served over HTTP as S3 is, by one process and by workers of a Ray that are killed."""

import os
import random
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxbench.harness.engine.cluster import on_ray
from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder.remote import LEASE, RemoteFolder
from ctxbench.harness.folder.run import load
from ctxbench.harness.folder.store import LOCK
from ctxbench.scenarios.errors import RunError
from tests.harness.runs import bytes_of, plan, processes, recording

pytest.importorskip("s3fs")
server = pytest.importorskip("moto.server")
# Of others' own: sockets that they leave to the end of the process.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::DeprecationWarning"
    ),
]
STRATEGIES = ("none", "window(max_tokens=100)", "summary(every=2)", "archive")
KILLS = 20


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Recordings of several shards, and a run of them on a disk."""
    folder = tmp_path_factory.mktemp("made")
    path = recording(folder, conversations=700, turns=3)
    execute(plan(path, strategies=STRATEGIES), folder / "run")
    return path, folder / "run"


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """The address of a bucket, with all that a process needs to reach it in the environment."""
    served = server.ThreadedMotoServer(port=0)
    served.start()
    host, port = served.get_host_and_port()
    before = dict(os.environ)
    os.environ.update(
        AWS_ENDPOINT_URL=f"http://{host}:{port}",
        AWS_ACCESS_KEY_ID="testing",
        AWS_SECRET_ACCESS_KEY="testing",
        AWS_DEFAULT_REGION="us-east-1",
        RAY_USAGE_STATS_ENABLED="0",
        RAY_AUTH_MODE="disabled",
    )
    import s3fs

    s3fs.S3FileSystem().mkdir("runs")
    yield "s3://runs"
    os.environ.clear()
    os.environ.update(before)
    served.stop()


def on_disk(folder: Path) -> dict[str, str]:
    return {name: digest for name, digest in bytes_of(folder).items() if name != LOCK}


def pulled(address: str, folder: Path) -> dict[str, str]:
    """The digests of what the store has."""
    remote = RemoteFolder(address, folder)
    remote.pull()
    load(folder)
    return on_disk(folder)


def test_one_process(made: tuple[Path, Path], bucket: str, tmp_path: Path) -> None:
    """A run into the bucket has the bytes of one on a disk, and leaves no lease."""
    remote = RemoteFolder(f"{bucket}/one", tmp_path / "copy")
    execute(plan(made[0], strategies=STRATEGIES), remote.copy, remote=remote)
    assert pulled(f"{bucket}/one", tmp_path / "other") == on_disk(made[1])
    assert remote._read(LEASE) is None


def test_workers_of_a_cluster_are_killed(made: tuple[Path, Path], bucket: str, tmp_path: Path) -> None:
    """Two nodes of Ray share nothing but the bucket; their workers are killed at random; the bytes are the same."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    size = {"num_cpus": 1, "object_store_memory": 80_000_000}
    nodes = Cluster(initialize_head=True, head_node_args={**size, "include_dashboard": False})
    nodes.add_node(**size)
    kills, number, told = 0, 0, list[str]()
    try:
        while kills < KILLS:
            number += 1
            stop, before = threading.Event(), kills

            def harm(seed: int, stop: threading.Event = stop) -> None:
                nonlocal kills
                chance = random.Random(seed)
                while not stop.wait(chance.uniform(0.3, 1.5)) and kills < KILLS:
                    if workers := [pid for pid in processes("ray::_do") if pid != os.getpid()]:
                        os.kill(chance.choice(workers), signal.SIGKILL)
                        kills += 1

            killer = threading.Thread(target=harm, args=(number,))
            killer.start()
            address = f"{bucket}/ray{number}"
            remote = RemoteFolder(address, tmp_path / f"copy{number}")
            try:
                execute(plan(made[0], strategies=STRATEGIES), remote.copy, engine=on_ray(nodes.address), remote=remote)
            except RunError as error:
                told.append(str(error))
            finally:
                stop.set()
                killer.join()
            again = RemoteFolder(address, tmp_path / f"again{number}")
            execute(plan(made[0], strategies=STRATEGIES), again.copy, engine=on_ray(nodes.address), remote=again)
            assert pulled(address, tmp_path / f"read{number}") == on_disk(made[1])
            assert kills > before, "no worker was under way"
    finally:
        ray.shutdown()
        nodes.shutdown()
    assert all("run the same command again to go on" in words for words in told)
