"""Kubernetes' controllers of workloads: Job, ReplicaSet, Deployment, StatefulSet and DaemonSet, each a pure function from what is observed to what is to be done.

Names, labels, annotations, conditions and events are those that kubectl reads. Nothing here decides where a pod runs.
"""
