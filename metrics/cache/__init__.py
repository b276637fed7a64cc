"""Prompt caches of providers, simulated: what of each request would be read from a cache, and what written to it.

A request is a row of blocks (the tools, then each message); a cache knows prefixes of it. One model per mechanism:

    explicit     the caller marks where prefixes end (Anthropic, Bedrock, Vertex)
    automatic    any common prefix counts, in units of some tokens (OpenAI before GPT-5.6, DeepSeek before V4, Gemini)
    boundary     whole prefixes only, at boundaries (OpenAI since GPT-5.6) or as units (DeepSeek since V4)
    stored       content that the caller creates and pays for by the hour (Gemini)

Each takes the requests of one cache in the order they began, and says of each what was read, written and neither.
`prefixes.py` gives equal prefixes equal numbers, so that a model never looks at text; `rules.py` says which model and
date has which rules. `cell.py` makes requests of a context log, `placement.py` puts marks on them, `hindsight.py` is
their bound.
"""
