package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
)

// holdVariable makes this test binary start a server and hold it until it is killed.
const holdVariable = "PGAGUI_TEST_HOLD_CLUSTER"

// keepVariable makes it open that folder.
const keepVariable = "PGAGUI_TEST_KEEP_CLUSTER"

func TestMain(m *testing.M) {
	if os.Getenv(holdVariable) == "" {
		goleak.VerifyTestMain(m) // exits
	}
	var held *Cluster
	var err error
	if kept := os.Getenv(keepVariable); kept != "" {
		held, err = Open(context.Background(), OpenOptions{Folder: kept, Password: "secret"})
	} else {
		held, err = Start(context.Background(), fast)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(held.folder.Path())
	fmt.Println(held.URL("postgres"))
	select {}
}

var fast = Options{Settings: map[string]string{"fsync": "off"}}

func start(t *testing.T, options Options) *Cluster {
	t.Helper()
	options.Log = t.Output()
	started, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := started.Stop(); err != nil {
			t.Error(err)
		}
	})
	return started
}

func connect(t *testing.T, address string) *pgx.Conn {
	t.Helper()
	connection, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close(context.Background()) })
	return connection
}

func TestServerHasTheSettingsAskedFor(t *testing.T) {
	t.Parallel()
	cluster := start(t, Options{Settings: map[string]string{"fsync": "off", "application_name": `it's a \ test`}})

	var fsync, name, encoding, version string
	err := connect(t, cluster.URL("postgres")).QueryRow(t.Context(),
		`select current_setting('fsync'), current_setting('application_name'), current_setting('server_encoding'), version()`).
		Scan(&fsync, &name, &encoding, &version)
	if err != nil {
		t.Fatal(err)
	}
	if fsync != "off" || name != `it's a \ test` || encoding != "UTF8" {
		t.Errorf("fsync %q, application_name %q, encoding %q", fsync, name, encoding)
	}
	t.Log(version)
}

func TestServerWantsThePassword(t *testing.T) {
	t.Parallel()
	cluster := start(t, fast)
	cluster.password = "guess"
	if _, err := pgx.Connect(t.Context(), cluster.URL("postgres")); err == nil {
		t.Error("the server let a wrong password in")
	}
}

func TestCommittedDataSurvivesKill(t *testing.T) {
	t.Parallel()
	cluster := start(t, fast)
	before := connect(t, cluster.URL("postgres"))
	if _, err := before.Exec(t.Context(), `create table kept as select 42 as answer`); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := before.Ping(t.Context()); err == nil {
		t.Error("the server still answers after Kill")
	}
	if err := cluster.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	var answer int
	if err := connect(t, cluster.URL("postgres")).QueryRow(t.Context(), `select answer from kept`).Scan(&answer); err != nil {
		t.Fatal(err)
	}
}

func TestStopLeavesNothing(t *testing.T) {
	t.Parallel()
	cluster := start(t, fast)
	if err := cluster.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(cluster.folder.Path()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	if _, err := pgx.Connect(t.Context(), cluster.URL("postgres")); err == nil {
		t.Error("the server still takes connections")
	}
}

// hold starts a process that holds a server, and returns the folder and the address of the server.
func hold(t *testing.T, environment ...string) (holder *exec.Cmd, folder, address string) {
	t.Helper()
	holder = exec.Command(os.Args[0])
	holder.Env = append(append(os.Environ(), holdVariable+"=1"), environment...)
	holder.Stderr = t.Output()
	output, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	for _, line := range []*string{&folder, &address} {
		if !lines.Scan() {
			t.Fatal("the process that holds the server ended early")
		}
		*line = lines.Text()
	}
	return holder, folder, address
}

func kill(t *testing.T, holder *exec.Cmd) {
	t.Helper()
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait() // reports the kill
}

func TestServerDiesWithItsProcess(t *testing.T) {
	t.Parallel()
	holder, folder, address := hold(t)
	connect(t, address)
	kill(t, holder)
	eventually(t, "the folder is removed", func() bool {
		_, err := os.Stat(folder)
		return errors.Is(err, fs.ErrNotExist)
	})
	if _, err := pgx.Connect(t.Context(), address); err == nil {
		t.Error("the server still takes connections")
	}
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func TestErrorSaysWhyTheServerDoesNotStart(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Options{Settings: map[string]string{"fsinc": "off"}})
	if err == nil || !strings.Contains(err.Error(), "fsinc") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want one line that names the wrong setting", err)
	}
}

func TestErrorNamesTheVariableThatPointsNowhere(t *testing.T) {
	t.Setenv(binariesVariable, t.TempDir())
	_, err := Start(t.Context(), fast)
	if err == nil || !strings.Contains(err.Error(), binariesVariable) {
		t.Errorf("got %v, want an error that names %s", err, binariesVariable)
	}
}
