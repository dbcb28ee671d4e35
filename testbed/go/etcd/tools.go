//go:build tools

// Package tools names the etcd server that the tests run, so that `go mod tidy` keeps what it needs.
package tools

import _ "go.etcd.io/etcd/server/v3"
