package pgagui_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgagui/pgagui"
)

func TestTransientErrors(t *testing.T) {
	t.Parallel()
	state := func(code string) error { return fmt.Errorf("a call: %w", &pgconn.PgError{Code: code}) }
	_, unreached := pgconn.Connect(t.Context(), "postgres://127.0.0.1:1/none")
	for _, err := range []error{
		unreached, io.ErrUnexpectedEOF, context.DeadlineExceeded,
		state("08006"), state("40001"), state("40P01"), state("55P03"), state("57014"), state("53200"), state("53300"), state("57P01"), state("57P03"),
		state("25006"), // the primary became a standby
		state("42883"), // an upgrade replaced a function
	} {
		if !pgagui.IsTransient(err) {
			t.Errorf("%v is not transient", err)
		}
	}
	for _, err := range []error{
		nil, errors.New("something else"), pgagui.ErrRunEnded, state("UI005"), state("22023"), state("23505"), state("28P01"), state("42501"), state("XX000"),
	} {
		if pgagui.IsTransient(err) {
			t.Errorf("%v is transient", err)
		}
	}
}
