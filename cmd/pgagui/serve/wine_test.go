package serve

import (
	"bufio"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgagui/pgagui/devpg/daemon"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testneeds"
	"github.com/pgagui/pgagui/internal/wait"
)

// findWine returns wine. That of Debian 12, version 8, lacks a function (NtFlushBuffersFileEx) without which PostgreSQL 17 does not start.
func findWine(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"wine64", "/usr/lib/wine/wine64", "wine"} {
		out, err := exec.Command(name, "--version").Output()
		if err != nil {
			continue
		}
		version := regexp.MustCompile(`^wine-(\d+)`).FindSubmatch(out)
		if version == nil {
			continue
		}
		if major, _ := strconv.Atoi(string(version[1])); major >= 10 {
			return name
		}
		testneeds.Skip(t, testneeds.Wine, "%s is too old: %s", name, out)
	}
	testneeds.Skip(t, testneeds.Wine, "wine is not installed")
	return ""
}

// The program for Windows downloads PostgreSQL and serves from it. When its process is killed, the server ends, and the data stays.
func TestDevOnWindows(t *testing.T) {
	t.Parallel()
	if runtime.GOARCH != "amd64" {
		testneeds.Skip(t, testneeds.Wine, "the program is for x64")
	}
	wine := findWine(t)
	account := must.Have(daemon.ServerAccount())(t)
	folder, err := account.MakeFolder("")
	if err == nil {
		err = folder.Mkdir("my data")
	}
	must.Do(t, err)
	t.Cleanup(func() {
		must.Report(t, folder.Release())
	})
	program := filepath.Join(folder.Path(), "pgagui.exe")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "..")
	build.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, out)
	}
	command := func(program string, arguments ...string) *exec.Cmd {
		command := exec.Command(program, arguments...)
		command.Dir = folder.Path()
		account.Detach(command)
		command.Env = append(os.Environ(), "HOME="+folder.Path(), "WINEPREFIX="+filepath.Join(folder.Path(), "wine"), "WINEDEBUG=-all",
			"WINEDLLOVERRIDES=mscoree,mshtml=", "DISPLAY=", "PGAGUI_POSTGRES_BIN=", `XDG_DATA_HOME=Z:`+filepath.Join(folder.Path(), "my data"))
		return command
	}
	t.Cleanup(func() { _ = command("wineserver", "-k", "-w").Run() }) // services of wine stay otherwise

	start := func() (dev *exec.Cmd, server, database string) {
		dev = command(wine, program, "dev", "--yes", "--listen", "127.0.0.1:0")
		dev.Stderr = t.Output()
		out, err := dev.StdoutPipe()
		if err == nil {
			err = dev.Start()
		}
		must.Do(t, err)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			switch fields := strings.Fields(lines.Text()); {
			case len(fields) == 2 && fields[0] == "server":
				server = fields[1]
			case len(fields) == 2 && fields[0] == "database":
				database = fields[1]
			case len(fields) > 0 && fields[0] == "Ctrl-C":
				return dev, server, database
			}
		}
		t.Fatalf("pgagui dev ended: %v", dev.Wait())
		return nil, "", ""
	}
	kill := func(dev *exec.Cmd, database string) {
		must.Do(t, dev.Process.Kill())
		_ = dev.Wait() // reports the kill
		wait.For(t, "the database server ends", func() bool {
			connection, err := pgx.Connect(t.Context(), database)
			if err == nil {
				connection.Close(t.Context())
			}
			_, statErr := os.Stat(filepath.Join(folder.Path(), "my data/pgagui/dev/server/data/postmaster.pid"))
			return err != nil && errors.Is(statErr, fs.ErrNotExist)
		})
	}
	dev, server, database := start()
	if answer, err := http.Get(server + "/threads"); err != nil {
		t.Error(err)
	} else if answer.Body.Close(); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: %s", answer.Status)
	}
	onDatabase := func(do func(*pgx.Conn) error) {
		t.Helper()
		connection, err := pgx.Connect(t.Context(), database)
		if err == nil {
			err = errors.Join(do(connection), connection.Close(t.Context()))
		}
		if err != nil {
			t.Error(err)
		}
	}
	onDatabase(func(connection *pgx.Conn) error {
		_, err := connection.Exec(t.Context(), `create table kept as select 1 as n`)
		return err
	})
	kill(dev, database)

	incomplete := command(wine, program, "dev", "--listen", "127.0.0.1:0")
	incomplete.Env = append(incomplete.Env, "WINEDLLOVERRIDES=mscoree,mshtml,vcruntime140=")
	if out, err := incomplete.CombinedOutput(); err == nil || !strings.Contains(string(out), "install the Microsoft Visual C++ Redistributable") {
		t.Errorf("without the runtime: %v, %s", err, out)
	}

	dev, _, database = start()
	onDatabase(func(connection *pgx.Conn) error {
		var n int
		return connection.QueryRow(t.Context(), `select n from kept`).Scan(&n)
	})
	kill(dev, database)
}
