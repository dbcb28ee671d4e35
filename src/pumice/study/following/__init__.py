"""A cluster that is followed: every change is taken as it comes, sums and rows are kept by what changed, and whoever shows it asks for a scene or for what is new.

`pumice top` draws scenes of it; `pumice.web` sends on what is new. Nothing is written to the cluster.
"""
