package test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/compaction/compactiontest"
	"github.com/pgagui/pgagui/internal/jsontree"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// The history of generated logs, of one to three runs side by side with branches, in batches of any borders: raw it is the log; joined, each
// event is in just one row, and for every run the rows mean what its events mean. Whatever the limit and the filters, and the same
// after a repack. A log where that fails is shrunk to a few events before it is shown.
func TestHistoryOfGeneratedLogs(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	reader := historyReader{store: pgagui.New(pool, nil), pool: pool}
	for i, kind := range kindsOfStreams {
		t.Run(kind.name, func(t *testing.T) {
			logs := make([]generatedLog, streamsOfAKind(150)) // each is read some fifty times
			failures := 0
			for n := range logs {
				logs[n] = generateLog((*firstSeed+uint64(n))<<8+uint64(i), kind.options)
				logs[n].store(t, pool)
				if problem := reader.problem(t, logs[n]); problem != "" {
					failures++
					shrunk := logs[n]
					shrunk.events = shrink(logs[n].events, func(events []placedEvent) bool {
						smaller := shrunk
						smaller.events = events
						smaller.store(t, pool)
						return reader.problem(t, smaller) != ""
					})
					shrunk.store(t, pool)
					t.Errorf("seed %d: %s\nthe log, shrunk to %d events:\n%s", logs[n].seed, reader.problem(t, shrunk), len(shrunk.events), shrunk)
					if failures == 3 {
						t.FailNow()
					}
				}
			}
			testdb.Exec(t, pool, `call agui.repack(older_than => '0')`)
			for n := range logs {
				if problem := reader.problem(t, logs[n]); problem != "" {
					t.Fatalf("seed %d, after agui.repack: %s", logs[n].seed, problem)
				}
			}
		})
	}
}

// generatedLog is a thread of several streams, each cut into runs, that came side by side. It names its thread by its content.
type generatedLog struct {
	seed    uint64
	parents []int // of each run the number of its parent; -1: it has none
	events  []placedEvent
	// at is when each event came, in a batch of its own, after the beginning of the log. Nil: at times and in batches that the seed chooses.
	at []time.Duration
}

var logBegan = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)

// placedEvent is an event of the log with the number of its run.
type placedEvent struct {
	run   int
	event json.RawMessage
}

func generateLog(seed uint64, options compactiontest.Options) generatedLog {
	random := rand.New(rand.NewPCG(seed, 5))
	log := generatedLog{seed: seed}
	var ended []int
	streams := make([][]json.RawMessage, 1+random.IntN(3))
	runs := make([]int, len(streams))
	left := make([]int, len(streams)) // events until the run of a stream ends
	for i := range streams {
		streams[i] = slices.DeleteFunc(compactiontest.Stream(seed*3+uint64(i), options), func(event json.RawMessage) bool {
			return compaction.EventType(event) == "" // agui.append refuses it
		})
	}
	for len(streams) > 0 {
		i := random.IntN(len(streams))
		if left[i] == 0 {
			parent := -1
			if len(ended) > 0 {
				parent = ended[max(random.IntN(len(ended)), random.IntN(len(ended)))]
			}
			runs[i], left[i] = len(log.parents), 1+random.IntN(40)
			log.parents = append(log.parents, parent)
		}
		n := min(1+random.IntN(6), left[i], len(streams[i]))
		for _, event := range streams[i][:n] {
			log.events = append(log.events, placedEvent{runs[i], event})
		}
		streams[i], left[i] = streams[i][n:], left[i]-n
		if left[i] == 0 {
			ended = append(ended, runs[i])
		}
		if len(streams[i]) == 0 {
			streams, runs, left = slices.Delete(streams, i, i+1), slices.Delete(runs, i, i+1), slices.Delete(left, i, i+1)
		}
	}
	return log
}

func (l generatedLog) String() string {
	var text strings.Builder
	for i, placed := range l.events {
		fmt.Fprintf(&text, "%d run-%d %s\n", i+1, placed.run, placed.event)
	}
	return text.String()
}

func (l generatedLog) thread() string { return fmt.Sprint("log-", l.seed, "-", len(l.events)) }

// parent returns the nearest ancestor of a run that has events; -1: none has.
func (l generatedLog) parent(run int) int {
	for run = l.parents[run]; run >= 0 && !l.has(run); {
		run = l.parents[run]
	}
	return run
}

// isAncestor says whether a run is on the lineage of another.
func (l generatedLog) isAncestor(runID, of string) bool {
	var run int
	fmt.Sscanf(of, "run-%d", &run)
	for run = l.parent(run); run >= 0; run = l.parent(run) {
		if runID == fmt.Sprint("run-", run) {
			return true
		}
	}
	return false
}

