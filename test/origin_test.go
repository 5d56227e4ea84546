package test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// originTree is a thread of random runs, in which the ids of messages are spelled in many ways.
type originTree struct {
	*rand.Rand
	store *pgagui.Store
	ids   []string
	runs  []string
	held  map[string][]string // the ids of the messages after each run
}

// Ids that are parts of each other, that JSON must escape, that it may escape, and outside of ASCII.
var oddIDs = []string{"m", "m1", "m10", `m"1`, `a\b`, `\u0041`, "a/b", "tab\there", "é", "日本/語", "\u0001", "😀", `"`, `\`, "A", `","id":"m`}

// spell writes a string as JSON, with escapes that it need not have.
func (o *originTree) spell(text string) string {
	var spelled strings.Builder
	for _, r := range text {
		switch {
		case o.IntN(4) == 0 && r < 0x10000:
			format := []string{`\u%04x`, `\u%04X`}[o.IntN(2)]
			fmt.Fprintf(&spelled, format, r)
		case r == '/' && o.IntN(2) == 0:
			spelled.WriteString(`\/`)
		default:
			quoted, _ := json.Marshal(string(r))
			spelled.Write(quoted[1 : len(quoted)-1])
		}
	}
	return `"` + spelled.String() + `"`
}

func (o *originTree) plainly(text string) string {
	if o.IntN(3) == 0 {
		return o.spell(text)
	}
	quoted, _ := json.Marshal(text)
	return string(quoted)
}

func (o *originTree) list(ids []string) string {
	var messages []string
	for _, id := range ids {
		messages = append(messages, fmt.Sprintf(`{"content":%s,"id":%s,"role":"user"}`, o.plainly("about "+o.anyID()), o.plainly(id)))
	}
	return "[" + strings.Join(messages, ",") + "]"
}

func (o *originTree) anyID() string { return o.ids[o.IntN(len(o.ids))] }

// grow appends a run: a child of any run, with an input that has all messages of its parent and perhaps another one.
func (o *originTree) grow(t *testing.T) {
	t.Helper()
	ctx := context.Background()
	run := pgagui.RunRef{ThreadID: "t", RunID: fmt.Sprint("r", len(o.runs))}
	options := pgagui.AppendOptions{AfterSeq: new(int64(0)), NoParent: true}
	var known []string
	if len(o.runs) > 0 && o.IntN(8) > 0 {
		parent := o.runs[len(o.runs)-1]
		if o.IntN(3) == 0 {
			parent = o.runs[o.IntN(len(o.runs))]
		}
		options.ParentRunID, options.NoParent = parent, false
		known = slices.Clone(o.held[parent])
	}
	if o.IntN(2) == 0 {
		known = append(known, o.anyID())
	}
	input := fmt.Sprintf(`{"messages":%s}`, o.list(known))
	events := []string{`{"type":"RUN_STARTED"}`}
	switch o.IntN(3) {
	case 0:
		events[0] = fmt.Sprintf(`{"type":"RUN_STARTED","input":%s}`, input)
	case 1:
		options.Input = json.RawMessage(input)
	}
	if o.IntN(12) == 0 { // the list that there is, and another message: nothing goes
		events = append(events, fmt.Sprintf(`{"type":"MESSAGES_SNAPSHOT","messages":%s}`, o.list(append(known, o.anyID()))))
	}
	for range o.IntN(6) {
		id, other := o.plainly(o.anyID()), o.plainly(o.anyID())
		switch o.IntN(9) {
		case 0:
			events = append(events, fmt.Sprintf(`{"type":"TEXT_MESSAGE_START","messageId":%s}`, id),
				fmt.Sprintf(`{"type":"TEXT_MESSAGE_CONTENT","messageId":%s,"delta":%s}`, id, other), fmt.Sprintf(`{"type":"TEXT_MESSAGE_END","messageId":%s}`, id))
		case 1:
			events = append(events, fmt.Sprintf(`{"type":"TEXT_MESSAGE_CHUNK","messageId":%s,"delta":"x"}`, id))
		case 2:
			events = append(events, fmt.Sprintf(`{"type":"REASONING_MESSAGE_START","messageId":%s}`, id))
		case 3:
			events = append(events, fmt.Sprintf(`{"type":"TOOL_CALL_START","toolCallId":%s,"toolCallName":"f"}`, id))
		case 4:
			events = append(events, fmt.Sprintf(`{"type":"TOOL_CALL_RESULT","toolCallId":%s,"messageId":%s,"content":"x"}`, other, id))
		case 5:
			events = append(events, fmt.Sprintf(`{"type":"ACTIVITY_SNAPSHOT","messageId":%s,"activityType":"a","content":{}}`, id))
		default: // mentions an id, and brings no message
			events = append(events, fmt.Sprintf(`{"type":"CUSTOM","name":"x","messageId":%s,"value":{"id":%s,"messages":[{"id":%[1]s}]}}`, id, other),
				fmt.Sprintf(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"unknown","delta":%s}`, id))
		}
	}
	events = append(events, `{"type":"RUN_FINISHED"}`)
	for seq := int64(0); len(events) > 0; {
		n := 1 + o.IntN(len(events))
		raw := make([]json.RawMessage, n)
		for i, event := range events[:n] {
			raw[i] = json.RawMessage(event)
		}
		events = events[n:]
		var err error
		options.AfterSeq = &seq
		if seq, err = o.store.Append(ctx, run, raw, options); err != nil {
			t.Fatal(err)
		}
		options = pgagui.AppendOptions{}
	}
	restored := must.Have(o.store.Restore(ctx, "t", pgagui.At{RunID: run.RunID}))(t)
	var held []string
	for _, message := range restored.Messages {
		var identified struct{ ID string }
		must.Do(t, json.Unmarshal(message, &identified))
		held = append(held, identified.ID)
	}
	o.runs, o.held[run.RunID] = append(o.runs, run.RunID), held
}

