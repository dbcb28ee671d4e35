"""Events in, writes out: the mirror between a cluster and the model.

Watch events are applied to the model between cycles; decisions leave as effects through small protocols that a real and a simulated
cluster both implement. Nothing here decides, sleeps, or talks to a network.
"""
