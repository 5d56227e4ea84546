package clients

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testfile"
	"github.com/pgagui/pgagui/internal/testneeds"
)

// A client that openapi-typescript makes of openapi.yaml compiles, and its calls work.
func TestClientFromOpenAPI(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it generates and compiles a client")
	}
	if _, err := os.Stat("node_modules/.bin/tsc"); err != nil {
		testneeds.Skip(t, testneeds.Node, "the clients are not installed: make clients")
	}
	folder, err := os.MkdirTemp(".", "rest-") // below node_modules, for its imports
	must.Do(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	for _, name := range []string{"rest.ts", "tsconfig.json"} {
		text := testfile.Read(t, filepath.Join("rest", name))
		testfile.Write(t, filepath.Join(folder, name), text)
	}
	run := func(name string, arguments ...string) string {
		t.Helper()
		output, err := exec.Command(name, arguments...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(arguments, " "), err, output)
		}
		return strings.TrimSpace(string(output))
	}
	run("node_modules/.bin/openapi-typescript", "../../server/openapi.yaml", "-o", filepath.Join(folder, "schema.d.ts"))
	run("node_modules/.bin/tsc", "-p", folder)
	p := serve(t, testdb.Pool(t), nil)
	const want = `{"lastSeq":5,"title":"A title","messages":1,"types":["RUN_STARTED","RUN_FINISHED"],"version":1,"stale":[412,1],` +
		`"fork":["run-2","finished"],"problem":[404,"UI001"],"gone":404}`
	if got := run("node", filepath.Join(folder, "rest.js"), p.URL); got != want {
		t.Errorf("the calls found %s, want %s", got, want)
	}
}
