"""Prompt caches of providers, simulated: the tokens of each request that would be read from and written to a cache.

A request is a row of blocks (the tools, then each message); a cache knows prefixes of it. There is one class per
mechanism, in `mechanisms.py`:

    explicit     the caller marks where prefixes end (Anthropic, Bedrock, Vertex)
    automatic    any common prefix counts, in units of some tokens (OpenAI before GPT-5.6, DeepSeek before V4, Gemini)
    boundary     whole prefixes only, at boundaries (OpenAI since GPT-5.6) or as units (DeepSeek since V4)
    stored       content that the caller creates and pays for by the hour (Gemini)

Each takes the requests of one cache in the order they began, and returns how many tokens were read, written or neither.
`prefixes.py` gives equal prefixes equal numbers, so that no cache ever looks at text. `rules.py` has the rules by model
and date, `requests.py` builds requests from a context log and puts marks on them, `offline_optimum.py` bounds the bill.
"""
