// Package pooler puts a private PgBouncer in front of a test's database, in transaction mode: every transaction of a client
// may run on another connection of the server, and no state of a session lasts.
package pooler

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgagui/pgagui/devpg/daemon"
	"github.com/pgagui/pgagui/internal/testneeds"
)

const (
	// serverConnections are fewer than the clients of a test, so that clients do take turns on them.
	serverConnections = 4
	clientConnections = 1000
	// loginRetry is the number of seconds after which the pooler retries a server that was away. The default is 15.
	loginRetry = 0.1

	startTimeout = 30 * time.Second
)

// Start starts a pooler for the database and returns the address of the same database through it. It ends with the test,
// or with the process, however that ends. Without PgBouncer on this machine the test is skipped.
//
// The address says nothing of the pooler: PgBouncer before 1.21 does not support prepared statements, which pgx uses by itself.
func Start(t testing.TB, databaseURL string) (poolerURL string) {
	t.Helper()
	program, err := findProgram()
	if err != nil {
		testneeds.Skip(t, testneeds.PgBouncer, "PgBouncer is not installed (package pgbouncer): not tested through a pooler")
	}
	database, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		t.Fatal("pooler:", err)
	}
	account, err := daemon.ServerAccount()
	if err != nil {
		t.Fatal("pooler:", err)
	}
	folder, err := account.MakeFolder("")
	if err != nil {
		t.Fatal("pooler:", err)
	}
	watchdog, err := daemon.StartWatchdog(folder, pidFile)
	if err != nil {
		t.Fatal("pooler:", errors.Join(err, folder.Release()))
	}
	t.Cleanup(func() {
		if err := errors.Join(folder.Release(), watchdog.Dismiss()); err != nil {
			t.Error("pooler:", err)
		}
	})

	// PgBouncer ends at once when its port was taken by another process in the meantime.
	const attempts = 5
	for range attempts {
		var port int
		if port, err = daemon.FreePort(); err != nil {
			break
		}
		for name, content := range map[string]string{
			configurationFile: configuration(database, port),
			usersFile:         quote(database.User) + " " + quote(database.Password) + "\n",
		} {
			if err := folder.Write(name, strings.NewReader(content)); err != nil {
				t.Fatal("pooler:", err)
			}
		}
		if poolerURL, err = addressOf(databaseURL, port); err != nil {
			break
		}
		begin := func() *exec.Cmd {
			command := exec.Command(program, filepath.Join(folder.Path(), configurationFile))
			command.Dir = folder.Path()
			account.Detach(command)
			return command
		}
		pooler := &process{t: t, begin: begin}
		if err = waitUntilReady(t.Context(), poolerURL, pooler.run()); !errors.Is(err, errEnded) {
			go pooler.restart()
			break
		}
	}
	if err != nil {
		t.Fatal("pooler:", err)
	}
	return poolerURL
}

// process is the pooler. PgBouncer 1.18 ends with "server in bad state" if its server goes away while it
// cancels a query. Then it is restarted, as systemd would do.
type process struct {
	t     testing.TB
	begin func() *exec.Cmd

	mutex   sync.Mutex
	stopped bool
	command *exec.Cmd
	ended   chan struct{}
}

// run starts the pooler, and returns what is closed when it has ended. The end of the test stops it.
func (p *process) run() (ended <-chan struct{}) {
	p.t.Helper()
	if err := p.start(); err != nil {
		p.t.Fatal("pooler:", err)
	}
	p.t.Cleanup(func() {
		p.mutex.Lock()
		p.stopped = true
		_ = p.command.Process.Kill() // it has nothing to lose, and may have ended already
		ended := p.ended
		p.mutex.Unlock()
		<-ended
	})
	return p.ended
}

func (p *process) start() error {
	command, ended := p.begin(), make(chan struct{})
	command.Stdout, command.Stderr = p.t.Output(), p.t.Output()
	if err := command.Start(); err != nil {
		return err
	}
	p.command, p.ended = command, ended
	go func() {
		_ = command.Wait() // how it ended shows in its output
		close(ended)
	}()
	return nil
}

// restart restarts the pooler whenever it has ended, until the test stops it.
func (p *process) restart() {
	for {
		p.mutex.Lock()
		ended := p.ended
		p.mutex.Unlock()
		<-ended
		p.mutex.Lock()
		isOver := p.stopped
		if !isOver {
			if err := p.start(); err != nil {
				fmt.Fprintln(p.t.Output(), "pooler: it could not be restarted:", err)
				isOver = true
			}
		}
		p.mutex.Unlock()
		if isOver {
			return
		}
	}
}

func findProgram() (string, error) {
	const name = "pgbouncer"
	program, err := exec.LookPath(name)
	if err != nil {
		return exec.LookPath(filepath.Join("/usr/sbin", name)) // not on every user's PATH
	}
	return program, nil
}

// The pooler's files, in its folder.
const (
	configurationFile = "pgbouncer.ini"
	usersFile         = "users.txt"
	pidFile           = "pgbouncer.pid"
)

func configuration(database *pgx.ConnConfig, port int) string {
	return fmt.Sprintf(`[databases]
* = host=%s port=%d

[pgbouncer]
listen_addr = %s
listen_port = %d
unix_socket_dir =
auth_type = scram-sha-256
auth_file = %s
pidfile = %s
pool_mode = transaction
default_pool_size = %d
max_client_conn = %d
log_connections = 0
server_login_retry = %g
log_connections = 0
log_disconnections = 0
log_pooler_errors = 0
`, database.Host, database.Port, daemon.Host, port, usersFile, pidFile, serverConnections, clientConnections, loginRetry)
}

func quote(text string) string {
	return `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
}

// addressOf is the database's address with the pooler's in place of the server's.
func addressOf(databaseURL string, port int) (string, error) {
	address, err := url.Parse(databaseURL)
	if err != nil {
		return "", err
	}
	address.Host = daemon.Host + ":" + strconv.Itoa(port)
	parameters := address.Query()
	parameters.Set("sslmode", "disable")
	address.RawQuery = parameters.Encode()
	return address.String(), nil
}

var errEnded = errors.New("PgBouncer ended while it started: see its output")

// waitUntilReady waits until the database answers through the pooler.
func waitUntilReady(ctx context.Context, address string, ended <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		connection, err := pgx.Connect(ctx, address)
		if err == nil {
			return connection.Close(ctx)
		}
		select {
		case <-ended:
			return errEnded
		case <-ctx.Done():
			return fmt.Errorf("PgBouncer took no connection in time: %w", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
