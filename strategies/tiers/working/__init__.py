"""The Working tier: cache policies whose items have a size in tokens; `policies` lists them."""
