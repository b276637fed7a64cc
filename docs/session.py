"""Draw a terminal session of the first commands, as they print today, whenever MkDocs builds the site."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

IMAGE = "images/session.svg"
# The last one serves until it is stopped.
COMMANDS = (
    ("init",),
    ("config",),
    ("demo",),
    ("run", "coding", "-s", "none", "-s", "retrieval", "-s", "archive"),
    ("view", "runs"),
)
_WIDTH = 100
# Parts of what is printed that differ from one build to the next: progress, paths, the address of `view`.
_PROGRESS = re.compile(r"^\d+% .*\n", re.MULTILINE)
_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/[\w-]+/")


def on_files(files: Any, config: Any) -> Any:
    """Add the picture of the session to the files of the site."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, IMAGE, content=drawn(session())))
    return files


def session() -> str:
    """Return the commands with what they print, run in an empty folder."""
    program = str(Path(sys.executable).with_name("ctxbench"))
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "COLUMNS": str(_WIDTH), "HOME": folder, "NO_COLOR": "1"}
        parts = [
            f"$ ctxbench {' '.join(words)}\n{_printed([program, *words], folder, environment)}" for words in COMMANDS
        ]
    text = _PROGRESS.sub("", "\n".join(parts)).replace(program, "ctxbench")
    return _ADDRESS.sub("http://127.0.0.1:8473/rD1vq…/", text)


def _printed(words: list[str], folder: str, environment: dict[str, str]) -> str:
    """Return what a command prints; a server is stopped once it has said where it is."""
    # A build in the background was started to ignore Ctrl-C, and so would be what it starts.
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    pipes = partial(subprocess.Popen, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    with pipes(words, cwd=folder, env=environment, preexec_fn=heard) as ran:
        assert ran.stdout is not None
        if "view" not in words:
            text = ran.stdout.read()
        else:
            text = "".join(ran.stdout.readline() for _ in range(2))
            ran.send_signal(signal.SIGINT)
            ran.stdout.read()
    if ran.returncode not in (0, 130):
        raise RuntimeError(f"{' '.join(words)} ended with {ran.returncode}:\n{text}")
    return text


def drawn(text: str) -> str:
    """Return a terminal with a text as SVG that fetches no font."""
    from io import StringIO

    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=_WIDTH, file=StringIO())
    for line in text.splitlines():
        console.print(Text(line, style="bold" if line.startswith("$ ") else ""), soft_wrap=True)
    svg = console.export_svg(title="ctxbench", unique_id="session")
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    return svg.replace("Fira Code", "ui-monospace, Menlo, Consolas, DejaVu Sans Mono")
