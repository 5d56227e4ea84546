package main

import "testing"

func TestMigrationsAreUpToDate(t *testing.T) {
	t.Parallel()
	if err := compare("../../sql"); err != nil {
		t.Error(err)
	}
}
