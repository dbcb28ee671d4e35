"""Simulated nodes on a real API server: their kubelets register them, start what is bound to them and finish what ends.

Nothing here knows the scheduler; anybody's scheduler may be tried on such nodes.
"""
