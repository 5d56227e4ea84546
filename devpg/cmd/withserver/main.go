// Withserver runs a command with a PostgreSQL server for tests, whose address the command finds in
// PGAGUI_TEST_DATABASE_URL:
//
//	go run ./devpg/cmd/withserver -- go test ./...
//
// It ends with the exit code of the command. When the variable is set already, that server is used and none is started.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/pgagui/pgagui/devpg/testdb"
)

func main() {
	arguments := os.Args[1:]
	if len(arguments) > 0 && arguments[0] == "--" {
		arguments = arguments[1:]
	}
	if len(arguments) == 0 {
		fmt.Fprintln(os.Stderr, "usage: withserver -- COMMAND [ARGUMENT…]")
		os.Exit(2)
	}
	code, err := run(arguments)
	if err != nil {
		fmt.Fprintln(os.Stderr, "withserver:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(arguments []string) (code int, err error) {
	// From here on an interrupt ends the command and the wait for it, not this process.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)

	if os.Getenv(testdb.URLVariable) == "" {
		address, stop, err := testdb.StartServer(context.Background())
		if err != nil {
			return 0, err
		}
		defer func() {
			if stopErr := stop(); stopErr != nil && err == nil {
				fmt.Fprintln(os.Stderr, "withserver:", stopErr)
				code = max(code, 1)
			}
		}()
		if err := os.Setenv(testdb.URLVariable, address); err != nil {
			return 0, err
		}
		defer func() {
			if code != 0 && os.Getenv("PGAGUI_TEST_KEEP") != "" {
				fmt.Fprintf(os.Stderr, "withserver: keeping the server until it is interrupted: psql '%s'\n", address)
				<-signals
			}
		}()
	}

	command := exec.Command(arguments[0], arguments[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := command.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	for {
		select {
		case signal := <-signals:
			_ = command.Process.Signal(signal) // it may have ended already
		case err := <-ended:
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				return max(exit.ExitCode(), 1), nil // -1: ended by a signal
			}
			return 0, err
		}
	}
}
