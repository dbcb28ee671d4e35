"""A Kubernetes API server over the simulation's store: what kubectl, client libraries and controllers talk to.

Requests are answered by one thread, one after another, and every write goes through `sim.store`: the rules of versions, deletion and watches are those that
scenarios run on. What an API server adds to a store lives here: discovery, schemas, patches, ownership of fields, tables, selectors, access. Nothing here
schedules, runs pods or reconciles.
"""
