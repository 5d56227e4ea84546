package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgagui/pgagui/internal/rawjson"
	"github.com/pgagui/pgagui/internal/refusal"
	"github.com/pgagui/pgagui/protocol"
)

func TestClassesOfErrorsOfTheDatabase(t *testing.T) {
	t.Parallel()
	classes := map[string]refusal.Retry{"": refusal.Permanent, "uncertain": refusal.Uncertain, "transient": refusal.Transient}
	table := protocol.Errors().States
	for _, code := range []string{"UI005", "UI027", "22023", "23505", "28P01", "42501", "0A000", "XX000", "3D000"} {
		table = append(table, protocol.State{Code: code, Message: "something else"})
	}
	for _, stated := range table {
		err := fmt.Errorf("a call: %w", &pgconn.PgError{Code: (stated.Code + "006")[:5], Message: stated.Message})
		if got := classify(err); got != classes[stated.Retry] {
			t.Errorf("the class of %v is %d, not %q", err, got, stated.Retry)
		}
		if IsTransient(err) != (stated.Retry != "") {
			t.Errorf("IsTransient(%v) is %t", err, IsTransient(err))
		}
	}
}

func TestWhatCannotBeSentIsPermanent(t *testing.T) {
	t.Parallel()
	for _, text := range []rawjson.Text{rawjson.Text(`{`), rawjson.Text(strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000))} {
		_, err := text.Value()
		if got := classify(fmt.Errorf("failed to encode args[3]: %w", err)); got != refusal.Permanent {
			t.Errorf("the class of %v is %d", err, got)
		}
	}
}

func TestTransientErrors(t *testing.T) {
	t.Parallel()
	_, unreached := pgconn.Connect(t.Context(), "postgres://127.0.0.1:1/none")
	for _, err := range []error{unreached, io.ErrUnexpectedEOF, context.DeadlineExceeded} {
		if !IsTransient(err) {
			t.Errorf("%v is not transient", err)
		}
	}
	for _, err := range []error{nil, errors.New("something else"), &pgconn.PgError{Code: "UI005"}} {
		if IsTransient(err) {
			t.Errorf("%v is transient", err)
		}
	}
}
