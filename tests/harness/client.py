"""Ask a zygote (`zygote.py`) for a process and wait for its exit code; as a script, stand for the installed command."""

import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence

LOST = 255  # the exit code of a process that was killed before it could tell its own


def run(address: str, command: Sequence[str], cwd: str, environment: Mapping[str, str], files: Sequence[int]) -> int:
    """Run a command with these files as its standard input, output and error; return its exit code."""
    asked = json.dumps({"command": command, "cwd": cwd, "environment": dict(environment)}).encode()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        socket.send_fds(connection, [b"\n"], list(files))
        connection.sendall(asked)
        connection.shutdown(socket.SHUT_WR)
        answer = connection.recv(16)
    return int(answer) if answer else LOST


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], sys.argv[2:], os.getcwd(), os.environ, (0, 1, 2)))
