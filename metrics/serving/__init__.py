"""The KV cache of an own server, simulated on token ids, under a memory limit, with conversations side by side.

server       blocks, the least recently used goes first (vLLM)
radix        a tree of prefixes, whole leaves go (SGLang)
tree         the exact look-up of prefixes that both use
serve        the clock: which calls run side by side, wait, or fit nowhere
token_ids    messages as the ids of a plain chat form
"""
