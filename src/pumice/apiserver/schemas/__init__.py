"""Schemas of objects: compiled once, then used to prune, check, default, patch and own fields. Pure; no I/O."""
