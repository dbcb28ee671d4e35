"""A Kubernetes cluster in memory: object store, virtual clock, kubelets, faults, garbage collection.

It stands where a real cluster would stand: watch events go out to a cache, effects come in and are answered later. Nothing here
reaches into the scheduler's model, reads the wall clock, or uses chance: the same calls give the same results, always.
"""
