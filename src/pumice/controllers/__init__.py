"""What reconciles objects beside the scheduler, the same code against a real cluster and a simulated one.

A controller here has no input or output: it is a pure function from what is observed to what is to be done (`workloads`, `volumes`), which `queueing` runs in
any world; that of companion groups is fed watch events itself, asked what it wants written, and told how the writes went. None decides where a pod runs.
"""
