package timeline_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/compaction/compactiontest"
	"github.com/pgagui/pgagui/internal/jsontree"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/rawjson"
	"github.com/pgagui/pgagui/internal/recorded"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/jobs"
	"github.com/pgagui/pgagui/timeline"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// appendRun stores the events of a run, a few at a time.
func appendRun(t *testing.T, store *pgagui.Store, run pgagui.RunRef, events []json.RawMessage, options pgagui.AppendOptions) {
	t.Helper()
	var seq int64
	for batch := range slices.Chunk(events, 7) {
		options.AfterSeq = new(seq)
		var err error
		if seq, err = store.Append(t.Context(), run, batch, options); err != nil {
			t.Fatalf("run %s: %v", run.RunID, err)
		}
		options = pgagui.AppendOptions{}
	}
}

// checkRun compares a timeline with restores at every seq of a run: forwards, backwards, and by jumps.
func checkRun(t *testing.T, pool *pgxpool.Pool, store *pgagui.Store, run pgagui.RunRef) {
	t.Helper()
	line, err := timeline.NewCache(0).Open(t.Context(), store, run)
	if err != nil {
		t.Fatalf("run %s: %v", run.RunID, err)
	}
	marks := line.Marks()
	wants := make([]*pgagui.Restored, len(marks))
	var before json.RawMessage
	for i, mark := range marks {
		if wants[i], err = store.Restore(t.Context(), run.ThreadID, pgagui.At{RunID: run.RunID, Seq: mark.Seq}); err != nil {
			t.Fatalf("run %s: restore at %d: %v", run.RunID, mark.Seq, err)
		}
	}
	places := make([]int, 0, 3*len(marks))
	for i := range marks {
		places = append(places, i)
	}
	for i := range marks {
		places = append(places, len(marks)-1-i)
	}
	places = append(places, rand.Perm(len(marks))...)
	for step, i := range places {
		moment, err := line.At(t.Context(), marks[i].Seq)
		if err != nil {
			t.Fatalf("run %s: at %d: %v", run.RunID, marks[i].Seq, err)
		}
		want := wants[i]
		if got := joined(moment.Messages); !jsontree.Equal(got, joined(want.Messages)) {
			t.Fatalf("run %s at %d (step %d): messages\n%s, want\n%s", run.RunID, marks[i].Seq, step, got, joined(want.Messages))
		}
		if !jsontree.Equal(moment.State, want.State) {
			t.Fatalf("run %s at %d (step %d): state %s, want %s", run.RunID, marks[i].Seq, step, moment.State, want.State)
		}
		if got := joined(moment.Interrupts); !jsontree.Equal(got, joined(want.Interrupts)) {
			t.Fatalf("run %s at %d (step %d): interrupts %s, want %s", run.RunID, marks[i].Seq, step, got, joined(want.Interrupts))
		}
		if step >= len(marks) {
			continue
		}
		checkOpen(t, pool, store, run, moment)
		if i > 0 {
			checkPaths(t, moment, before)
		}
		before = moment.State
		if moment.Event.Seq != marks[i].Seq || moment.Event.Type != marks[i].Type || compaction.EventType(moment.Event.JSON) != marks[i].Type || moment.Index != i ||
			i > 0 && moment.Previous != marks[i-1].Seq || i+1 < len(marks) && moment.Next != marks[i+1].Seq {
			t.Fatalf("run %s at %d: %+v of %+v", run.RunID, marks[i].Seq, moment, marks[i])
		}
	}
	for _, seq := range []int64{0, -1, line.Run().FirstSeq - 1, line.Run().LastSeq + 1} {
		if moment, err := line.At(t.Context(), seq); !errors.Is(err, timeline.ErrNotInRun) {
			t.Errorf("run %s at %d: %v, error %v", run.RunID, seq, moment, err)
		}
	}
}

func joined(elements []json.RawMessage) []byte { return compactiontest.Batch(elements) }

