//go:build tools

// Package tools names the Helm command that the tests run, so that `go mod tidy` keeps what it needs.
package tools

import _ "helm.sh/helm/v3/cmd/helm"
