"""Queues: whether they are open, what people order them to be, and what their parents do to them.

`states` is the state machine, `orders` are Commands on their way through a controller that may be killed at any moment, `controlling` puts both together,
and `group_counts` counts what is in a queue for whoever measures.
"""
