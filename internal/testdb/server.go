package testdb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/ory/dockertest/v3"
	"github.com/ory/dockertest/v3/docker"

	"github.com/pgagui/pgagui/internal/cluster"
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
		return startContainer(ctx, tag)
	}
	options := cluster.Options{Settings: settings, Folder: folder()}
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

// containerLifetime bounds how long a container stays when the process that started it could not remove it.
const containerLifetime = time.Hour

func startContainer(ctx context.Context, tag string) (string, func() error, error) {
	const password = "test" // the port is open on the loopback interface alone
	pool, err := dockertest.NewPool("")
	if err != nil {
		return "", nil, fmt.Errorf("%s=docker:%s: %w", postgresVariable, tag, err)
	}
	command := []string{"postgres"}
	for name, value := range settings {
		command = append(command, "-c", name+"="+value)
	}
	const port = "5432/tcp"
	container, err := pool.RunWithOptions(&dockertest.RunOptions{
		Repository:   "postgres",
		Tag:          tag,
		Cmd:          command,
		Env:          []string{"POSTGRES_PASSWORD=" + password},
		PortBindings: map[docker.Port][]docker.PortBinding{port: {{HostIP: "127.0.0.1"}}},
	}, func(host *docker.HostConfig) { host.AutoRemove = true })
	if err != nil {
		return "", nil, fmt.Errorf("%s=docker:%s: start the container: %w", postgresVariable, tag, err)
	}
	stop := func() error { return pool.Purge(container) }
	if err := container.Expire(uint(containerLifetime.Seconds())); err != nil {
		return "", nil, errors.Join(err, stop())
	}

	address := (&url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword("postgres", password),
		Host:     net.JoinHostPort("127.0.0.1", container.GetPort(port)),
		Path:     "/postgres",
		RawQuery: "sslmode=disable",
	}).String()
	err = pool.Retry(func() error {
		connection, err := pgx.Connect(ctx, address)
		if err != nil {
			return err
		}
		return connection.Close(ctx)
	})
	if err != nil {
		return "", nil, fmt.Errorf("%s=docker:%s: the server does not answer: %w", postgresVariable, tag, errors.Join(err, stop()))
	}
	return address, stop, nil
}

// requireURL refuses the other form of address that PostgreSQL has, key=value pairs, where a database is not easily replaced.
func requireURL(address string) error {
	parsed, err := url.Parse(address)
	if err != nil || (parsed.Scheme != "postgres" && parsed.Scheme != "postgresql") {
		return fmt.Errorf("%s must be a URL such as postgres://user:password@localhost:5432/postgres", URLVariable)
	}
	return nil
}
