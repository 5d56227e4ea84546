package jobs_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// A text that a run does not say any more stays, if the input of a run of another branch has it.
func TestSearchKeepsWhatAnotherBranchSays(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	must.Do(t, store.EnableSearch(t.Context(), "simple"))
	say := func(run, parent string, afterSeq *int64, events string) int64 {
		t.Helper()
		var raw []json.RawMessage
		must.Do(t, json.Unmarshal([]byte(events), &raw))
		seq := must.Have(store.Append(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: run}, raw, pgagui.AppendOptions{ParentRunID: parent, AfterSeq: afterSeq}))(t)
		return seq
	}
	say("root", "", nil, `[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]`)
	last := say("first", "root", nil, `[{"type":"RUN_STARTED"},{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"early"},{"type":"RUN_FINISHED"}]`)
	say("second", "root", nil, `[{"type":"RUN_STARTED","input":{"messages":[{"id":"m","role":"assistant","content":"early"}]}},{"type":"RUN_FINISHED"}]`)
	projectAll(t, pool, projections["SQL"])
	say("first", "root", &last, `[{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":" and late"}]`)
	projectAll(t, pool, projections["SQL"])
	page := must.Have(store.Search(t.Context(), "early", pgagui.SearchOptions{}))(t)
	var runs []string
	for _, found := range page.Messages {
		runs = append(runs, found.RunID)
	}
	if got := strings.Join(runs, " "); got != "second first" {
		t.Errorf("found %q", got)
	}
	if found := damageOf(t, store, "t"); len(found) > 0 {
		t.Errorf("verify finds %q", found)
	}
}

// What a caller may send is refused as wrong, not as a failure of the server.
func TestSearchRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	must.Do(t, store.EnableSearch(t.Context(), "simple"))
	const nobody = "00000000-0000-0000-0000-000000000000"
	for _, options := range []pgagui.SearchOptions{
		{Cursor: "1e999 1 " + nobody + " 1"}, {Cursor: "1e-99 1 " + nobody + " 1"}, {Cursor: "1 99999999999999999999 " + nobody + " 1"},
		{Cursor: "1 1 " + strings.Repeat("-", 36) + " 1"}, {Cursor: "1 1 " + nobody + " 9999999999999999999"}, {Cursor: "1 1 " + nobody}, {Cursor: "1"},
		{Role: `a\b`}, {Role: "'"}, {Role: "system"}, {Role: strings.Repeat("x", 3000)},
	} {
		if page, err := store.Search(t.Context(), "word", options); !errors.Is(err, pgagui.ErrInvalidArgument) {
			t.Errorf("%+v: %v, %v", options, page, err)
		}
	}
	for _, query := range []string{strings.Repeat("-", 1000) + "a", strings.Repeat("word ", 300_000), strings.Repeat("a1 or ", 150) + "b1"} {
		if page, err := store.Search(t.Context(), query, pgagui.SearchOptions{}); !errors.Is(err, pgagui.ErrInvalidArgument) {
			t.Errorf("%.10q: %v, %v", query, page, err)
		}
	}
	// Strange, but right.
	for _, query := range []string{`"`, ":*", "'", `\`, "()", "a & !b | (c <-> d)", strings.Repeat(`"`, 10_000), strings.Repeat("x", 10_000), "-word", "\x01scope:1"} {
		if page, err := store.Search(t.Context(), query, pgagui.SearchOptions{Cursor: "1e-20 -1 " + nobody + " -1", Role: "user"}); err != nil {
			t.Errorf("%.10q: %v, %v", query, page, err)
		}
	}
	for _, position := range []string{
		"0/0 all 1 " + strings.Repeat("-", 36) + " 1", "0/0 changed 1 " + nobody + " 9999999999", "0/0 all 1 " + nobody, "all", "0/0 some 1 " + nobody + " 1",
	} {
		if _, err := store.Changes(t.Context(), pgagui.ChangesOptions{After: position}); !errors.Is(err, pgagui.ErrInvalidArgument) {
			t.Errorf("changes after %q: %v", position, err)
		}
		if err := store.Consumer("c").Move(t.Context(), position); !errors.Is(err, pgagui.ErrInvalidArgument) {
			t.Errorf("consumer at %q: %v", position, err)
		}
	}
}

// A session may print numbers with fewer digits.
func TestSearchGoesOnInEachSession(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	must.Do(t, store.EnableSearch(t.Context(), "simple"))
	var messages []string
	for i := range 20 {
		messages = append(messages, `{"role":"user","content":"word`+strings.Repeat(" other", i)+strings.Repeat(" word", i%3)+`"}`)
	}
	events := []json.RawMessage{json.RawMessage(`{"type":"RUN_STARTED","input":{"messages":[` + strings.Join(messages, ",") + `]}}`), json.RawMessage(`{"type":"RUN_FINISHED"}`)}
	must.Have(store.Append(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: "r"}, events, pgagui.AppendOptions{}))(t)
	projectAll(t, pool, projections["SQL"])
	tx := must.Have(pool.Begin(t.Context()))(t)
	defer tx.Rollback(t.Context()) //nolint:errcheck
	testdb.Exec(t, tx, `set local extra_float_digits = -15`)
	in, options, found := store.WithTx(tx), pgagui.SearchOptions{Limit: 3}, 0
	for range 30 {
		page := must.Have(in.Search(t.Context(), "word", options))(t)
		found += len(page.Messages)
		if options.Cursor = page.Cursor; page.Cursor == "" {
			break
		}
	}
	if found != len(messages) {
		t.Errorf("%d of %d messages, page by page", found, len(messages))
	}
}

// What a text contains is not taken for a mark.
func TestSearchMarksOnlyWhatMatches(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	must.Do(t, store.EnableSearch(t.Context(), "simple"))
	events := []json.RawMessage{
		json.RawMessage(`{"type":"RUN_STARTED"}`),
		json.RawMessage(`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"\u0002forged\u0003 **bold** refund"}`), json.RawMessage(`{"type":"RUN_FINISHED"}`),
	}
	must.Have(store.Append(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: "r"}, events, pgagui.AppendOptions{}))(t)
	projectAll(t, pool, projections["SQL"])
	page, err := store.Search(t.Context(), "refund", pgagui.SearchOptions{})
	if err != nil || len(page.Messages) != 1 {
		t.Fatalf("%+v, %v", page, err)
	}
	for _, part := range page.Messages[0].Snippet {
		if part.IsMatch != (part.Text == "refund") {
			t.Errorf("part %+v", part)
		}
	}
	if snippet := testdb.Ask[string](t, pool, `select snippet from agui.search('refund', marks => '{}')`); strings.Contains(snippet, ",") {
		t.Errorf("without marks: %q", snippet)
	}
}
