"""The steps of a cycle, one file each: which jobs are looked at, in which order, and what is tried for them.

An action asks plugins through the session, changes the cluster through statements only, and never imports a plugin.
"""
