"""Webhooks that others have registered: which of them concern a write, what they are asked, and what their answers mean.

A write is a generator (`steps.py`): where it has to ask somebody outside it yields the calls and goes on with their outcomes. What stands between two calls runs at once,
so a webhook that hangs holds up its own write and nothing else.
"""
