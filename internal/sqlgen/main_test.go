package main

import (
	"testing"

	"github.com/pgagui/pgagui/internal/must"
)

func TestReleasedMigrationsAreAsTheyWere(t *testing.T) {
	t.Parallel()
	must.Report(t, check("../../sql"))
}
