"""Scenario files: tests of a scheduling policy, and what runs them.

A scenario is a cluster, a policy, what happens, and what must be true. Here live the format, the runner, the expectations and the
reports. The runner drives the scheduler only through the simulated cluster, the cache and the scheduler's public interface; it never
reaches into the model, and no expectation asks the scheduler for a number that can be counted from the stored objects.
"""
