"""Controllers of Volcano's kinds as a running part: Lease, watches, writes, metrics. They run in a process of their own, or in a thread of the scheduler's.

What they do is decided in `pumice.controllers`; nothing here does.
"""
