"""What kubelets do: pure functions from a pod to what is done next for it and to the status that is reported, and the kubelets of a store that carry it out.

Those of a real API server are `pumice.fleet`; none of them has rules of its own.
"""
