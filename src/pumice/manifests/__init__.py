"""What an API server must be told before the scheduler can run: custom resources, permissions and the scheduler's own objects.

Everything is made from tables in code: `pumice install --print` prints it, and `deploy/generate.py` writes the files under `deploy/` that
people apply, read and package. Nothing here talks to a cluster.
"""
