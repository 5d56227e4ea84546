// Package cluster runs a private PostgreSQL server: for the demo, for development, and for tests that need a server of their own
// to configure, stop and crash.
//
// The server keeps its data in a temporary folder, or with Open in a folder that stays. It listens on 127.0.0.1 only, on a free
// port, with a password. It does not survive the process that started it, however that process ends: a watchdog notices the end,
// stops the server and removes a temporary folder.
package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgagui/pgagui/devpg/daemon"
)

const (
	superuser    = "postgres"
	startTimeout = time.Minute
	stopTimeout  = 30 * time.Second
)

// Options say which server to run. The zero value suits a demo.
type Options struct {
	// Settings go into postgresql.conf, for instance "fsync": "off". A standby has its primary's too.
	Settings map[string]string
	// Log gets what the server and initdb print; nil drops it.
	Log io.Writer
	// Folder is where the server's own folder is made; empty means the system's folder for temporary files.
	Folder string
	// Major is the PostgreSQL major version to run; 0 means the newest that this machine has. A standby has its primary's.
	Major int
}

// Cluster is a private server. Its methods must not be called at the same time.
type Cluster struct {
	programs programs
	account  *daemon.Account // runs the server; nil: the current user
	folder   *daemon.Folder  // all that the server writes; gone after Stop, unless it is kept
	password string
	port     int
	log      io.Writer
	watchdog *daemon.Watchdog
	server   *server // nil while the server is down
}

// Start makes a new cluster and starts its server, which is ready for connections when Start returns. ctx bounds the
// start alone.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	account, err := daemon.ServerAccount()
	if err != nil {
		return nil, err
	}
	programs, err := findPrograms(ctx, account, options.Major)
	if err != nil {
		return nil, err
	}
	folder, err := account.MakeFolder(options.Folder)
	if err != nil {
		return nil, err
	}
	cluster := &Cluster{programs: programs, account: account, folder: folder, password: rand.Text(), log: options.Log}
	return cluster.begin(ctx, options, func(ctx context.Context) error { return cluster.create(ctx, dataFolder, "--no-sync") })
}

