package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgagui/pgagui/devpg/cluster"
)

// daemon is as much of a Docker daemon as a container needs. The server in the container is a private one of this machine.
type daemon struct {
	t       *testing.T
	server  *url.URL
	created struct {
		Image      string
		Cmd, Env   []string
		HostConfig struct {
			AutoRemove   bool
			PortBindings map[string][]struct{ HostIP string }
		}
	}
	removed atomic.Bool
}

func (d *daemon) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var answer any
	switch path := r.URL.Path; {
	case path == "/_ping":
	case path == "/version":
		answer = map[string]any{"ApiVersion": "1.43"}
	case path == "/images/postgres:17/json":
		answer = map[string]any{"Id": "image"}
	case path == "/containers/create":
		if err := json.NewDecoder(r.Body).Decode(&d.created); err != nil {
			d.t.Error(err)
		}
		answer = map[string]any{"Id": "container"}
		w.WriteHeader(http.StatusCreated)
	case path == "/containers/container/start":
		w.WriteHeader(http.StatusNoContent)
	case path == "/containers/container/json":
		ports := map[string]any{"5432/tcp": []map[string]string{{"HostIp": d.server.Hostname(), "HostPort": d.server.Port()}}}
		answer = map[string]any{"Id": "container", "NetworkSettings": map[string]any{"Ports": ports}}
	case path == "/containers/container/stop": // the daemon answers when the time is over
		<-r.Context().Done()
		return
	case r.Method == http.MethodDelete && path == "/containers/container":
		d.removed.Store(true)
		w.WriteHeader(http.StatusNoContent)
	default:
		d.t.Errorf("the client called %s %s", r.Method, path)
		w.WriteHeader(http.StatusNotFound)
	}
	if answer != nil {
		_ = json.NewEncoder(w).Encode(answer)
	}
}

// withServer runs a command as make test does, on a server in a container.
func withServer(t *testing.T, dockerHost string, arguments ...string) (out, messages string, err error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", append([]string{"run", "github.com/pgagui/pgagui/devpg/cmd/withserver", "--"}, arguments...)...)
	command.Env = append(os.Environ(), "PGAGUI_TEST_DATABASE_URL=", "PGAGUI_TEST_POSTGRES=docker:17",
		"DOCKER_HOST="+dockerHost, "DOCKER_MACHINE_NAME=", "DOCKER_CERT_PATH=")
	var stdout, stderr strings.Builder
	command.Stdout, command.Stderr = &stdout, &stderr
	err = command.Run()
	return stdout.String(), stderr.String(), err
}

func TestServerInAContainer(t *testing.T) {
	t.Parallel()
	server, err := cluster.Start(t.Context(), cluster.Options{Settings: map[string]string{"fsync": "off"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	address, err := url.Parse(server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	connection, err := pgx.Connect(t.Context(), address.String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := connection.Exec(t.Context(), `alter role postgres password 'test'`); err != nil {
		t.Fatal(err)
	}
	if err := connection.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	address.User = url.UserPassword("postgres", "test")

	d := &daemon{t: t, server: address}
	listener := httptest.NewServer(d)
	t.Cleanup(listener.Close)

	out, messages, err := withServer(t, strings.Replace(listener.URL, "http:", "tcp:", 1), "sh", "-c", "echo $PGAGUI_TEST_DATABASE_URL")
	if err != nil {
		t.Fatalf("%v\n%s", err, messages)
	}
	if strings.TrimSpace(out) != address.String() {
		t.Errorf("the command got %q, not the address %s of the server", out, address)
	}
	if !d.removed.Load() {
		t.Error("the container was not removed")
	}
	c := d.created
	if c.Image != "postgres:17" || !slices.Contains(c.Env, "POSTGRES_PASSWORD=test") {
		t.Errorf("the container is of %s with %v", c.Image, c.Env)
	}
	if len(c.Cmd) == 0 || c.Cmd[0] != "postgres" || !slices.Contains(c.Cmd, "fsync=off") {
		t.Errorf("the container runs %q", c.Cmd)
	}
	if ports := c.HostConfig.PortBindings["5432/tcp"]; len(ports) != 1 || ports[0].HostIP != "127.0.0.1" || !c.HostConfig.AutoRemove {
		t.Errorf("the container is open to more than this machine, or stays: %+v", c.HostConfig)
	}
}

func TestWithoutADaemonOneLineSaysSo(t *testing.T) {
	t.Parallel()
	_, messages, err := withServer(t, "unix://"+filepath.Join(t.TempDir(), "nobody"), "true")
	messages, _ = strings.CutSuffix(messages, "exit status 1\n") // of go run
	if err == nil || strings.Count(messages, "\n") != 1 || !strings.HasPrefix(messages, "withserver: PGAGUI_TEST_POSTGRES=docker:17: the Docker daemon does not answer") {
		t.Errorf("error %v: %q", err, messages)
	}
}
