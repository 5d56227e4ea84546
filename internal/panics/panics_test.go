package panics_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/panics"
)

func TestAPanicBecomesAnErrorWithItsStackInTheLog(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	before := panics.Caught()
	var index []int
	err := panics.Catch(logger, func() error { return errors.New(string(rune(index[3]))) })
	if !errors.Is(err, panics.Err) || !strings.Contains(err.Error(), "panics_test.go:") || !strings.Contains(err.Error(), "out of range") {
		t.Errorf("the error: %v", err)
	}
	if !strings.Contains(log.String(), "stack=") || !strings.Contains(log.String(), "TestAPanicBecomesAnError") {
		t.Errorf("the log has no stack:\n%s", &log)
	}
	if panics.Caught() <= before {
		t.Error("the panic is not counted")
	}
	plain := errors.New("plain")
	if err := panics.Catch(logger, func() error { return plain }); err != plain {
		t.Errorf("another error: %v", err)
	}

	failed := make(chan error, 1)
	go panics.Task(logger, func() { panic("in a goroutine") }, func(err error) { failed <- err })()
	if err := <-failed; !errors.Is(err, panics.Err) {
		t.Errorf("the goroutine: %v", err)
	}
}
