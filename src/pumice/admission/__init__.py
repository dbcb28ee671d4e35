"""What may be stored of Volcano's kinds, and what is filled in before: pure functions from an object to a verdict.

Nothing here reads a clock, a file or a cluster. Objects are JSON documents that somebody else wrote, so a value of any type may stand anywhere. The webhook
server, `pumice vet` and the API server of a local cluster ask the same functions.
"""
