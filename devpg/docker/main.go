// Docker runs a PostgreSQL server for tests in a container: the image postgres:TAG, with the arguments that follow.
//
//	go run github.com/pgagui/pgagui/devpg/docker 17 -c fsync=off
//
// It prints the server's address when the server takes connections, and removes the container when its standard input ends. It is
// in a module of its own, so that no other module needs a client of Docker.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/ory/dockertest/v3"
	"github.com/ory/dockertest/v3/docker"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: docker TAG [ARGUMENT…]")
		os.Exit(2)
	}
	// An interrupt from the keyboard is for the tests too, which still need the server to end in order.
	signal.Ignore(os.Interrupt, syscall.SIGTERM)
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(tag string, arguments []string) error {
	pool, err := dockertest.NewPool("")
	if err == nil {
		err = pool.Client.Ping()
	}
	if err != nil {
		return fmt.Errorf("the Docker daemon does not answer (is it running, and is DOCKER_HOST right?): %w", err)
	}
	address, container, err := start(pool, tag, arguments)
	if err != nil {
		return err
	}
	_, printErr := fmt.Println(address)
	_, readErr := io.Copy(io.Discard, os.Stdin)
	return errors.Join(printErr, readErr, pool.Purge(container))
}

// lifetime bounds how long a container stays when this process could not remove it.
const lifetime = time.Hour

// start starts a container and waits until its server takes connections at the address that is returned.
func start(pool *dockertest.Pool, tag string, arguments []string) (string, *dockertest.Resource, error) {
	const (
		password = "test" // the port is open on the loopback interface alone
		port     = "5432/tcp"
	)
	container, err := pool.RunWithOptions(&dockertest.RunOptions{
		Repository:   "postgres",
		Tag:          tag,
		Cmd:          append([]string{"postgres"}, arguments...),
		Env:          []string{"POSTGRES_PASSWORD=" + password},
		PortBindings: map[docker.Port][]docker.PortBinding{port: {{HostIP: "127.0.0.1"}}},
	}, func(host *docker.HostConfig) { host.AutoRemove = true })
	if err != nil {
		return "", nil, fmt.Errorf("start a container of postgres:%s: %w", tag, err)
	}
	if err := container.Expire(uint(lifetime.Seconds())); err != nil {
		return "", nil, errors.Join(err, pool.Purge(container))
	}

	address := (&url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword("postgres", password),
		Host:     net.JoinHostPort("127.0.0.1", container.GetPort(port)),
		Path:     "/postgres",
		RawQuery: "sslmode=disable",
	}).String()
	err = pool.Retry(func() error {
		connection, err := pgx.Connect(context.Background(), address)
		if err != nil {
			return err
		}
		return connection.Close(context.Background())
	})
	if err != nil {
		return "", nil, fmt.Errorf("the server in the container of postgres:%s does not answer: %w", tag, errors.Join(err, pool.Purge(container)))
	}
	return address, container, nil
}
