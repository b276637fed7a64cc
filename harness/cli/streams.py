"""Standard output and standard error that may go away or be full while we write."""

from __future__ import annotations

import io
import os
import sys
from typing import TextIO

from ...scenarios.errors import RunError


class _Output(io.FileIO):
    """A reader who has read enough ends the program, quietly and well. A full disk is the user's to mend."""

    _ended = False

    def write(self, data: bytes, /) -> int:  # type: ignore[override]
        if self._ended:
            return len(data)
        try:
            return super().write(data)
        except OSError as error:
            self._ended = True
            if isinstance(error, BrokenPipeError):
                raise SystemExit(0) from None
            raise RunError(f"standard output: cannot be written: {error.strerror or error}") from None


class _Errors(io.FileIO):
    """What cannot be said is not said: the work goes on."""

    def write(self, data: bytes, /) -> int:  # type: ignore[override]
        try:
            return super().write(data)
        except OSError:
            return len(data)


def guard() -> None:
    """Put both streams under guard, so that no command need think of them."""
    sys.stdout = _guarded(sys.stdout, _Output)
    sys.stderr = _guarded(sys.stderr, _Errors)


def _guarded(stream: TextIO | None, kind: type[io.FileIO]) -> TextIO:
    if stream is None:  # it was closed before we started
        return open(os.devnull, "w", encoding="utf-8")
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    if sys.platform == "win32" and stream.isatty():  # which takes no bytes
        stream.reconfigure(errors="replace")
        return stream
    return io.TextIOWrapper(
        io.BufferedWriter(kind(stream.fileno(), "wb", closefd=False)),
        stream.encoding,
        "replace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
