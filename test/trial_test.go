//go:build trial

// These tests run on the code that the generator makes of a list with one more type, TEST_NOTE_START: see protocol/trial_test.go.

package test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/compaction/compactiontest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

func trialStream(events ...string) (stream []json.RawMessage) {
	for _, event := range events {
		stream = append(stream, json.RawMessage(event))
	}
	return stream
}

var trialRun = trialStream(
	`{"type":"RUN_STARTED","threadId":"t","runId":"run"}`,
	`{"type":"TEXT_MESSAGE_START","messageId":"answer"}`,
	`{"type":"TEXT_MESSAGE_CONTENT","messageId":"answer","delta":"An "}`,
	`{"type":"TEXT_MESSAGE_CONTENT","messageId":"answer","delta":"answer"}`,
	`{"type":"TEST_NOTE_START","messageId":"note","role":"system","metadata":{"k":1}}`,
	`{"type":"TEXT_MESSAGE_CONTENT","messageId":"note","delta":"A note"}`,
	`{"type":"TEST_NOTE_START","messageId":"answer"}`,
	`{"type":"TEXT_MESSAGE_CONTENT","messageId":"answer","delta":"."}`,
)

func TestTrialTypeIsKnownToAllThatReadsTheLog(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	run := pgagui.RunRef{ThreadID: "t", RunID: "run"}
	must.Have(store.Append(ctx, run, trialRun, pgagui.AppendOptions{}))(t)

	want := `{"id":"note","role":"system","content":"A note","metadata":{"k":1}}`
	restored, err := store.Restore(ctx, "t", pgagui.At{})
	if err != nil || len(restored.Messages) != 2 || string(restored.Messages[1]) != want {
		t.Errorf("the fold in SQL has the messages %s, %v; want the second to be %s", restored.Messages, err, want)
	}
	fold := compaction.New()
	for _, event := range trialRun {
		fold.Apply(event)
	}
	if messages := fold.Messages(); len(messages) != 2 || string(messages[1].JSON()) != want {
		t.Errorf("the fold in Go has the messages %v; want the second to be %s", messages, want)
	}

	if origin, err := store.MessageOrigin(ctx, run, "note"); err != nil || origin.ID != "run" {
		t.Errorf("the origin of the note: %+v, %v", origin, err)
	}
	told, err := store.SessionMessages(ctx, "t", pgagui.SessionMessagesOptions{})
	if err != nil || len(told) != 2 || told[1].MessageID != "note" || told[1].Seq != 5 {
		t.Errorf("session messages: %+v, %v; want the note at seq 5", told, err)
	}

	// The start ends the pieces of the answer that came before it.
	var rows []string
	page := must.Have(store.History(ctx, "t", pgagui.HistoryOptions{}))(t)
	for _, row := range page.Events {
		rows = append(rows, fmt.Sprint(row.Type, " ", row.Count))
	}
	if got, want := strings.Join(rows, ", "), "RUN_STARTED 1, TEXT_MESSAGE_START 1, TEXT_MESSAGE_CONTENT 2, TEST_NOTE_START 1, "+
		"TEXT_MESSAGE_CONTENT 1, TEST_NOTE_START 1, TEXT_MESSAGE_CONTENT 1"; got != want {
		t.Errorf("history: %s, want %s", got, want)
	}

	// What it opened is open, and is closed on behalf of the writer.
	replay := testdb.Ask[string](t, pool, `select json_agg(event)::text from agui.replay('t') as event`)
	if !strings.Contains(replay, `"type":"TEXT_MESSAGE_START","messageId":"note","role":"system"`) {
		t.Errorf("a replay does not reopen the note: %s", replay)
	}
	must.Have(store.Abandon(ctx, run, pgagui.AbandonOptions{Reason: "trial"}))(t)
	var ends int
	query := `select count(*) from agui.events('t') where type = 'TEXT_MESSAGE_END' and payload ->> 'messageId' in ('note', 'answer')`
	if err := pool.QueryRow(ctx, query).Scan(&ends); err != nil || ends != 2 {
		t.Errorf("the end of the run has %d ends of messages, %v; want 2", ends, err)
	}
}

// Generated streams have the type. The reducers agree on them, and so do the compacted forms, which mean the same.
func TestTrialTypeInGeneratedStreams(t *testing.T) {
	t.Parallel()
	var streams [][]json.RawMessage
	count := 0
	for seed := range uint64(60) {
		stream := compactiontest.Stream(seed, compactiontest.Options{Wild: seed%2 == 0, RefusedChunks: true, Proposals: true})
		streams = append(streams, stream)
		count += strings.Count(string(compactiontest.Batch(stream)), "TEST_NOTE_START")
	}
	if count < 20 {
		t.Errorf("the streams have only %d TEST_NOTE_START", count)
	}
	pool := testdb.Pool(t)
	for i, inSQL := range (&reducers{pool: pool}).foldInSQL(t, streams) {
		if difference := differences(inSQL, foldInGo(t, streams[i])); difference != "" {
			t.Errorf("stream %d: SQL against Go: %s", i, difference)
		}
	}
	for i, stream := range streams {
		compacted := must.Have(compaction.CompactEvents(stream, compaction.StreamShape, nil))(t)
		if difference := differences(foldInGo(t, compacted), foldInGo(t, stream)); difference != "" {
			t.Errorf("stream %d: compacted in Go: %s", i, difference)
		}
		inSQL := testdb.Ask[[]byte](t, pool, `select agui.compact_events($1::json)::text`, string(compactiontest.Batch(stream)))
		var events []json.RawMessage
		must.Do(t, json.Unmarshal(inSQL, &events))
		if difference := differences(foldInGo(t, events), foldInGo(t, stream)); difference != "" {
			t.Errorf("stream %d: compacted in SQL: %s", i, difference)
		}
	}
}
