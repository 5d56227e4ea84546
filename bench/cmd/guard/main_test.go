package main

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/pgagui/pgagui/internal/must"
)

// A checkout is compared with itself, on connections that last and on those of a command.
func TestGuard(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the command twice")
	}
	var output bytes.Buffer
	must.Do(t, run(t.Context(), []string{"--rounds", "1", "../../..", "../../..", "append: 100", "job"}, &output))
	for _, row := range []string{"append: 100 events +server", "job: cold, for one short run +server", "job: cold, for one short run +process"} {
		if !regexp.MustCompile(`(?m)^` + row + ` +[1-9][0-9.]* µs +[1-9][0-9.]* µs +[0-9.]+ `).Match(output.Bytes()) {
			t.Errorf("no figures of %q:\n%s", row, &output)
		}
	}
}
