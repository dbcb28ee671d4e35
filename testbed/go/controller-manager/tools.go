//go:build tools

// Package tools names the program that the tests run, so that `go mod tidy` keeps what it needs.
//
// It stands apart from Kubernetes' other programs so that what it alone needs does not make those be built anew.
package tools

import _ "k8s.io/kubernetes/cmd/kube-controller-manager"
