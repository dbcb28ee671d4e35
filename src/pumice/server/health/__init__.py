"""Whether the process works, and how its API server is: what probes and operators ask."""
