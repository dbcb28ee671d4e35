//go:build tools

// Package tools names the Spark operator, which the tests run, so that `go mod tidy` keeps what it needs.
package tools

import _ "github.com/kubeflow/spark-operator/v2/cmd/operator"
