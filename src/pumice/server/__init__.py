"""The running scheduler, by concern: flags, configuration, threads, metrics, health, logs; dumps of what it knows.

Two threads: one decides, one does input and output. `process` puts the parts together. Nothing here decides what is scheduled.
"""
