"""The design documents' claims, as measurements: what `ctxbench claims` shows.

claim       what a claim is, and how intervals become a verdict
inputs      what claims are measured on: a stored run, what is run beside it, recordings
figures     a run's figures as rows
register    every claim, in files by subject: tokens, cost, storing, facts, counting, focus, caching, compressing,
            searching, clock
stored      findings in the folder of the run that they are of

Nothing is measured here that is measured elsewhere: each claim asks the module that has its figure.
"""
