"""What reconciles objects beside the scheduler, the same code against a real cluster and a simulated one.

A controller here is a state machine without input or output: it is fed watch events, asked what it wants written, and told how the
writes went. It never decides where a pod runs.
"""
