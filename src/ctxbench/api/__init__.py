"""The Python API: runs, verdicts, frames and plots of runs. `import ctxbench` offers it."""
