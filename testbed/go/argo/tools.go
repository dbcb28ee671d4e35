//go:build tools

// Package tools names the program of Argo Workflows that the tests run, so that `go mod tidy` keeps what it needs.
package tools

import _ "github.com/argoproj/argo-workflows/v3/cmd/workflow-controller"
