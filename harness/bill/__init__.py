"""bill."""
