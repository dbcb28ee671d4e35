"""A real etcd and kube-apiserver on loopback, for the tests and the benchmarks.

Here lives what finds or builds the programs (`provide`), starts and stops them (`server`, by hand `__main__`), and offers them to pytest (`fixtures`, `pytest_plugin`). Nothing of
pumice is imported, and nothing here is shipped: the programs stand in for a cluster, they know nothing of who talks to them.
"""
