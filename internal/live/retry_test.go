package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgagui/pgagui/internal/rawjson"
	"github.com/pgagui/pgagui/internal/testfile"
)

// The npm packages read the same table (js/postgres/test/database.test.ts).
func TestClassesOfErrorsOfTheDatabase(t *testing.T) {
	t.Parallel()
	text := testfile.Read(t, "../../testdata/errorclasses.json")
	var table map[string][]struct{ Code, Message string }
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	for name, class := range map[string]errorClass{"permanent": permanent, "uncertain": uncertain, "transient": transient} {
		if len(table[name]) == 0 {
			t.Errorf("the table has no errors that are %s", name)
		}
		for _, stated := range table[name] {
			err := fmt.Errorf("a call: %w", &pgconn.PgError{Code: stated.Code, Message: stated.Message})
			if got := classify(err); got != class {
				t.Errorf("the class of %v is %d, want %d (%s)", err, got, class, name)
			}
			if IsTransient(err) != (class != permanent) {
				t.Errorf("IsTransient(%v) is %t", err, IsTransient(err))
			}
		}
	}
}

func TestWhatCannotBeSentIsPermanent(t *testing.T) {
	t.Parallel()
	for _, text := range []rawjson.Text{rawjson.Text(`{`), rawjson.Text(strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000))} {
		_, err := text.Value()
		if got := classify(fmt.Errorf("failed to encode args[3]: %w", err)); got != permanent {
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