// check compares the origin of each id, at each run, with the first run of the lineage after which the fold has it.
func (o *originTree) check(t *testing.T, when string) {
	t.Helper()
	for _, leaf := range o.runs {
		lineage := must.Have(o.store.Lineage(context.Background(), pgagui.RunRef{ThreadID: "t", RunID: leaf}))(t)
		for _, id := range append(slices.Clone(o.ids), "unknown") {
			var want pgagui.Run
			at := slices.IndexFunc(lineage, func(run pgagui.Run) bool { return slices.Contains(o.held[run.ID], id) })
			if at >= 0 {
				want = lineage[at]
			}
			got, err := o.store.MessageOrigin(context.Background(), pgagui.RunRef{ThreadID: "t", RunID: leaf}, id)
			if at < 0 && errors.Is(err, pgagui.ErrUnknownMessage) {
				err = nil
			} else if at < 0 && err == nil {
				err = errors.New("a run is found")
			}
			if err != nil || got.ID != want.ID || got.ParentRunID != want.ParentRunID || got.Depth != want.Depth {
				t.Errorf("%s: the origin of %q at %s is %q after %q (%v), want %q after %q", when, id, leaf, got.ID, got.ParentRunID, err, want.ID, want.ParentRunID)
			}
		}
	}
}

func TestTheOriginOfAMessageIsTheFirstRunWhoseFoldHasIt(t *testing.T) {
	t.Parallel()
	for seed := *firstSeed; seed < *firstSeed+uint64(streamsOfAKind(15)); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			random := rand.New(rand.NewPCG(seed, 1))
			tree := &originTree{Rand: random, store: pgagui.New(pool, nil), ids: oddIDs, held: map[string][]string{}}
			if seed%2 == 0 { // long lineages: few ids are brought by many runs
				for i := range 40 {
					tree.ids = append(slices.Clone(tree.ids), fmt.Sprintf("id %d/%d", i, seed))
				}
			}
			for range 14 {
				tree.grow(t)
			}
			tree.check(t, "without snapshots")
			if seed%3 == 0 {
				testdb.Exec(t, pool, `call agui.compact()`)
			} else {
				compactInGo(t, pool)
			}
			tree.check(t, "compacted")
			testdb.Exec(t, pool, `update agui.run set ended_at = ended_at - interval '1 day'`)
			testdb.Exec(t, pool, `call agui.repack()`)
			for range 4 {
				tree.grow(t)
			}
			tree.check(t, "with a tail")
			testdb.Exec(t, pool, `delete from agui.snapshot where run_no % 3 = $1`, random.IntN(3))
			tree.check(t, "with fewer snapshots")
		})
	}
}

