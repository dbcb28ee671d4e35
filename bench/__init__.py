"""Benchmarks: how long deciding takes, each beside a plain numpy floor measured in the same run.

Machines are noisy, so the ratio to the floor is what to compare between runs; nothing here fails on time.
"""
