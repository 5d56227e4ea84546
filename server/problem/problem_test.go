package problem

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/sql/functions"
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

// Each refusal of the schema has a status that says what a client can do.
func TestEachRefusalHasAStatus(t *testing.T) {
	codes := map[string]bool{}
	err := fs.WalkDir(functions.Files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(functions.Files, path)
		for _, code := range regexp.MustCompile(`'UI\d\d\d'`).FindAllString(string(text), -1) {
			codes[strings.Trim(code, "'")] = true
		}
		return err
	})
	if err != nil || len(codes) < 25 {
		t.Errorf("%d codes (%v)", len(codes), err)
	}
	for code := range codes {
		if known, _ := Of(pgagui.ErrorOf(&pgconn.PgError{Code: code, Message: "what"})); known.Status == http.StatusInternalServerError || known.Code != code || known.Detail != "what" {
			t.Errorf("%s is %+v", code, known)
		}
	}
}

// The hints of the functions are for those who call them. A client of HTTP calls other things.
func TestHintsNameNoSQL(t *testing.T) {
	var (
		raised = regexp.MustCompile(`(?s)errcode = '(\w+)'(.*?);\n`)
		hint   = regexp.MustCompile(`(?s)hint = (.*)`)
		count  int
	)
	err := fs.WalkDir(functions.Files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(functions.Files, path)
		for _, refusal := range raised.FindAllStringSubmatch(string(text), -1) {
			if stated := hint.FindStringSubmatch(refusal[2]); stated != nil {
				count++
				known, _ := Of(pgagui.ErrorOf(&pgconn.PgError{Code: refusal[1], Hint: stated[1]}))
				if regexp.MustCompile(`agui\.|=>|after_seq|pg_|select`).MatchString(known.Hint) {
					t.Errorf("%s: the hint of %s is: %s", path, refusal[1], known.Hint)
				}
			}
		}
		return err
	})
	if err != nil || count < 50 {
		t.Errorf("%d hints (%v)", count, err)
	}
	known, _ := Of(pgagui.ErrorOf(&pgconn.PgError{Code: "UI006", Hint: "Request it to stop (agui.request_stop)."}))
	if !strings.Contains(known.Hint, "POST /threads/{threadId}/stop") {
		t.Errorf("the hint for a run in progress is %q", known.Hint)
	}
}
