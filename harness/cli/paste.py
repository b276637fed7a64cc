"""Commands as text that works when it is pasted."""

from __future__ import annotations

import os
import shlex
import shutil
import sys


def command(*words: object) -> str:
    """A ctxbench command: as `ctxbench` if the shell would find this very program, else as it was started."""
    started, found = sys.argv[0], shutil.which("ctxbench")
    known = not os.path.isfile(started) or (found is not None and os.path.samefile(found, started))
    return shlex.join(["ctxbench" if known else started, *map(str, words)])


def same_command() -> str:
    """This command again, to go on with a run."""
    return command(*(word for word in sys.argv[1:] if word != "--overwrite"))