func (l generatedLog) has(run int) bool {
	return slices.ContainsFunc(l.events, func(placed placedEvent) bool { return placed.run == run })
}

// store puts the log into the database past agui.append, which would refuse most of it, in place of what its thread held.
func (l generatedLog) store(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	thread := l.thread()
	testdb.Exec(t, pool, `select agui.erase($1), agui.lift_erasure($1) where exists (select from agui.thread where thread_id = $1)`, thread)
	testdb.Exec(t, pool, `insert into agui.thread (thread_key, scope, thread_id) values (agui.thread_key('', $1), '', $1)`, thread)
	firstSeqs, lastSeqs := map[int]int{}, map[int]int{}
	for i, placed := range l.events {
		if _, begun := firstSeqs[placed.run]; !begun {
			firstSeqs[placed.run] = i + 1
		}
		lastSeqs[placed.run] = i + 1
	}
	for run := range l.parents {
		if !l.has(run) {
			continue
		}
		var parentNumber *int
		if parent := l.parent(run); parent >= 0 {
			parent++
			parentNumber = &parent
		}
		testdb.Exec(t, pool, `
			insert into agui.run (thread_key, run_no, parent_no, run_id, status, first_seq, last_seq, started_at, ended_at)
			values (agui.thread_key('', $1), $2, $3, $4, 'finished', $5, $6, now(), now())`,
			thread, run+1, parentNumber, fmt.Sprint("run-", run), firstSeqs[run], lastSeqs[run])
	}
	random := rand.New(rand.NewPCG(l.seed, 6))
	recordedAt := logBegan
	for first := 0; first < len(l.events); {
		var events []json.RawMessage
		if l.at != nil {
			events = append(events, l.events[first].event)
			recordedAt = logBegan.Add(l.at[first])
		} else {
			for n := 1 + random.IntN(6); n > 0 && first+len(events) < len(l.events) && l.events[first+len(events)].run == l.events[first].run; n-- {
				events = append(events, l.events[first+len(events)].event)
			}
			pauses := []time.Duration{0, 0, time.Microsecond, time.Millisecond, 700 * time.Millisecond, 20 * time.Second, 40 * time.Minute}
			recordedAt = recordedAt.Add(pauses[random.IntN(len(pauses))])
		}
		testdb.Exec(t, pool, `
			insert into agui.batch (thread_key, first_seq, recorded_at, n, run_no, events) values (agui.thread_key('', $1), $2, $3, $4, $5, $6)`,
			thread, first+1, recordedAt, len(events), l.events[first].run+1, json.RawMessage(compactiontest.Batch(events)))
		first += len(events)
	}
}

// historyReader asks for the history of threads and says what is wrong with the answers.
type historyReader struct {
	store *pgagui.Store
	pool  *pgxpool.Pool
}

// problem says what is wrong with the history of a stored log, in a sentence; empty where nothing is. It asks for the whole, and for parts
// that the seed chooses.
func (r historyReader) problem(t *testing.T, log generatedLog) string {
	t.Helper()
	thread := log.thread()
	events := eventsOf(t, r.pool, thread)
	random := rand.New(rand.NewPCG(log.seed, 7))
	limits := []int{1, 2, 3, 10, 50, 1000}
	if len(events) > 100 {
		limits = []int{7, 50, 1000}
	}
	limit := func() int { return limits[random.IntN(len(limits))] }

	if problem := sameEvents(r.read(t, thread, pgagui.HistoryOptions{Raw: true, Limit: limit()}), events); problem != "" {
		return "raw: " + problem
	}
	bounds := []pgagui.HistoryOptions{{}, {}, {MaxBytes: 1 + random.IntN(30)}, {MaxIdle: time.Second}, {MaxBytes: 20, MaxIdle: time.Microsecond}}
	for _, options := range bounds {
		options.Limit = limit()
		rows := r.read(t, thread, options)
		if problem := whatRowsMiss(rows, events, options); problem != "" {
			return fmt.Sprintf("%+v: %s", options, problem)
		}
		if problem := log.whatRowsMean(t, rows); problem != "" {
			return fmt.Sprintf("%+v: %s", options, problem)
		}
	}
	for range 6 {
		options := bounds[random.IntN(len(bounds))]
		all := r.read(t, thread, pgagui.HistoryOptions{MaxBytes: options.MaxBytes, MaxIdle: options.MaxIdle, Limit: 1000})
		if random.IntN(2) == 0 {
			options.RunID = events[random.IntN(len(events))].RunID
			options.NoLineage = random.IntN(2) == 0
		}
		for range random.IntN(3) {
			options.Types = append(options.Types, events[random.IntN(len(events))].Type)
		}
		wanted := func(runID, eventType string) bool {
			return (options.RunID == "" || options.RunID == runID || !options.NoLineage && log.isAncestor(runID, options.RunID)) && (options.Types == nil || slices.Contains(options.Types, eventType))
		}
		// Which rows a run and types leave does not depend on what they leave out.
		options.Limit = 1000
		rows := r.read(t, thread, options)
		left := slices.DeleteFunc(all, func(row pgagui.HistoryEvent) bool { return !wanted(row.RunID, row.Type) })
		if got, want := fmt.Sprint(rows), fmt.Sprint(left); got != want {
			return fmt.Sprintf("%+v: rows are\n%s\nnot\n%s", options, got, want)
		}
		if random.IntN(2) == 0 {
			options.Since = events[random.IntN(len(events))].RecordedAt
		}
		if random.IntN(2) == 0 {
			options.Until = events[random.IntN(len(events))].RecordedAt
		}
		part := slices.DeleteFunc(slices.Clone(events), func(event pgagui.Event) bool {
			return !wanted(event.RunID, event.Type) || event.RecordedAt.Before(options.Since) || !options.Until.IsZero() && !event.RecordedAt.Before(options.Until)
		})
		options.Limit = limit()
		if problem := whatRowsMiss(r.read(t, thread, options), part, options); problem != "" {
			return fmt.Sprintf("%+v: %s", options, problem)
		}
		options.Raw = true
		if problem := sameEvents(r.read(t, thread, options), part); problem != "" {
			return fmt.Sprintf("%+v: %s", options, problem)
		}
	}
	return ""
}

