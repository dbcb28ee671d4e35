"""A real cluster behind the protocols of `pumice.cache.effects`: client, watches, writes and the lease.

Everything here is asynchronous and runs on one event loop of its own. Nothing here decides what is scheduled, and nothing here touches the
model: what arrives is handed to the cache, what the cache asks for is carried out and answered.
"""
