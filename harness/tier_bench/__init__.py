"""tier_bench."""
