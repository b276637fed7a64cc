"""Sets of answers with labels, one file each: who wrote which answer to what, and whether people found it right.

A format is told by the keys in the file, never by its name. A bad row is a RecordingError in `Problems`; the rest is
read. `user.py` is the format for sets of your own.

    problems = Problems()
    for each in read([Path("NQ.json")], problems):
        each.question, each.accepted, each.candidate, each.correct
"""

from __future__ import annotations

from .labelled import Kind, Labelled, Language
from .read import FORMATS, read

__all__ = ["FORMATS", "Kind", "Labelled", "Language", "read"]
