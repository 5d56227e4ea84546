package test

import (
	"flag"
	"os"
	"os/exec"
	"testing"

	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testfile"
	"github.com/pgagui/pgagui/internal/testneeds"
)

var update = flag.Bool("update", false, "write what the tests get as what they want")

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
	const golden = "../examples/tour.out"
	want := testfile.Golden(t, golden, string(got), *update)
	if string(got) != string(want) {
		t.Errorf("psql printed\n%s\nwant\n%s\n(-update writes it)", got, want)
	}
}
