// Command pgagui works on AG-UI event streams kept in PostgreSQL: it installs the schema, imports and exports logs, shows the tree
// of runs, restores conversations, and runs the jobs that keep a store in shape.
//
// Each command has a file of its own; root.go has what they share, failure.go the exit codes.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

func main() {
	if os.Getenv("GOGC") == "" {
		// What is live is small, what passes through is not: a collection each time the heap has doubled would be most of the work.
		debug.SetGCPercent(400)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks for an orderly end, the second one gets the usual treatment.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
