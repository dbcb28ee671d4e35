"""Workloads and what a scheduler makes of them: worlds as files, measured in memory, without a cluster.

Objects take the way they take from a real API server (JSON, structs, events, model), the cycle is the scheduler's own, and nobody answers but a world that binds.
Nothing here is imported by anything that schedules.
"""
