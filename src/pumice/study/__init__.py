"""A cluster studied in memory: read from files, a scenario or a live API server, and asked what a scheduler would do with it.

Here live reading, one cycle that leaves no trace, the search for the smallest change that starts a job, and the difference that a change makes. Nothing
here writes to a cluster: effects end in a world that takes everything and performs nothing, or in a simulated one.
"""
