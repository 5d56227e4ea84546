package test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testfile"
	"github.com/pgagui/pgagui/internal/testneeds"
)

// A client that only has psql can do all of it: the tour in examples/ prints what tour.out says.
func TestTourInPsql(t *testing.T) {
	t.Parallel()
	psql := testdb.Program(t, testneeds.Psql, "psql")
	command := exec.Command(psql, "-X", "--quiet", "-d", testdb.New(t), "-f", "tour.sql")
	command.Dir = "../examples"
	command.Env = append(os.Environ(), "PGTZ=UTC")
	got, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	testfile.Golden(t, "../examples/tour.out", string(got))
}
