//go:build tools

// Package tools names the programs of Volcano that the tests run, so that `go mod tidy` keeps what they need.
package tools

import (
	_ "volcano.sh/volcano/cmd/controller-manager"
	_ "volcano.sh/volcano/cmd/scheduler"
	_ "volcano.sh/volcano/cmd/webhook-manager"
)