// checkOpen compares what is open with what the reaper would close.
func checkOpen(t *testing.T, pool *pgxpool.Pool, store *pgagui.Store, run pgagui.RunRef, moment *timeline.Moment) {
	t.Helper()
	rows, err := pool.Query(t.Context(), `
		select concat_ws(' ', role.part, part.opened_at)
		from agui_internal.find_run($1, $2, $3) as run
		cross join lateral agui_internal.open_parts(run, $4) as part
		join (select distinct opens, part from agui_internal.event_roles()) as role on role.opens = part.opens
		order by part.opened_at`, run.ThreadID, run.RunID, store.Scope(), moment.Event.Seq)
	must.Do(t, err)
	var want, got []string
	for rows.Next() {
		var part string
		must.Do(t, rows.Scan(&part))
		want = append(want, part)
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
	for _, part := range moment.Open {
		if part.Seq > 0 {
			got = append(got, fmt.Sprint(part.Part, " ", part.Seq))
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("run %s at %d, %s: open %q, want %q", run.RunID, moment.Event.Seq, moment.Event.JSON, got, want)
	}
}

// checkPaths checks that the state is the same as before but for the places that the moment names.
func checkPaths(t *testing.T, moment *timeline.Moment, before json.RawMessage) {
	t.Helper()
	if jsontree.Equal(before, moment.State) {
		return // it may be spelled otherwise
	}
	patch, _, err := jsontree.CreatePatch(before, moment.State)
	must.Do(t, err)
	var operations []struct{ Op, Path string }
	must.Do(t, json.Unmarshal(patch, &operations))
	for _, operation := range operations {
		isNamed := slices.ContainsFunc(moment.StatePaths, func(path string) bool {
			// A path in an array says where something went in: what is behind it moves.
			parent := path[:max(0, strings.LastIndexByte(path, '/'))]
			return strings.HasPrefix(operation.Path+"/", path+"/") || strings.HasPrefix(operation.Path+"/", parent+"/") && isArrayPlace(path)
		})
		if !isNamed {
			t.Fatalf("at %d, %s: the state differs at %q, of %q: %s, before %s", moment.Event.Seq, moment.Event.JSON, operation.Path, moment.StatePaths, moment.State, before)
		}
	}
	if moment.StatePaths == nil != (len(operations) == 0) && moment.Event.Type != "STATE_DELTA" && moment.Event.Type != "STATE_SNAPSHOT" && moment.Event.Type != "RUN_STARTED" {
		t.Fatalf("at %d, %s: paths %q", moment.Event.Seq, moment.Event.JSON, moment.StatePaths)
	}
}

func isArrayPlace(path string) bool {
	last := path[strings.LastIndexByte(path, '/')+1:]
	return last == "-" || strings.Trim(last, "0123456789") == ""
}

// Every recording, at every event, as it was appended and after compaction.
func TestMomentsAreWhatRestoreGives(t *testing.T) {
	t.Parallel()
	for _, file := range recorded.Files(t, "..") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			store := pgagui.New(pool, &pgagui.Config{Scope: file})
			runs := recorded.Read(t, file)
			for _, run := range runs {
				appendRun(t, store, pgagui.RunRef{ThreadID: run.ThreadID, RunID: run.RunID}, run.Events, pgagui.AppendOptions{ParentRunID: run.ParentRunID})
			}
			for _, run := range runs {
				checkRun(t, pool, store, pgagui.RunRef{ThreadID: run.ThreadID, RunID: run.RunID})
			}
			must.Have(jobs.Compact(t.Context(), pool, jobs.CompactOptions{}))(t)
			for _, run := range runs {
				checkRun(t, pool, store, pgagui.RunRef{ThreadID: run.ThreadID, RunID: run.RunID})
			}
		})
	}
}

