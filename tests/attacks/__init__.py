"""Attacks on what ctxbench promises: damaged files, stopped runs, two processes at once."""
