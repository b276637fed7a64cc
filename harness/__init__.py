"""Running strategies over recordings: replay, the matrix, its store. `cli/` is the outermost layer."""