func TestTheOriginOfAMessageInARunInProgress(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	appendTo := func(run, events string) { testdb.Exec(t, pool, `select agui.append('t', $1, $2::json)`, run, events) }
	origin := func(id string) string {
		t.Helper()
		got, err := store.MessageOrigin(t.Context(), pgagui.RunRef{ThreadID: "t"}, id)
		if err != nil && !errors.Is(err, pgagui.ErrUnknownMessage) {
			t.Fatal(err)
		}
		return got.ID
	}
	appendTo("r1", `[{"type":"RUN_STARTED"},{"type":"TEXT_MESSAGE_START","messageId":"a"},{"type":"RUN_FINISHED"}]`)
	appendTo("r2", `[{"type":"RUN_STARTED"},{"type":"TEXT_MESSAGE_START","messageId":"b"}]`)
	testdb.Exec(t, pool, `call agui.compact_running(1)`)
	// Behind the snapshot of the run in progress.
	appendTo("r2", `[{"type":"TEXT_MESSAGE_START","messageId":"c"}]`)
	for id, want := range map[string]string{"a": "r1", "b": "r2", "c": "r2", "d": ""} {
		if got := origin(id); got != want {
			t.Errorf("the origin of %s is %q, want %q", id, got, want)
		}
	}
	if _, err := store.MessageOrigin(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: "none"}, "a"); !errors.Is(err, pgagui.ErrUnknownRun) {
		t.Errorf("at an unknown run: %v", err)
	}
}

// The snapshots bound the search: the batches that it reads do not grow with the log.
func TestTheOriginOfAMessageCostsWhatLiesBetweenSnapshots(t *testing.T) {
	t.Parallel()
	read := func(pool *pgxpool.Pool, id, run string) int64 {
		return rowsRead(t, pool, "batch", `select * from agui.message_origin('t', $1, $2)`, id, run)
	}
	var most [2]int64
	for size, runs := range []int{15, 60} {
		pool := testdb.Pool(t)
		store := pgagui.New(pool, nil)
		for number := range runs {
			run := fmt.Sprint("r", number)
			for batch := range 20 {
				events := []json.RawMessage{json.RawMessage(fmt.Sprintf(`{"type":"TEXT_MESSAGE_CHUNK","messageId":%q,"delta":%q}`, run, strings.Repeat("x", 400)))}
				switch batch {
				case 0:
					events = append([]json.RawMessage{json.RawMessage(`{"type":"RUN_STARTED"}`)}, events...)
				case 19:
					events = append(events, json.RawMessage(`{"type":"RUN_FINISHED"}`))
				}
				mustAppend(t, store, "t", run, events)
			}
			compactInGo(t, pool)
		}
		testdb.Exec(t, pool, `analyze`)
		last := fmt.Sprint("r", runs-1)
		for number := range runs {
			if rows := read(pool, fmt.Sprint("r", number), last); rows > most[size] {
				most[size] = rows
			}
		}
		snapshots := testdb.Ask[int](t, pool, `select count(*)::int from agui.snapshot`)
		t.Logf("%d runs, %d snapshots: at most %d of %d batches are read", runs, snapshots, most[size], runs*20)
		if snapshots < 3 {
			t.Errorf("%d snapshots of %d runs were kept: the test shows nothing", snapshots, runs)
		}
	}
	if most[1] > most[0]*3/2 {
		t.Errorf("a search reads %d batches of a thread of 15 runs, and %d of one of 60", most[0], most[1])
	}
}

// A call whose parent is not a message of the assistant makes a message with the id of the call; another call does not.
func TestOriginOfMessagesOfCalls(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	for i, run := range []string{
		`{"type":"TEXT_MESSAGE_START","messageId":"user","role":"user"},{"type":"TEXT_MESSAGE_START","messageId":"assistant"}`,
		`{"type":"TOOL_CALL_START","toolCallId":"alone","toolCallName":"f","parentMessageId":"user"},
		 {"type":"TOOL_CALL_START","toolCallId":"inside","toolCallName":"f","parentMessageId":"assistant"}`,
		`{"type":"TOOL_CALL_RESULT","messageId":"inside","toolCallId":"inside","content":"done"}`,
	} {
		testdb.Exec(t, pool, `select agui.append('t', $1, ('[{"type":"RUN_STARTED"},' || $2 || ',{"type":"RUN_FINISHED"}]')::json)`, fmt.Sprint("r", i), run)
	}
	for _, when := range []string{"before", "after"} {
		for id, want := range map[string]string{"user": "r0", "assistant": "r0", "alone": "r1", "inside": "r2"} {
			origin, err := store.MessageOrigin(t.Context(), pgagui.RunRef{ThreadID: "t"}, id)
			if err != nil || origin.ID != want {
				t.Errorf("%s agui.compact: the message %q comes from %q, %v; want %q", when, id, origin.ID, err, want)
			}
		}
		testdb.Exec(t, pool, `call agui.compact()`)
	}
}