// begin makes the data in the folder by makeData, and starts the server.
func (c *Cluster) begin(ctx context.Context, options Options, makeData func(context.Context) error) (*Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var err error
	if c.watchdog, err = daemon.StartWatchdog(c.folder, pidFile, c.stopCommand()...); err != nil {
		return nil, errors.Join(err, c.folder.Release())
	}
	err = makeData(ctx)
	if err == nil {
		err = c.configure(options.Settings)
	}
	if err == nil {
		err = c.startOnFreePort(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// URL is the address of a database of the cluster, for its superuser. The database "postgres" exists from the start.
func (c *Cluster) URL(database string) string {
	address := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(superuser, c.password),
		Host:     net.JoinHostPort(daemon.Host, strconv.Itoa(c.port)),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return address.String()
}

// Stop disconnects the clients and shuts the server down. It removes all its data, but for a cluster of Open.
func (c *Cluster) Stop() error {
	err := c.shutDown(fastShutdown)
	return errors.Join(err, c.folder.Release(), c.watchdog.Dismiss())
}

// Kill ends the server as a crash does: without a checkpoint, and unwritten data is lost. The data stays for
// Restart.
func (c *Cluster) Kill() error {
	// Rather than SIGKILL: the same loss, but the server's processes are gone when this returns.
	return c.shutDown(immediateShutdown)
}

// Restart starts the server after Kill, or restarts a running one. The URL stays the same.
func (c *Cluster) Restart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := c.shutDown(fastShutdown); err != nil {
		return err
	}
	return c.start(ctx)
}

// dataFolder is in the cluster's folder. pidFile, in it, has the process id of the server.
const (
	dataFolder = "data"
	pidFile    = dataFolder + "/postmaster.pid"
)

func (c *Cluster) dataPath() string { return filepath.Join(c.folder.Path(), dataFolder) }

// create runs initdb for a folder within the cluster's folder.
func (c *Cluster) create(ctx context.Context, data string, more ...string) error {
	const passwordFile = "password"
	if err := c.folder.Write(passwordFile, strings.NewReader(c.password)); err != nil {
		return fmt.Errorf("hand the password to initdb: %w", err)
	}
	locale := "C.UTF-8"
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		locale = "C" // macOS has C.UTF-8 only since recent versions, Windows lacks it.
	}
	output := &tail{}
	initdb := c.command(ctx, "initdb", output, append(more,
		"--pgdata="+filepath.Join(c.folder.Path(), data), "--username="+superuser, "--pwfile="+filepath.Join(c.folder.Path(), passwordFile),
		"--auth=scram-sha-256", "--encoding=UTF8", "--locale="+locale, "--no-instructions")...)
	if err := initdb.Run(); err != nil {
		return fmt.Errorf("create a PostgreSQL cluster with %s: %w: %s", initdb.Path, err, output.reason())
	}
	return c.folder.Remove(passwordFile)
}

// configure adds settings to postgresql.conf, where a later line wins over an earlier one.
func (c *Cluster) configure(settings map[string]string) error {
	configuration, err := c.folder.Open(filepath.Join(dataFolder, "postgresql.conf"), os.O_APPEND|os.O_WRONLY)
	if err != nil {
		return err
	}
	quote := strings.NewReplacer(`'`, `''`, `\`, `\\`)
	for name, value := range settings {
		if _, err := fmt.Fprintf(configuration, "%s = '%s'\n", name, quote.Replace(value)); err != nil {
			return errors.Join(err, configuration.Close())
		}
	}
	return configuration.Close()
}

// startOnFreePort starts the server on a port that was free a moment ago, and on another one when it was taken since. It waits
// for a server that the watchdog of another process is about to end.
func (c *Cluster) startOnFreePort(ctx context.Context) error {
	const attempts = 50
	var err error
	for range attempts {
		if c.port, err = daemon.FreePort(); err != nil {
			return err
		}
		if err = c.start(ctx); errors.Is(err, errStillRunning) {
			time.Sleep(200 * time.Millisecond)
		} else if !errors.Is(err, errPortTaken) {
			return err
		}
	}
	return err
}

// server is one life of the server process.
type server struct {
	command *exec.Cmd
	ended   chan struct{}
}

const invalidPassword = "28P01"

var (
	errPortTaken    = errors.New("the port is taken")
	errStillRunning = errors.New("another server uses the data")
)

// start starts the server and waits until it takes connections.
func (c *Cluster) start(ctx context.Context) error {
	output := &tail{}
	// The server must not end with ctx, which bounds the start alone.
	command := c.serverCommand(context.WithoutCancel(ctx), output,
		"-p", strconv.Itoa(c.port), "-c", "listen_addresses="+daemon.Host, "-c", "unix_socket_directories=")
	if err := command.Start(); err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	started := &server{command: command, ended: make(chan struct{})}
	go func() {
		_ = command.Wait() // how it ended shows in its output
		close(started.ended)
	}()
	c.server = started

	for {
		connection, err := pgx.Connect(ctx, c.URL("postgres"))
		if err == nil {
			return connection.Close(ctx)
		}
		var refusal *pgconn.PgError
		if errors.As(err, &refusal) && refusal.Code == invalidPassword {
			return err // a kept cluster has another password
		}
		select {
		case <-started.ended:
			c.server = nil
			if strings.Contains(output.String(), "could not bind") {
				return fmt.Errorf("start PostgreSQL on port %d: %w", c.port, errPortTaken)
			}
			if strings.Contains(output.String(), `lock file "postmaster.pid" already exists`) {
				return fmt.Errorf("start PostgreSQL: %w: %s", errStillRunning, output.reason())
			}
			return fmt.Errorf("PostgreSQL ended while it started: %s", output.reason())
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL did not take connections in time: %w", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// shutdown is a way to end a server, as pg_ctl calls it.
type shutdown string

const (
	fastShutdown      shutdown = "fast"      // in order, after disconnecting the clients
	immediateShutdown shutdown = "immediate" // as a crash
)

// shutDown ends the server in the given way. Without a server it does nothing.
func (c *Cluster) shutDown(how shutdown) error {
	if c.server == nil {
		return nil
	}
	for _, how := range []shutdown{how, immediateShutdown} {
		if err := c.beginShutdown(how); err != nil {
			return fmt.Errorf("stop PostgreSQL (port %d): %w", c.port, err)
		}
		select {
		case <-c.server.ended:
			c.server = nil
			return nil
		case <-time.After(stopTimeout):
		}
	}
	return fmt.Errorf("PostgreSQL (port %d) did not stop within %s", c.port, 2*stopTimeout)
}

// command prepares a PostgreSQL program to run as the cluster's account, with its output in the log and in output.
func (c *Cluster) command(ctx context.Context, program string, output *tail, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, filepath.Join(c.programs.folder, program), arguments...)
	command.Dir = c.folder.Path() // the account may not be allowed into the current folder
	command.Env = []string{"LC_MESSAGES=C"}
	for _, variable := range os.Environ() {
		// The caller's libpq and locale variables are not meant for this server.
		if !strings.HasPrefix(variable, "PG") && !strings.HasPrefix(variable, "LC_") && !strings.HasPrefix(variable, "LANG") {
			command.Env = append(command.Env, variable)
		}
	}
	var sink io.Writer = output
	if c.log != nil {
		sink = io.MultiWriter(c.log, output)
	}
	command.Stdout, command.Stderr = sink, sink
	c.account.Detach(command)
	return command
}
