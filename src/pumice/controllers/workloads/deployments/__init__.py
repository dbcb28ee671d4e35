"""Deployments: one ReplicaSet for each template they had, and pods that move from the old ones to the new one."""
