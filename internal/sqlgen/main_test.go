package main

import "testing"

func TestWhatIsGeneratedIsUpToDate(t *testing.T) {
	t.Parallel()
	if err := compare("../../sql"); err != nil {
		t.Error(err)
	}
}
