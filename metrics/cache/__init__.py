"""Prompt caches of providers, simulated: the tokens of each request that would be read from and written to a cache.

A request is a row of blocks (the tools, then each message); a cache knows prefixes of it. There is one class per
mechanism, in `mechanisms.py`, which takes the requests of one cache in the order they began and returns how many tokens
were read, written or neither. `prefixes.py` gives equal prefixes equal numbers, so that no cache ever looks at text.
`rules.py` has the rules by model and date, `requests.py` builds requests from a context log and puts marks on them,
`offline_optimum.py` bounds the bill.
"""