// Generated streams, each with the one before it as its parent: of any order, with chunks, inputs beside the events, and unusual JSON.
func TestMomentsOfGeneratedStreams(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for number := range 6 {
		store := pgagui.New(pool, &pgagui.Config{Scope: fmt.Sprint(number)})
		parent := ""
		for generation := range 3 {
			options := compactiontest.Options{Events: 30, Wild: number%2 == 0, Broken: number == 3, Proposals: true, Malformed: number > 3, Unicode: true, Numbers: true, RefusedChunks: number == 4}
			events := compactiontest.Stream(seed+uint64(10*number+generation), options)
			events = slices.DeleteFunc(events, func(event json.RawMessage) bool { return event[0] != '{' || compaction.EventType(event) == "" })
			for i, event := range events {
				object, _ := rawjson.ParseObject(event)
				for _, name := range []string{"threadId", "runId", "parentRunId"} {
					object.Remove(name)
				}
				events[i] = object.Text()
			}
			run := pgagui.RunRef{ThreadID: "t", RunID: fmt.Sprint("r", generation)}
			begin := pgagui.AppendOptions{ParentRunID: parent, NoParent: parent == ""}
			if generation > 0 {
				begin.Input = json.RawMessage(fmt.Sprintf(`{"messages":[{"id":"m0","role":"user","content":"again"},{"id":"new%d","role":"user","content":"new"}],"state":{"from":"input %d"}}`, generation, generation))
			}
			appendRun(t, store, run, events, begin)
			if status, err := store.Status(t.Context(), run); err != nil {
				t.Fatal(err)
			} else if status.Status == pgagui.Running {
				finish(t, store, run, status.LastSeq)
			}
			parent = run.RunID
		}
		for generation := range 3 {
			checkRun(t, pool, store, pgagui.RunRef{ThreadID: "t", RunID: fmt.Sprint("r", generation)})
		}
	}
}

func finish(t *testing.T, store *pgagui.Store, run pgagui.RunRef, after int64) {
	t.Helper()
	must.Have(store.Append(t.Context(), run, []json.RawMessage{json.RawMessage(`{"type":"RUN_FINISHED"}`)}, pgagui.AppendOptions{AfterSeq: &after}))(t)
}

// longRun is a run of 2 + 3 n events, with a message and a patch of the state every three.
func longRun(n int) []json.RawMessage {
	events := []json.RawMessage{json.RawMessage(`{"type":"RUN_STARTED"}`)}
	for i := range n {
		events = append(events,
			json.RawMessage(fmt.Sprintf(`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m%d","delta":"some text %d"}`, i/50, i)),
			json.RawMessage(fmt.Sprintf(`{"type":"STATE_DELTA","delta":[{"op":"add","path":"/n%d","value":%d}]}`, i%20, i)),
			json.RawMessage(`{"type":"CUSTOM","name":"tick","value":null}`))
	}
	return append(events, json.RawMessage(`{"type":"RUN_FINISHED"}`))
}

func TestAStepFoldsFewEvents(t *testing.T) {
	t.Parallel()
	store := pgagui.New(testdb.Pool(t), nil)
	run := pgagui.RunRef{ThreadID: "t", RunID: "long"}
	events := longRun(1000)
	must.Have(store.Append(t.Context(), run, events, pgagui.AppendOptions{}))(t)
	cache := timeline.NewCache(0)
	line := must.Have(cache.Open(t.Context(), store, run))(t)
	folds := func(seq int) int {
		before := line.Folded()
		must.Have(line.At(t.Context(), int64(seq)))(t)
		return line.Folded() - before
	}
	if n := folds(len(events)); n != len(events) {
		t.Errorf("the last event at once: %d folds", n)
	}
	for seq := len(events) - 1; seq > len(events)-600; seq-- {
		if n := folds(seq); n > 256 {
			t.Errorf("back to %d: %d folds", seq, n)
		}
	}
	for _, seq := range rand.Perm(len(events)) {
		if n := folds(seq + 1); n > 256 {
			t.Errorf("to %d: %d folds", seq+1, n)
		}
	}
	folds(1)
	for seq := 2; seq <= len(events); seq++ {
		if n := folds(seq); n != 1 {
			t.Fatalf("on to %d: %d folds", seq, n)
		}
	}
	again := must.Have(cache.Open(t.Context(), store, run))(t)
	if before := again.Folded(); before != line.Folded() {
		t.Errorf("opened once more, it has folded %d events, not %d", before, line.Folded())
	}
}

