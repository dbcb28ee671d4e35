"""Queues: what is filled in, what they may promise, and their place in the tree."""
