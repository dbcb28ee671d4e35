"""What runs controllers in any world: a queue of objects to look at, what is known of the cluster, and turns of writes with their answers.

Nothing here does input or output or has a clock; runners (`pumice.kube.reconciling`, `pumice.sim.reconciling`, `pumice.local_cluster.controlling`) hand in
the time, the events and the answers.
"""
