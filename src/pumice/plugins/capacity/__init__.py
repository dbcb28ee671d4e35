"""The plugin capacity: queues with amounts they are due, may borrow beyond, and give back."""

from pumice.plugins.capacity.plugin import Capacity

__all__ = ["Capacity"]
