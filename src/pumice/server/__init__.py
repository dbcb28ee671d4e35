"""The running scheduler: flags, threads, the source of its configuration, servers for metrics and health, logs and dumps.

Two threads: one decides, one does input and output. Nothing here decides what is scheduled.
"""
