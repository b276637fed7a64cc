"""llama.cpp's own OpenAI-compatible server on loopback, with the weights of `make local-model`, in its own process."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from ctxbench.harness.models.local import weights

needs_llama = pytest.mark.skipif(
    not weights().is_file() or find_spec("xllamacpp") is None, reason="no weights, or no llama.cpp: `make local-model`"
)


@contextmanager
def llama_server() -> Iterator[str]:
    """Serve until the block ends, and give the address. Loading takes seconds, an answer too."""
    command = [sys.executable, "-m", "tests.harness.models.llama", str(weights())]
    root = Path(__file__).parents[3]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"{process.stdout.readline().strip()}/v1"
        finally:
            process.terminate()


def main(gguf: str) -> None:
    """Serve until standard input is closed, with the address on standard output."""
    from xllamacpp import CommonParams, Server

    params = CommonParams()
    params.model.path = gguf
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.n_ctx, params.n_parallel = 8192, 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.warmup = params.ui = False
    params.verbosity = -1
    server = Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])
