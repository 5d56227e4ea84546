// Command pgagui works on AG-UI event streams stored in PostgreSQL: it installs the schema, imports
// and exports logs, shows the tree of runs, restores conversations, and runs the maintenance jobs.
//
// Each command has its own file. root.go has the code that they share, failure.go the exit codes.
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
		// An import allocates much and retains little. With the default of 100 the garbage
		// collector would take most of the time.
		debug.SetGCPercent(400)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal starts an orderly shutdown; the second one ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