// read returns all pages, one after the other.
func (r historyReader) read(t *testing.T, thread string, options pgagui.HistoryOptions) (rows []pgagui.HistoryEvent) {
	t.Helper()
	for {
		page, err := r.store.History(context.Background(), thread, options)
		if err != nil {
			t.Fatalf("%s, %+v: %v", thread, options, err)
		}
		rows = append(rows, page.Events...)
		if len(page.Events) < options.Limit {
			return rows
		}
		options.AfterSeq = page.AfterSeq
	}
}

// eventsOf returns the log as the view agui.event shows it.
func eventsOf(t *testing.T, pool *pgxpool.Pool, thread string) (events []pgagui.Event) {
	t.Helper()
	rows, err := pool.Query(context.Background(), `
		select seq, run_id, type, recorded_at, payload::text from agui.event where thread_id = $1 order by seq`, thread)
	must.Do(t, err)
	defer rows.Close()
	for rows.Next() {
		var event pgagui.Event
		var payload string
		must.Do(t, rows.Scan(&event.Seq, &event.RunID, &event.Type, &event.RecordedAt, &payload))
		event.JSON = json.RawMessage(payload)
		events = append(events, event)
	}
	must.Do(t, rows.Err())
	return events
}

// sameEvents says how rows of a raw history differ from the events of the log.
func sameEvents(rows []pgagui.HistoryEvent, events []pgagui.Event) string {
	if len(rows) != len(events) {
		return fmt.Sprintf("%d rows of %d events", len(rows), len(events))
	}
	for i, row := range rows {
		if problem := isEvent(row, events[i]); problem != "" {
			return problem
		}
	}
	return ""
}

func isEvent(row pgagui.HistoryEvent, event pgagui.Event) string {
	if row.Seq != event.Seq || row.LastSeq != event.Seq || row.RunID != event.RunID || row.Type != event.Type || row.Count != 1 ||
		!row.CreatedAt.Equal(event.RecordedAt) || !row.CompletedAt.IsZero() || !bytes.Equal(row.JSON, event.JSON) {
		return fmt.Sprintf("the row is\n%+v %s\nthe event\n%+v %s", row, row.JSON, event, event.JSON)
	}
	return ""
}

// joinedText is what a row of several events should hold.
type joinedText struct {
	row     pgagui.HistoryEvent
	text    []byte // JSON, a string
	members []pgagui.Event
}

