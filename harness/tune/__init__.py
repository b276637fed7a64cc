"""Search for good settings of a strategy: `ctxbench tune`."""
