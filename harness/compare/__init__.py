"""Compare the figures of two runs, or of a run and a baseline, and gate on the result."""
