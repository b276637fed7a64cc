"""Benchmarks of single memory tiers: `ctxbench lab tiers`."""
