"""KV cache of a self-hosted server, simulated on token ids under a memory limit, with concurrent conversations.

block_cache   blocks, evicted least recently used first (vLLM)
radix_cache   a tree of prefixes, evicted by whole leaves (SGLang)
tree          the exact look-up of prefixes that both use
serve         the clock: which calls run side by side, wait, or fit nowhere; and messages as token ids
"""