// whatRowsMiss says in what rows of a joined history are not these events, each in one row: a single one is the event itself, of
// several the text is what theirs is together.
func whatRowsMiss(rows []pgagui.HistoryEvent, events []pgagui.Event, options pgagui.HistoryOptions) string {
	left := map[int64]pgagui.Event{}
	for _, event := range events {
		left[event.Seq] = event
	}
	var joined []*joinedText
	before := int64(0)
	for _, row := range rows {
		if row.Seq <= before {
			return fmt.Sprintf("a row of seq %d comes after one of seq %d", row.Seq, before)
		}
		before = row.Seq
		if row.Count > 1 {
			joined = append(joined, &joinedText{row: row})
			continue
		}
		if problem := isEvent(row, left[row.Seq]); problem != "" {
			return problem
		}
		delete(left, row.Seq)
	}
	for _, event := range events {
		if _, ok := left[event.Seq]; !ok {
			continue
		}
		var holders []*joinedText
		for _, candidate := range joined {
			if candidate.holds(event) {
				holders = append(holders, candidate)
			}
		}
		if len(holders) != 1 {
			return fmt.Sprintf("event %d is in %d rows: %s", event.Seq, len(holders), event.JSON)
		}
		holders[0].members = append(holders[0].members, event)
		holders[0].text = joinStrings(holders[0].text, pieceOf(event.JSON))
	}
	for _, each := range joined {
		row, first, last := each.row, each.members[0], each.members[len(each.members)-1]
		switch {
		case row.Count != int64(len(each.members)) || row.Seq != first.Seq || row.LastSeq != last.Seq ||
			!row.CreatedAt.Equal(first.RecordedAt) || !row.CompletedAt.Equal(last.RecordedAt):
			return fmt.Sprintf("the row %+v is of %d events, %+v to %+v", row, len(each.members), first, last)
		case !jsontree.Equal(pieceOf(row.JSON), each.text):
			return fmt.Sprintf("row %d holds %s, its events hold %s together", row.Seq, row.JSON, each.text)
		case options.MaxBytes > 0 && len(pieceOf(row.JSON))-2 > options.MaxBytes:
			return fmt.Sprintf("row %d holds more than %d bytes: %s", row.Seq, options.MaxBytes, row.JSON)
		}
		for i, event := range each.members[1:] {
			if pause := event.RecordedAt.Sub(each.members[i].RecordedAt); options.MaxIdle > 0 && pause > options.MaxIdle {
				return fmt.Sprintf("row %d holds event %d, which came %v after the one before", row.Seq, event.Seq, pause)
			}
		}
	}
	return ""
}

// holds reports whether the event can only be in this row, by its place and what it belongs to.
func (j *joinedText) holds(event pgagui.Event) bool {
	if event.Seq < j.row.Seq || event.Seq > j.row.LastSeq || event.RunID != j.row.RunID || event.Type != j.row.Type {
		return false
	}
	ofRow, ofEvent := members(j.row.JSON), members(event.JSON)
	name := "messageId"
	if strings.HasPrefix(event.Type, "TOOL_CALL_") {
		name = "toolCallId"
	}
	same := func(name string) bool {
		return ofRow[name] == nil && ofEvent[name] == nil || jsontree.Equal(ofRow[name], ofEvent[name])
	}
	return same("subagentRunId") && (same(name) || ofEvent[name] == nil && strings.HasSuffix(event.Type, "_CHUNK"))
}

// members are those of an event, as they are spelled; null counts as absent.
func members(event []byte) map[string][]byte {
	found := maps.Collect(compaction.Members(event))
	maps.DeleteFunc(found, func(_ string, value []byte) bool { return string(value) == "null" })
	return found
}

// pieceOf is the string that an event brings.
func pieceOf(event []byte) []byte {
	found := members(event)
	if piece, ok := found["delta"]; ok {
		return piece
	}
	return found["content"]
}

// joinStrings joins two strings of JSON text; the first may be empty.
func joinStrings(text, more []byte) []byte {
	if len(text) == 0 {
		return more
	}
	return slices.Concat(text[:len(text)-1], more[1:])
}

// whatRowsMean says of which run the rows do not mean what its events mean, after its ancestors.
func (l generatedLog) whatRowsMean(t *testing.T, rows []pgagui.HistoryEvent) string {
	t.Helper()
	inRows, inLog := map[int]*compaction.Fold{}, map[int]*compaction.Fold{}
	for run := range l.parents {
		inRows[run], inLog[run] = compaction.New(), compaction.New()
		if parent := l.parent(run); parent >= 0 {
			inRows[run], inLog[run] = inRows[parent].Clone(), inLog[parent].Clone()
			must.Do(t, errors.Join(inRows[run].EndRun(), inLog[run].EndRun()))
		}
		for _, row := range rows {
			if row.RunID == fmt.Sprint("run-", run) {
				inRows[run].Locate(row.RunID, row.Seq)
				inRows[run].Apply(row.JSON)
			}
		}
		for i, placed := range l.events {
			if placed.run == run {
				inLog[run].Locate(fmt.Sprint("run-", run), int64(i+1))
				inLog[run].Apply(placed.event)
			}
		}
		if difference := differences(meaningOf(t, inRows[run]), meaningOf(t, inLog[run])); difference != "" {
			return fmt.Sprintf("run %d means something else: %s", run, difference)
		}
	}
	return ""
}
