package main

import "testing"

func TestReleasedMigrationsAreAsTheyWere(t *testing.T) {
	t.Parallel()
	if err := check("../../sql"); err != nil {
		t.Error(err)
	}
}
