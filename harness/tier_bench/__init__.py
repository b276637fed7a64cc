"""Benchmarks of single memory tiers: `ctxbench lab bench-tier`."""
