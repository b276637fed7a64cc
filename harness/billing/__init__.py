"""What the requests of a stored run would cost: under any provider's cache rules, dates, prices and cache marks.

cells       the requests, from the run's tables
simulate    what of each would be read from a cache, written to it, and neither
kept        the same, kept beside the run: it is simulated once
bill        money, by call and by conversation, and when a strategy breaks even
breaks      where the prefix of a prompt broke, and what broke it
hindsight   the lowest bill that cache marks could have reached
"""
