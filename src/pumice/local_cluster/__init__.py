"""A batch cluster in one process: API server, nodes with their kubelets, controllers and the scheduler, for kubectl and any other client.

This package puts the parts together and knows none of their rules: objects are the API server's, decisions the scheduler's.
"""
