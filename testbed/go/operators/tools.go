//go:build tools

// Package tools names the operators of other projects that the tests run, so that `go mod tidy` keeps what they need.
package tools

import (
	_ "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager"
	_ "github.com/ray-project/kuberay/ray-operator"
	_ "sigs.k8s.io/jobset"
	_ "sigs.k8s.io/lws/cmd"
)
