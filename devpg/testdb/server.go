package testdb

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/pgagui/pgagui/devpg/cluster"
)

// URLVariable holds the address of the server that all test processes share.
const URLVariable = "PGAGUI_TEST_DATABASE_URL"

// postgresVariable says what kind of server to start.
const postgresVariable = "PGAGUI_TEST_POSTGRES"

// settings make a server that is quick, that takes the connections of many tests, and that does nothing on its own.
var settings = map[string]string{
	"autovacuum":       "off",
	"fsync":            "off",
	"full_page_writes": "off",
	"max_connections":  "400",
	"max_wal_size":     "1GB",
	"shared_buffers":   "256MB",
}

// StartServer starts a server for tests, as PGAGUI_TEST_POSTGRES says, and returns the address of its database postgres.
func StartServer(ctx context.Context) (address string, stop func() error, err error) {
	wanted := os.Getenv(postgresVariable)
	if tag, ok := strings.CutPrefix(wanted, "docker:"); ok {
		return startContainer(tag)
	}
	options := cluster.Options{Settings: settings, Folder: Folder()}
	if wanted != "" {
		if options.Major, err = strconv.Atoi(wanted); err != nil {
			return "", nil, fmt.Errorf("%s=%s: want a major version such as 17, or docker:TAG", postgresVariable, wanted)
		}
	}
	started, err := cluster.Start(ctx, options)
	if err != nil {
		return "", nil, err
	}
	return started.URL("postgres"), started.Stop, nil
}

// dockerCommand is in a module of its own, so that only who wants a container needs a client of Docker.
const dockerCommand = "github.com/pgagui/pgagui/devpg/docker"

// startContainer lets dockerCommand run a server in a container. The command removes the container when its standard input ends,
// so also when this process ends without calling stop.
func startContainer(tag string) (string, func() error, error) {
	arguments := []string{"run", dockerCommand, tag}
	for name, value := range settings {
		arguments = append(arguments, "-c", name+"="+value)
	}
	command := exec.Command("go", arguments...)
	var messages strings.Builder
	command.Stderr = &messages
	input, err := command.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	stop := func() error {
		closed := input.Close()
		if err := command.Wait(); err != nil {
			said, _ := strings.CutSuffix(strings.TrimSpace(messages.String()), err.Error()) // go run adds the status
			return fmt.Errorf("%s=docker:%s: %s", postgresVariable, tag, cmp.Or(strings.TrimSpace(said), err.Error()))
		}
		return closed
	}
	if err := command.Start(); err != nil {
		return "", nil, fmt.Errorf("%s=docker:%s: %w", postgresVariable, tag, err)
	}
	address, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		return "", nil, cmp.Or(stop(), err)
	}
	return strings.TrimSpace(address), stop, nil
}

// requireURL refuses the other form of address that PostgreSQL has, key=value pairs, where a database is not easily replaced.
func requireURL(address string) error {
	parsed, err := url.Parse(address)
	if err != nil || (parsed.Scheme != "postgres" && parsed.Scheme != "postgresql") {
		return fmt.Errorf("%s must be a URL such as postgres://user:password@localhost:5432/postgres", URLVariable)
	}
	return nil
}
