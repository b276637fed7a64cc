"""Why something of a strategy failed, in one line that can be printed and written."""

from __future__ import annotations

import traceback
from pathlib import Path

from ..scenarios.errors import UserError
from ..strategies import base
from ..strategies.base import Misfit

OURS = {Path(__file__).parent, Path(__file__).parent / "probing", Path(base.__file__).parent}
"""Where a sentence on what a strategy did is raised: a place there is not where it is to be mended."""


def why(error: Exception | SystemExit) -> str:
    """The reason; for what is wrong in code, with the place."""
    is_sentence = isinstance(error, UserError | Misfit)
    try:
        said = str(error)
    except Exception:  # a strategy's own exception may fail even there
        said = "(its text cannot be had)"
    text = said if is_sentence else f"{type(error).__name__}: {said}"
    frames = [] if isinstance(error, UserError) else traceback.extract_tb(error.__traceback__)
    frames = [each for each in frames if not is_sentence or Path(each.filename).parent not in OURS]
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return " ".join((text + place).split()).encode(errors="replace").decode()
