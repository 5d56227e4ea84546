package problem

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/refusal"
)

// Clients read that the database failed, and with which SQLSTATE. Its words are for the log.
func TestFailuresOfTheDatabaseKeepItsWords(t *testing.T) {
	for code, status := range map[string]int{
		"53300": http.StatusServiceUnavailable, "57P01": http.StatusServiceUnavailable, "25006": http.StatusServiceUnavailable, "XX001": http.StatusInternalServerError, "42P01": http.StatusInternalServerError,
	} {
		failure := &pgconn.PgError{Code: code, Message: "secret message", Hint: "secret hint", Detail: "secret detail"}
		known, isOurs := Of(failure)
		text, err := json.Marshal(known)
		if err != nil || known.Status != status || !isOurs || strings.Contains(string(text), "secret") {
			t.Errorf("%s: %s, ours: %t (%v)", code, text, isOurs, err)
		}
	}
}

// Each refusal of the schema has a status that says what a client can do, and what it can do, if the words of the database are not
// for it. The test of the catalog in folder test says that the table has them all.
func TestEachRefusalHasAStatus(t *testing.T) {
	for _, kind := range refusal.OfState {
		if !strings.HasPrefix(kind.State, "UI") {
			continue
		}
		known, isOurs := Of(pgagui.ErrorOf(&pgconn.PgError{Code: kind.State, Message: "what", Hint: "hint"}))
		want := &Details{Title: http.StatusText(kind.Status), Status: kind.Status, Detail: "what", Code: kind.State, Hint: cmp.Or(kind.HTTP, "hint")}
		if *known != *want || isOurs != kind.ForOperators || known.Status == http.StatusInternalServerError {
			t.Errorf("%s is %+v", kind.State, known)
		}
	}
}

// A value that cannot be used has one status, whether the database refuses it or the program does.
func TestAWrongValueHasOneStatus(t *testing.T) {
	for _, err := range []error{pgagui.ErrorOf(&pgconn.PgError{Code: "22023", Message: "what"}), &pgagui.Error{Kind: pgagui.ErrInvalidArgument, Message: "what"}} {
		if known, isOurs := Of(err); known.Status != http.StatusUnprocessableEntity || isOurs {
			t.Errorf("%#v is %+v", err, known)
		}
	}
}
