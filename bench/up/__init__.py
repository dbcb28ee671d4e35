"""Measurements of the API server of `pumice up`, beside kube-apiserver over etcd in the same run."""
