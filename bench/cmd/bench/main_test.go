package main

import (
	"strings"
	"testing"
)

func TestWrongArgumentsAreRefused(t *testing.T) {
	t.Parallel()
	for arguments, want := range map[string]string{"everything": "everything", "append everything": "everything", "--repeat 0": "--repeat", "--share 2": "--share", "large --events 9": "--events"} {
		if err := run(t.Context(), strings.Fields(arguments)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", arguments, err)
		}
	}
}
