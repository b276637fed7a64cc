"""Benchmarks of single memory tiers: `ctxbench bench-tier`."""
