package pgagui_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// says is a RUN_STARTED whose input has a message of the user.
func says(runID, content string) string {
	return fmt.Sprintf(`{"type":"RUN_STARTED","runId":%q,"input":{"messages":[{"id":"u","role":"user","content":%s}]}}`, runID, content)
}

func listThreads(t testing.TB, store *pgagui.Store, options pgagui.ThreadsOptions) []pgagui.Thread {
	t.Helper()
	page, err := store.Threads(context.Background(), options)
	if err != nil {
		t.Fatalf("threads %+v: %v", options, err)
	}
	return page.Threads
}

func threadIDs(threads []pgagui.Thread) string {
	ids := []string{}
	for _, thread := range threads {
		ids = append(ids, thread.ID)
	}
	return strings.Join(ids, " ")
}

func mustSet(t testing.TB, store *pgagui.Store, threadID string, changes pgagui.ThreadChanges) pgagui.Thread {
	t.Helper()
	thread, err := store.SetThread(context.Background(), threadID, changes)
	if err != nil {
		t.Fatalf("set thread %s: %v", threadID, err)
	}
	return thread
}

func TestAListShowsWhatAThreadIs(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	mustAppend(t, store, "trip", "a", rawEvents(says("a", `"Plan three days in Lisbon"`), finished))
	mustAppend(t, store, "trip", "b", rawEvents(startedFrom("b", "a"), failed))
	mustAppend(t, store, "trip", "c", rawEvents(startedFrom("c", "a")))
	mustAppend(t, store.InScope("other"), "trip", "x", rawEvents(started("x")))
	page, err := store.Threads(context.Background(), pgagui.ThreadsOptions{})
	if err != nil || len(page.Threads) != 1 || page.Cursor != "" {
		t.Fatalf("page %+v, error %v", page, err)
	}
	got := page.Threads[0]
	status := must.Have(store.Status(context.Background(), pgagui.RunRef{ThreadID: "trip", RunID: "c"}))(t)
	if !got.ActiveAt.Equal(status.StartedAt) {
		t.Errorf("active at %v, the last run began at %v", got.ActiveAt, status.StartedAt)
	}
	if created := testdb.Ask[time.Time](t, pool, `select created_at from agui.thread where scope = ''`); !got.CreatedAt.Equal(created) {
		t.Errorf("created at %v, want %v", got.CreatedAt, created)
	}
	want := pgagui.Thread{
		ID: "trip", Title: "Plan three days in Lisbon", Metadata: json.RawMessage("{}"), HeadRunID: "c", Status: pgagui.Running, Runs: 3, Branches: 2,
		CreatedAt: got.CreatedAt, ActiveAt: got.ActiveAt, Cursor: got.Cursor,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if one, err := store.Thread(context.Background(), "trip"); err != nil || !reflect.DeepEqual(one, want) {
		t.Errorf("alone it is %+v, error %v", one, err)
	}

	// The end of a run moves the thread, what comes between does not.
	mustAppend(t, store, "trip", "c", rawEvents(token(1)))
	if between := listThreads(t, store, pgagui.ThreadsOptions{})[0]; !between.ActiveAt.Equal(got.ActiveAt) {
		t.Errorf("a token moved the thread from %v to %v", got.ActiveAt, between.ActiveAt)
	}
	mustAppend(t, store, "trip", "c", rawEvents(finished))
	ended := must.Have(store.Status(context.Background(), pgagui.RunRef{ThreadID: "trip", RunID: "c"}))(t)
	if after := listThreads(t, store, pgagui.ThreadsOptions{})[0]; !after.ActiveAt.Equal(ended.EndedAt) || after.Status != pgagui.Finished {
		t.Errorf("after the end it is %s and active at %v, want finished and %v", after.Status, after.ActiveAt, ended.EndedAt)
	}
	mustVerify(t, store, "trip")
}

// However a run ends or goes on, its thread is where its last beginning or end puts it.
func TestEveryBeginningAndEndMovesTheThread(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	ctx := context.Background()
	for name, do := range map[string]func(thread string){
		"one call":   func(thread string) { mustAppend(t, store, thread, "r", rawEvents(started("r"), finished)) },
		"many calls": func(thread string) { mustAppend(t, store, thread, "r", rawEvents(started("r"))) },
		"error later": func(thread string) {
			mustAppend(t, store, thread, "r", rawEvents(started("r"), finished))
			mustAppend(t, store, thread, "r", rawEvents(failed))
		},
		"abandoned": func(thread string) {
			mustAppend(t, store, thread, "r", rawEvents(started("r")))
			mustAbandon(t, store, pgagui.RunRef{ThreadID: thread, RunID: "r"}, pgagui.AbandonOptions{Reason: "gone"})
		},
		"after the end": func(thread string) {
			seq := mustAppend(t, store, thread, "r", rawEvents(started("r"), finished))
			mustAppend(t, store, thread, "r", rawEvents(token(1)), afterSeq(seq))
		},
		"two runs": func(thread string) {
			mustAppend(t, store, thread, "r", rawEvents(started("r"), finished))
			mustAppend(t, store, thread, "s", rawEvents(started("s")))
		},
		"many at once": func(thread string) {
			testdb.Exec(t, pool, `select agui.append_many(array[$1, $1], '{r,s}',
				array['[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]', '[{"type":"RUN_STARTED"}]']::json[])`, thread)
		},
		"reaped": func(thread string) {
			mustAppend(t, store, thread, "r", rawEvents(started("r")))
			testdb.Exec(t, pool, `begin; select agui.set_setting('lease', '0'); select agui_internal.reap_run(agui.thread_key('', '`+thread+`'), 1); select agui.set_setting('lease', null); commit`)
		},
		"saved in first": func(thread string) {
			mustSave(t, store, thread, "", "k", `1`)
			mustAppend(t, store, thread, "r", rawEvents(started("r"), finished))
		},
		"imported": func(thread string) {
			testdb.Exec(t, pool, `select agui.import_events($1, 'r', '[{"type":"RUN_STARTED","timestamp":1700000000000},{"type":"RUN_FINISHED","timestamp":1700000001000}]')`, thread)
		},
	} {
		do(name)
		thread, err := store.Thread(ctx, name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		moved := testdb.Ask[time.Time](t, pool, `select max(greatest(started_at, ended_at)) from agui.run where thread_key = agui.thread_key('', '`+name+`')`)
		if !thread.ActiveAt.Equal(moved) {
			t.Errorf("%s: the thread is active at %v, its runs say %v", name, thread.ActiveAt, moved)
		}
	}
}

func TestTheTitleIsWhatTheUserSaidFirst(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	long := strings.Repeat("äöü ", 80)
	for i, title := range []struct{ content, want string }{
		{`"Plan a trip"`, "Plan a trip"},
		{`"  two\n\n lines\tand  spaces "`, "two lines and spaces"},
		{`[{"type":"text","text":"A picture"},{"type":"binary","mimeType":"image/png","data":"eA=="},{"type":"text","text":"of what?"}]`, "A picture of what?"},
		{`[{"type":"binary","mimeType":"image/png","data":"eA=="}]`, "(image)"},
		{`[{"type":"image","source":{"type":"url","value":"https://x/y"},"metadata":{"filename":"  the\nhotel.jpg"}},{"type":"document"}]`, "the hotel.jpg, (document)"},
		{`[{"type":"text","text":" "},{"type":"binary","mimeType":"application/pdf","filename":"plan.pdf"},{"type":"weather"}]`, "plan.pdf"},
		{`"\u0000 half \ud83d and C:\\temp\\u0000"`, "\uFFFD half \uFFFD and C:\\temp\\u0000"},
		{`"\ud83d\ude00"`, "😀"},
		{`"` + long + `"`, strings.TrimRight(string([]rune(long)[:200]), " ")},
		{`"` + strings.Repeat("x", 1_000_000) + `"`, strings.Repeat("x", 200)},
		{`7`, ""}, {`null`, ""}, {`{"text":"no"}`, ""}, {`""`, ""}, {`[7,null,{"text":7},[]]`, ""},
	} {
		id := fmt.Sprint("t", i)
		mustAppend(t, store, id, "r", rawEvents(says("r", title.content), finished))
		if thread, err := store.Thread(context.Background(), id); err != nil || thread.Title != title.want {
			t.Errorf("%.100s: the title is %q, want %.200q; error %v", title.content, thread.Title, title.want, err)
		}
	}
	for name, from := range map[string]struct {
		events []json.RawMessage
		input  string
		want   string
	}{
		"behind others":     {rawEvents(`{"type":"RUN_STARTED","input":{"messages":[{"role":"system","content":"Be kind"},{"role":"user","content":""},{"role":"user","content":"Hi"}]}}`), "", "Hi"},
		"a plain string":    {rawEvents(`{"type":"RUN_STARTED","input":{"messages":["Hi"]}}`), "", "Hi"},
		"no list":           {rawEvents(`{"type":"RUN_STARTED","input":{"messages":{"role":"user"}}}`), "", ""},
		"no object":         {rawEvents(`{"type":"RUN_STARTED","input":["messages"]}`), "", ""},
		"beside the events": {rawEvents(`{"type":"RUN_STARTED"}`), `{"messages":[{"role":"user","content":"Beside \ud83d"}]}`, "Beside \uFFFD"},
		"in both":           {rawEvents(`{"type":"RUN_STARTED","input":{"messages":[{"role":"user","content":"Inside"}]}}`), `{"messages":[{"role":"user","content":"Beside"}]}`, "Inside"},
		"in no RUN_STARTED": {rawEvents(`{"type":"CUSTOM","input":{"messages":["Hi"]}}`), "", ""},
	} {
		if _, err := pool.Exec(context.Background(), `select agui.append($1, 'r', $2::text::json, after_seq => 0, input => nullif($3, '')::json)`,
			name, string(join(from.events)), from.input); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if thread, err := store.Thread(context.Background(), name); err != nil || thread.Title != from.want {
			t.Errorf("%s: the title is %q, want %q; error %v", name, thread.Title, from.want, err)
		}
	}

	// Within the events that begin a run.
	userSays := []string{`{"type":"TEXT_MESSAGE_START","messageId":"a","role":"assistant"}`, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":"No"}`,
		`{"type":"TEXT_MESSAGE_START","messageId":"u","role":"user"}`, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"u","delta":"Book \u0000"}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"u","delta":" a room"}`, `{"type":"TEXT_MESSAGE_END","messageId":"u"}`}
	for name, events := range map[string][]string{
		"said": userSays, "said in a chunk": {`{"type":"TEXT_MESSAGE_CHUNK","messageId":"u","role":"user","delta":"Book \u0000 a room"}`},
		"said in a snapshot": {`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"s","role":"system","content":"Be kind"},{"id":"u","role":"user","content":"Book \u0000 a room"}]}`},
	} {
		mustAppend(t, store, name, "r", rawEvents(append([]string{started("r")}, events...)...))
		if thread := mustSet(t, store, name, pgagui.ThreadChanges{}); thread.Title != "Book \uFFFD a room" {
			t.Errorf("%s: the title is %q", name, thread.Title)
		}
	}

	// A greeting comes first; then the user says something, and later something else.
	mustAppend(t, store, "greeting", "a", rawEvents(started("a"), finished))
	mustAppend(t, store, "greeting", "b", rawEvents(says("b", `"First"`), finished))
	mustAppend(t, store, "greeting", "c", rawEvents(says("c", `"Second"`), finished))
	if thread := mustSet(t, store, "greeting", pgagui.ThreadChanges{}); thread.Title != "First" {
		t.Errorf("the title is %q, want First", thread.Title)
	}
}

func join(raw []json.RawMessage) []byte {
	array, err := json.Marshal(raw)
	if err != nil {
		panic(err)
	}
	return array
}

// manual is what a system message may have: with it, a snapshot is too large for an append to look for a title in it.
var manual = strings.Repeat("Be kind. ", 40_000)

// Servers whose RUN_STARTED carries no input say what the user said in a snapshot of the messages. If
// it is large, compaction finds it there.
func TestCompactionFindsTheTitle(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	snapshot := `{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"s","role":"system","content":"` + manual + `"},{"id":"u","role":"user","content":"Hello \u0000"}]}`
	mustAppend(t, store, "ended", "r", rawEvents(started("r"), snapshot, finished))
	mustAppend(t, store, "running", "r", rawEvents(started("r"), snapshot))
	mustAppend(t, store, "silent", "r", rawEvents(started("r"), finished))
	for _, call := range []string{`call agui.compact()`, `call agui.compact_running(1)`} {
		testdb.Exec(t, pool, call)
	}
	for id, want := range map[string]string{"ended": "Hello \uFFFD", "running": "Hello \uFFFD", "silent": ""} {
		if thread, err := store.Thread(context.Background(), id); err != nil || thread.Title != want {
			t.Errorf("thread %s has the title %q, want %q; error %v", id, thread.Title, want, err)
		}
	}
}

func TestFiltersOfThreads(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	// The newest last.
	mustAppend(t, store, "old", "r", rawEvents(says("r", `"100% of the hotels_\\"`), finished))
	since := testdb.Ask[time.Time](t, pool, `select clock_timestamp()`)
	mustAppend(t, store, "failed", "r", rawEvents(says("r", `"Ein ÄRGER"`), failed))
	mustAppend(t, store, "gone", "r", rawEvents(started("r")))
	mustAppend(t, store, "running", "r", rawEvents(says("r", `"Hotels"`)))
	mustSet(t, store, "empty", pgagui.ThreadChanges{Title: new("No runs yet"), Agent: new("planner"), CreateIfMissing: true})
	mustSet(t, store, "old", pgagui.ThreadChanges{Agent: new("planner"), Metadata: json.RawMessage(`{"folder":{"id":7,"name":"x"},"tags":["a","b"]}`)})
	mustSet(t, store, "away", pgagui.ThreadChanges{Title: new("Archived"), Archived: new(true), CreateIfMissing: true})
	testdb.UpForEver(t, pool)
	testdb.Exec(t, pool, `
		alter table agui.batch disable trigger user;
		update agui.batch set recorded_at = recorded_at - interval '1 hour' where thread_key = agui.thread_key('', 'gone')`)
	for _, filter := range []struct {
		options pgagui.ThreadsOptions
		want    string
	}{
		{pgagui.ThreadsOptions{}, "empty running gone failed old"},
		{pgagui.ThreadsOptions{Archived: pgagui.OnlyArchived}, "away"},
		{pgagui.ThreadsOptions{Archived: pgagui.WithArchived}, "away empty running gone failed old"},
		{pgagui.ThreadsOptions{Since: since}, "empty running gone failed"},
		{pgagui.ThreadsOptions{Agent: "planner"}, "empty old"},
		{pgagui.ThreadsOptions{Agent: "plan"}, ""},
		{pgagui.ThreadsOptions{Title: "hotels"}, "running old"},
		{pgagui.ThreadsOptions{Title: "Ärger"}, "failed"},
		{pgagui.ThreadsOptions{Title: "0% of"}, "old"},
		{pgagui.ThreadsOptions{Title: "%"}, "old"},
		{pgagui.ThreadsOptions{Title: "_"}, "old"},
		{pgagui.ThreadsOptions{Title: `\`}, "old"},
		{pgagui.ThreadsOptions{Title: "no runs"}, "empty"},
		{pgagui.ThreadsOptions{Status: pgagui.Running}, "running gone"},
		{pgagui.ThreadsOptions{Stale: true}, "gone"},
		{pgagui.ThreadsOptions{Status: pgagui.Finished}, "old"},
		{pgagui.ThreadsOptions{Status: pgagui.Failed}, "failed"},
		{pgagui.ThreadsOptions{Status: pgagui.Failed, Agent: "planner"}, ""},
		{pgagui.ThreadsOptions{Metadata: json.RawMessage(`{"folder":{"id":7}}`)}, "old"},
		{pgagui.ThreadsOptions{Metadata: json.RawMessage(`{"tags":["b"]}`)}, "old"},
		{pgagui.ThreadsOptions{Metadata: json.RawMessage(`{"folder":8}`)}, ""},
		{pgagui.ThreadsOptions{Limit: 2}, "empty running"},
	} {
		if got := threadIDs(listThreads(t, store, filter.options)); got != filter.want {
			t.Errorf("%+v: %s, want %s", filter.options, got, filter.want)
		}
	}
	for _, thread := range listThreads(t, store, pgagui.ThreadsOptions{}) {
		if thread.Stale != (thread.ID == "gone") {
			t.Errorf("thread %s: stale %t", thread.ID, thread.Stale)
		}
	}
	for _, wrong := range []struct {
		options pgagui.ThreadsOptions
		want    error
	}{
		{pgagui.ThreadsOptions{Limit: 1001}, pgagui.ErrLimitExceeded},
		{pgagui.ThreadsOptions{Limit: -1}, pgagui.ErrLimitExceeded},
		{pgagui.ThreadsOptions{Status: "lost"}, pgagui.ErrInvalidArgument},
		{pgagui.ThreadsOptions{Cursor: "7"}, pgagui.ErrInvalidArgument},
		{pgagui.ThreadsOptions{Cursor: strings.Repeat("8", 32)}, pgagui.ErrInvalidArgument},
		{pgagui.ThreadsOptions{Cursor: strings.Repeat("G", 32)}, pgagui.ErrInvalidArgument},
	} {
		if _, err := store.Threads(context.Background(), wrong.options); !errors.Is(err, wrong.want) {
			t.Errorf("%+v: error %v, want %v", wrong.options, err, wrong.want)
		}
	}
}

func TestSetThread(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	ctx := context.Background()
	if _, err := store.SetThread(ctx, "t", pgagui.ThreadChanges{Title: new("x")}); !errors.Is(err, pgagui.ErrUnknownThread) {
		t.Errorf("an unknown thread: error %v", err)
	}
	if _, err := store.Thread(ctx, "t"); !errors.Is(err, pgagui.ErrUnknownThread) {
		t.Errorf("an unknown thread: error %v", err)
	}
	mustAppend(t, store, "u", "r", rawEvents(started("r"), finished))
	thread := mustSet(t, store, "t", pgagui.ThreadChanges{CreateIfMissing: true, Metadata: json.RawMessage(`{"a":1,"b":{"c":null,"d":[1]},"gone":2}`)})
	if thread.Runs != 0 || thread.Branches != 0 || thread.Status != "" || thread.HeadRunID != "" || thread.Title != "" {
		t.Errorf("a new thread is %+v", thread)
	}
	thread = mustSet(t, store, "t", pgagui.ThreadChanges{Title: new("Title"), Agent: new("agent"), Archived: new(true)})
	thread = mustSet(t, store, "t", pgagui.ThreadChanges{Metadata: json.RawMessage(`{"b":{"e":5},"gone":null,"never":null,"new":{"f":null}}`)})
	if thread.Title != "Title" || thread.Agent != "agent" || !thread.Archived {
		t.Errorf("what was not set did not stay: %+v", thread)
	}
	if got := string(thread.Metadata); got != `{"a": 1, "b": {"e": 5}, "new": {"f": null}}` {
		t.Errorf("metadata is %s", got)
	}
	thread = mustSet(t, store, "t", pgagui.ThreadChanges{Title: new(""), Agent: new(""), Archived: new(false), Metadata: json.RawMessage(`{}`)})
	if thread.Title != "" || thread.Agent != "" || thread.Archived || len(thread.Metadata) < 3 {
		t.Errorf("after it was cleared it is %+v", thread)
	}

	// It is no activity, and a title that is taken away uncovers the derived one.
	before := threadIDs(listThreads(t, store, pgagui.ThreadsOptions{}))
	mustAppend(t, store, "u", "s", rawEvents(says("s", `"Derived"`), finished))
	mustSet(t, store, "t", pgagui.ThreadChanges{Title: new("Renamed")})
	if got := threadIDs(listThreads(t, store, pgagui.ThreadsOptions{})); got != "u t" || before != "t u" {
		t.Errorf("threads were %s, and are %s", before, got)
	}
	mustSet(t, store, "u", pgagui.ThreadChanges{Title: new("Set")})
	if thread = mustSet(t, store, "u", pgagui.ThreadChanges{Title: new("")}); thread.Title != "Derived" {
		t.Errorf("the title is %q, want Derived", thread.Title)
	}

	for _, wrong := range []struct {
		thread  string
		changes pgagui.ThreadChanges
		want    error
	}{
		{"t", pgagui.ThreadChanges{Title: new(strings.Repeat("x", 1025))}, pgagui.ErrLimitExceeded},
		{"t", pgagui.ThreadChanges{Agent: new(strings.Repeat("x", 1025))}, pgagui.ErrLimitExceeded},
		{"t", pgagui.ThreadChanges{Metadata: json.RawMessage(`{"x":"` + strings.Repeat("x", 70_000) + `"}`)}, pgagui.ErrLimitExceeded},
		{"t", pgagui.ThreadChanges{Metadata: json.RawMessage(`[]`)}, pgagui.ErrInvalidArgument},
		{"t", pgagui.ThreadChanges{Metadata: json.RawMessage(`null`)}, pgagui.ErrInvalidArgument},
		{"", pgagui.ThreadChanges{CreateIfMissing: true}, pgagui.ErrInvalidEvents},
		{strings.Repeat("x", 1025), pgagui.ThreadChanges{CreateIfMissing: true}, pgagui.ErrLimitExceeded},
	} {
		if _, err := store.SetThread(ctx, wrong.thread, wrong.changes); !errors.Is(err, wrong.want) {
			t.Errorf("%.10s %.100v: error %v, want %v", wrong.thread, wrong.changes, err, wrong.want)
		}
	}
	for _, id := range []string{"t", "u"} {
		mustVerify(t, store, id)
	}

	// A thread that was erased is gone from lists, and stays so.
	must.Have(store.Erase(ctx, "t", pgagui.EraseOptions{}))(t)
	if got := threadIDs(listThreads(t, store, pgagui.ThreadsOptions{Archived: pgagui.WithArchived})); got != "u" {
		t.Errorf("threads %s", got)
	}
	if _, err := store.SetThread(ctx, "t", pgagui.ThreadChanges{CreateIfMissing: true}); !errors.Is(err, pgagui.ErrThreadErased) {
		t.Errorf("an erased thread: error %v", err)
	}
	// One without runs is erased by its age, too.
	mustSet(t, store, "empty", pgagui.ThreadChanges{CreateIfMissing: true})
	if n := testdb.Ask[int](t, pool, `select count(*) from agui_internal.inactive_threads('-1 minute') where thread_id = 'empty'`); n != 1 {
		t.Error("a thread without runs is never erased for its age")
	}
}

// Pages have each thread once, in order, whatever their size, also where many threads were active
// at the same moment.
func TestPagesOfThreadsFollowEachOther(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	fillThreads(t, pool, "", 300)
	testdb.Exec(t, pool, `update agui.thread_activity
		set active_at = date_trunc('minute', active_at), archived = random() < 0.3`)
	for archived, condition := range map[pgagui.Archived]string{pgagui.NotArchived: "not archived", pgagui.OnlyArchived: "archived", pgagui.WithArchived: "true"} {
		want := testdb.Ask[[]string](t, pool, `select array_agg(thread_id order by active_at desc, thread_key desc)
			from agui.thread join agui.thread_activity using (thread_key) where `+condition)
		for _, limit := range []int{1, 7, len(want) - 1, len(want), len(want) + 1} {
			for _, title := range []string{"", "thread"} {
				options := pgagui.ThreadsOptions{Archived: archived, Limit: limit, Title: title}
				var got []string
				for pages := 0; ; pages++ {
					page := must.Have(store.Threads(context.Background(), options))(t)
					for _, thread := range page.Threads {
						got = append(got, thread.ID)
					}
					if page.Cursor == "" {
						break
					}
					if last := page.Threads[len(page.Threads)-1]; last.Cursor != page.Cursor || len(page.Threads) != limit || pages > len(want) {
						t.Fatalf("%+v: page %d of %d threads ends with cursor %s, its last thread has %s", options, pages, len(page.Threads), page.Cursor, last.Cursor)
					}
					options.Cursor = page.Cursor
				}
				if !slices.Equal(got, want) {
					t.Fatalf("%+v: the pages have %d threads, want %d\n%v\n%v", options, len(got), len(want), got, want)
				}
			}
		}
	}
	var ids []string
	for id, err := range store.ThreadIDs(context.Background()) {
		must.Do(t, err)
		ids = append(ids, id)
	}
	slices.Sort(ids)
	if got := len(slices.Compact(ids)); got != 300 {
		t.Errorf("%d ids, want 300", got)
	}
}

// fillThreads makes threads of two runs, number 1 the oldest, without appending.
func fillThreads(t testing.TB, pool *pgxpool.Pool, scope string, n int) {
	t.Helper()
	testdb.Exec(t, pool, `
		with made as (
			select n, agui.thread_key($1, 'thread-' || n) as thread_key, timestamptz '2026-01-01' + n * interval '1 second' as at
			from generate_series(1, $2::int) as n
		),
		thread as (
			insert into agui.thread (thread_key, scope, thread_id, created_at) select thread_key, $1, 'thread-' || n, at from made
		),
		run as (
			insert into agui.run (thread_key, run_no, parent_no, run_id, status, first_seq, last_seq, started_at, ended_at)
			select thread_key, r, nullif(r - 1, 0), 'r' || r, 'finished', r, r, at, at from made, generate_series(1, 2) as r
		)
		insert into agui.thread_activity (thread_key, scope_key, active_at, derived_title)
		select thread_key, agui_internal.scope_key(thread_key), at, 'About thread number ' || n from made`, scope, n)
}

// A list that is narrowed ends a page after 10,000 threads; the cursor leads on, and the whole
// search finds everything.
func TestASearchGoesOnBehindManyThreads(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	fillThreads(t, pool, "", 25_000)
	testdb.Exec(t, pool, `
		update agui.thread_activity set title = 'Needle', agent = 'tailor', metadata = '{"sharp":true}'
		from agui.thread where thread.thread_key = thread_activity.thread_key and thread_id in ('thread-3', 'thread-14500', 'thread-14999', 'thread-25000');
		analyze`)
	for _, options := range []pgagui.ThreadsOptions{
		{Title: "needle"}, {Agent: "tailor"}, {Metadata: json.RawMessage(`{"sharp":true}`)}, {Title: "needle", Status: pgagui.Finished},
	} {
		var pages []string
		for range 10 {
			page := must.Have(store.Threads(context.Background(), options))(t)
			pages = append(pages, threadIDs(page.Threads))
			if options.Cursor = page.Cursor; page.Cursor == "" {
				break
			}
		}
		if got, want := strings.Join(pages, " | "), "thread-25000 | thread-14999 thread-14500 | thread-3"; got != want {
			t.Errorf("%+v finds %s, want %s", options, got, want)
		}
	}
	options := pgagui.ThreadsOptions{Status: pgagui.Failed}
	for looked := 0; ; looked++ {
		page, err := store.Threads(context.Background(), options)
		if err != nil || len(page.Threads) > 0 {
			t.Fatalf("page %+v, error %v", page, err)
		}
		if page.SearchedTo.IsZero() == page.HasMore {
			t.Errorf("a page that found nothing, more follow: %t, says that it went back to %s", page.HasMore, page.SearchedTo)
		}
		if options.Cursor = page.Cursor; page.Cursor == "" {
			if looked != 2 {
				t.Errorf("nothing was found after %d pages, want after 3", looked+1)
			}
			break
		}
	}
}

// Threads become active at random while someone pages. No page shows one twice, the pages come to
// an end, a thread that stays quiet is in one of them, and one that moved is in the list of those
// active since.
func TestPagingBesideWriters(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	ctx := context.Background()
	const threads = 60
	for n := range threads {
		mustAppend(t, store, fmt.Sprint("t", n), "r", rawEvents(started("r"), finished))
	}
	for round := range 5 {
		random := rand.New(rand.NewPCG(7, uint64(round)))
		options := pgagui.ThreadsOptions{Limit: 7}
		seen, moved := map[string]bool{}, map[string]bool{}
		var top time.Time
		pages := 0
		for ; ; pages++ {
			page := must.Have(store.Threads(ctx, options))(t)
			if pages == 0 {
				top = page.Threads[0].ActiveAt
			}
			for _, thread := range page.Threads {
				if seen[thread.ID] {
					t.Errorf("round %d: thread %s comes twice", round, thread.ID)
				}
				seen[thread.ID] = true
			}
			if options.Cursor = page.Cursor; page.Cursor == "" {
				break
			}
			for range 4 {
				id := fmt.Sprint("t", random.IntN(threads))
				moved[id] = true
				mustAppend(t, store, id, fmt.Sprint("r", round, "-", pages, "-", random.Uint32()), rawEvents(`{"type":"RUN_STARTED"}`, finished))
			}
		}
		if pages > threads/7 {
			t.Errorf("round %d: %d pages", round, pages+1)
		}
		since := map[string]bool{}
		for _, thread := range listThreads(t, store, pgagui.ThreadsOptions{Since: top, Limit: 1000}) {
			since[thread.ID] = true
		}
		for n := range threads {
			id := fmt.Sprint("t", n)
			if !moved[id] && !seen[id] || moved[id] && !since[id] {
				t.Errorf("round %d: thread %s, moved %t, was seen %t, since then %t", round, id, moved[id], seen[id], since[id])
			}
		}
	}
}

// In a transaction with one snapshot the pages show the threads as they are at one moment.
func TestPagesOfOneMoment(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	ctx := context.Background()
	for n := range 9 {
		mustAppend(t, store, fmt.Sprint("t", n), "r", rawEvents(started("r"), finished))
	}
	var got []string
	err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		options := pgagui.ThreadsOptions{Limit: 2}
		for {
			page, err := store.WithTx(tx).Threads(ctx, options)
			if err != nil {
				return err
			}
			got = append(got, threadIDs(page.Threads))
			mustAppend(t, store, "t0", fmt.Sprint("r", len(got)), rawEvents(`{"type":"RUN_STARTED"}`, finished))
			if options.Cursor = page.Cursor; page.Cursor == "" {
				return nil
			}
		}
	})
	if want := "t8 t7,t6 t5,t4 t3,t2 t1,t0"; err != nil || strings.Join(got, ",") != want {
		t.Errorf("pages %v, want %s; error %v", got, want, err)
	}
}

// Whatever a compactor holds while it works on a thread, a run of the thread begins and ends
// meanwhile.
func TestAppendDoesNotWaitForACompactor(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	ctx := context.Background()
	snapshot := `{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"u","role":"user","content":"Hello"}]}`
	mustAppend(t, store, "t", "r", rawEvents(started("r"), snapshot, finished))
	for name, work := range map[string]string{
		"claim":   `select from agui.thread for no key update skip locked`,
		"compact": `select agui_internal.compact_sequence(agui.thread_key('', 't'), '{1}')`,
	} {
		tx := testdb.Begin(t, pool)
		defer tx.Rollback(ctx)
		for _, statement := range []string{`select from agui.thread for no key update skip locked`, work} {
			testdb.Exec(t, tx, statement)
		}
		run := "beside " + name
		if _, err := pool.Exec(ctx, `begin; set local lock_timeout = '2s';
			select agui.append('t', '`+run+`', '[{"type":"RUN_STARTED"}]');
			select agui.append('t', '`+run+`', '[{"type":"RUN_FINISHED"}]');
			select agui.set_thread('t', title => '`+run+`');
			commit`); err != nil {
			t.Errorf("beside %s: %v", name, err)
		}
		must.Do(t, tx.Rollback(ctx))
	}

	// And a compactor does not wait for a run that has begun and not been committed: the title can
	// be had next time.
	tx := testdb.Begin(t, pool)
	defer tx.Rollback(ctx)
	large := strings.Replace(snapshot, "[", `[{"id":"s","role":"system","content":"`+manual+`"},`, 1)
	mustAppend(t, store, "u", "r", rawEvents(started("r"), large, finished))
	mustAppend(t, store.WithTx(tx), "u", "s", rawEvents(started("s")))
	testdb.Exec(t, pool, `set lock_timeout = '2s'`)
	testdb.Exec(t, pool, `call agui.compact()`)
	must.Do(t, tx.Commit(ctx))
	if thread, err := store.Thread(ctx, "u"); err != nil || thread.Title != "" || thread.Runs != 2 {
		t.Errorf("%+v, error %v", thread, err)
	}
	mustAppend(t, store, "u", "s", rawEvents(finished))
	testdb.Exec(t, pool, `call agui.compact()`)
	if thread, err := store.Thread(ctx, "u"); err != nil || thread.Title != "Hello" {
		t.Errorf("%+v, error %v", thread, err)
	}
}

// Set and append in one transaction, in either order and beside others who do the same, wait for
// each other and do not deadlock.
func TestSetThreadBesideAppends(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	ctx := context.Background()
	const workers, rounds = 4, 15
	failures := make(chan error, workers)
	for worker := range workers {
		go func() {
			failures <- func() error {
				for round := range rounds {
					run := fmt.Sprint("r", worker, "-", round)
					err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
						inTx := store.WithTx(tx)
						set := func() error {
							_, err := inTx.SetThread(ctx, "t", pgagui.ThreadChanges{Title: &run, CreateIfMissing: true})
							return err
						}
						if round%2 == 0 {
							if err := set(); err != nil {
								return err
							}
						}
						if _, err := inTx.Append(ctx, pgagui.RunRef{ThreadID: "t", RunID: run}, rawEvents(started(run), finished), pgagui.AppendOptions{}); err != nil {
							return err
						}
						return set()
					})
					if err != nil {
						return err
					}
				}
				return nil
			}()
		}()
	}
	for range workers {
		must.Report(t, <-failures)
	}
	if thread, err := store.Thread(ctx, "t"); err != nil || thread.Runs != workers*rounds || thread.Branches != 1 {
		t.Errorf("%+v, error %v", thread, err)
	}
	mustVerify(t, store, "t")
}

// Poolers without prepared statements take parameters whose types the server has to guess.
func TestThreadsWithoutPreparedStatements(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"exec", "simple_protocol"} {
		pool := testdb.Connect(t, testdb.New(t)+"&default_query_exec_mode="+mode)
		store := pgagui.New(pool, nil)
		set := mustSet(t, store, "t", pgagui.ThreadChanges{
			Title: new("Title"), Agent: new("agent"), Archived: new(true), Metadata: json.RawMessage(`{"a":{"b":"\"'\\"}}`), CreateIfMissing: true,
		})
		listed := listThreads(t, store, pgagui.ThreadsOptions{
			Title: "title", Agent: "agent", Archived: pgagui.OnlyArchived, Since: set.CreatedAt, Metadata: json.RawMessage(`{"a":{"b":"\"'\\"}}`), Limit: 1,
		})
		if len(listed) != 1 || !reflect.DeepEqual(listed[0], set) || len(listThreads(t, store, pgagui.ThreadsOptions{})) != 0 {
			t.Errorf("%s: %+v was set, %+v are listed", mode, set, listed)
		}
	}
}