func TestACacheIsBounded(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	for number := range 5 {
		must.Have(store.Append(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: fmt.Sprint("r", number)}, longRun(300), pgagui.AppendOptions{}))(t)
	}
	whole := timeline.NewCache(0)
	var lines []*timeline.Timeline
	for number := range 5 {
		line := must.Have(whole.Open(t.Context(), store, pgagui.RunRef{ThreadID: "t", RunID: fmt.Sprint("r", number)}))(t)
		must.Have(line.At(t.Context(), line.Run().LastSeq))(t)
		lines = append(lines, line)
	}
	all, n := whole.Used()
	if n != 5 {
		t.Fatalf("%d runs are kept", n)
	}
	// Enough for two of five, and too little for one.
	for what, most := range map[string]int64{"two": all * 2 / 5, "a half": all / 10} {
		cache := timeline.NewCache(most)
		for _, place := range append(rand.Perm(5), rand.Perm(5)...) {
			run := pgagui.RunRef{ThreadID: "t", RunID: lines[place].Run().RunID}
			line := must.Have(cache.Open(t.Context(), store, run))(t)
			for range 20 {
				seq := line.Run().FirstSeq + rand.Int64N(line.Run().LastSeq-line.Run().FirstSeq+1)
				got := must.Have(line.At(t.Context(), seq))(t)
				want := must.Have(lines[place].At(t.Context(), seq))(t)
				if string(joined(got.Messages)) != string(joined(want.Messages)) || string(got.State) != string(want.State) || string(got.Event.JSON) != string(want.Event.JSON) {
					t.Fatalf("%s: run %s at %d: %+v, want %+v", what, run.RunID, seq, got, want)
				}
			}
			used, n := cache.Used()
			if used > most && n > 1 || used > all/5 && what == "a half" {
				t.Errorf("%s: %d runs take %d of %d bytes", what, n, used, most)
			}
		}
	}
}

// A run that goes on, and another one of the same name.
func TestATimelineGoesOn(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	run := pgagui.RunRef{ThreadID: "t", RunID: "r"}
	events := longRun(200)
	cache := timeline.NewCache(0)
	// It begins with another event than RUN_STARTED, which comes later and takes the input.
	late := append([]json.RawMessage{json.RawMessage(`{"type":"STATE_DELTA","delta":[{"op":"replace","path":"/given","value":1}]}`)}, events...)
	input := json.RawMessage(`{"messages":[{"id":"u","role":"user","content":"hi"}],"state":{"given":0}}`)
	var seq int64
	for number, batch := range [][]json.RawMessage{late[:1], late[1:2], late[2:300], late[300:]} {
		options := pgagui.AppendOptions{AfterSeq: new(seq)}
		if number == 0 {
			options.Input = input
		}
		var err error
		if seq, err = store.Append(t.Context(), run, batch, options); err != nil {
			t.Fatal(err)
		}
		line := must.Have(cache.Open(t.Context(), store, run))(t)
		for _, at := range []int64{seq, 1, seq/2 + 1} {
			moment := must.Have(line.At(t.Context(), at))(t)
			want := must.Have(store.Restore(t.Context(), "t", pgagui.At{RunID: "r", Seq: at}))(t)
			if string(joined(moment.Messages)) != string(joined(want.Messages)) || !jsontree.Equal(moment.State, want.State) {
				t.Fatalf("at %d of %d: %s %s, want %s", at, seq, moment.Messages, moment.State, want.JSON)
			}
		}
	}
	line := must.Have(cache.Open(t.Context(), store, run))(t)
	if moment, err := line.At(t.Context(), 2); err != nil || !slices.Equal(moment.StatePaths, []string{"/given"}) {
		t.Errorf("where the input counts from: %+v, error %v", moment, err)
	}
	must.Have(store.Erase(t.Context(), "t", pgagui.EraseOptions{}))(t)
	must.Have(store.Maintenance().LiftErasure(t.Context(), "t"))(t)
	if _, err := cache.Open(t.Context(), store, run); !errors.Is(err, pgagui.ErrUnknownThread) {
		t.Errorf("an erased thread: %v", err)
	}
	must.Have(store.Append(t.Context(), run, events, pgagui.AppendOptions{}))(t)
	other := must.Have(cache.Open(t.Context(), store, run))(t)
	if moment, err := other.At(t.Context(), 1); err != nil || moment.Event.Type != "RUN_STARTED" || len(moment.Messages) != 0 {
		t.Errorf("another run of the same name: %+v, error %v", moment, err)
	}
	if moment, err := line.At(t.Context(), 1); !errors.Is(err, timeline.ErrNotInRun) {
		t.Errorf("the timeline of the erased run: %+v, error %v", moment, err)
	}
}
