package testdb

import (
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pgagui/pgagui/devpg/cluster"
	"github.com/pgagui/pgagui/devpg/testdb"
	"github.com/pgagui/pgagui/internal/testneeds"
)

// Server starts a server of the test's own with settings. It is stopped when the test ends.
func Server(t testing.TB, settings map[string]string) *cluster.Cluster {
	t.Helper()
	all := map[string]string{"fsync": "off"}
	maps.Copy(all, settings)
	return started(t)(cluster.Start(t.Context(), cluster.Options{Settings: all, Folder: testdb.Folder()}))
}

// started stops a server when the test ends.
func started(t testing.TB) func(*cluster.Cluster, error) *cluster.Cluster {
	return func(server *cluster.Cluster, err error) *cluster.Cluster {
		t.Helper()
		if err != nil {
			t.Fatal("testdb:", err)
		}
		t.Cleanup(func() {
			if err := server.Stop(); err != nil {
				t.Error("testdb:", err)
			}
		})
		return server
	}
}

// Program returns the path of a client program of PostgreSQL, the newest that is installed. It skips the test if there is none.
func Program(t testing.TB, need, name string) string {
	t.Helper()
	if installed, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name); len(installed) > 0 {
		return slices.Max(installed)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		testneeds.Skip(t, need, "%s is not installed", name)
	}
	return path
}
