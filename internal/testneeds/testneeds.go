// Package testneeds skips tests that need a program which this machine does not have, or fails them where the program
// must be there.
//
// The variable PGAGUI_TEST_REQUIRE lists what must be there, separated by commas: for instance "node,pgbouncer". CI
// sets it, so that a test is never skipped there unnoticed.
package testneeds

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

const requireVariable = "PGAGUI_TEST_REQUIRE"

// What a test may need besides Go and a PostgreSQL server.
const (
	Git         = "git"          // git, and the history of the repository
	Node        = "node"         // Node.js, with the packages that the Makefile installs
	Frameworks  = "frameworks"   // frameworks for agents on Node.js, which make test-js installs
	Field       = "field"        // the agents of test/field, which make test-field installs
	FieldMore   = "field-more"   // those of test/field/more
	BenchPython = "bench-python" // the stores of conversations of Python frameworks, which make bench-peers-python installs
	PgBouncer   = "pgbouncer"    // the pooler
	PgCron      = "pg_cron"      // the extension, in the server of the tests
	PLProxy     = "plproxy"      // the extension PL/Proxy, in the server of the tests
	PgDump      = "pg_dump"      // pg_dump and pg_restore, of the server's version or a newer one
	Psql        = "psql"         // the client program
	Python      = "python"       // Python 3.10 or newer
	Sqlc        = "sqlc"         // a C compiler, and the network or a filled module cache
	JQ          = "jq"           // the processor of JSON
	Promtool    = "promtool"     // Prometheus's checker of rules
	Chromium    = "chromium"     // the browser
	Axe         = "axe"          // axe-core, the checker of pages, from npm
	Buildah     = "buildah"      // a builder of container images, and the right to run their programs
	Wine        = "wine"         // wine 10 or newer, and the network: PostgreSQL for Windows is downloaded
	Recordings  = "recordings"   // recordings of servers that are not in this repository
)

// Skip ends the test because a need is not met. It fails the test if PGAGUI_TEST_REQUIRE lists the need.
func Skip(t testing.TB, need, reason string, arguments ...any) {
	t.Helper()
	reason = fmt.Sprintf(reason, arguments...)
	if slices.Contains(strings.Split(os.Getenv(requireVariable), ","), need) {
		t.Fatalf("%s lists %s: %s", requireVariable, need, reason)
	}
	t.Skip(reason)
}
