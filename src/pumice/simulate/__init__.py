"""`pumice simulate`: what a policy would have done to the jobs of a trace, in virtual time, and how good that is.

Traces are read here, run through the scheduler's own cache, session, actions and plugins over a world that binds at once, and judged by pure functions. Nothing here decides where a pod goes.
"""
