"""Kubernetes objects as they travel.

Here live the typed wire structs of every object the scheduler reads or writes, the kinds they belong to, decoding of manifests into
them, and the text forms of Kubernetes: quantities, durations, timestamps, names of labels and annotations.

Nothing here knows what scheduling is: no matching of selectors, no arithmetic on resources, no judgement whether a number makes sense.
Nothing here does input or output or reads a clock, and nothing here imports another package of this project. Importing the package itself
is free; callers import the module they need (``from pumice.api import quantity``).
"""
