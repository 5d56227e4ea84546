package test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/recorded"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testfile"
)

// goldenCase is a stream and what it means. The files are in golden, whose README.md says what the fields are; the official client
// wrote what is wanted, so that these tests need no Node.
type goldenCase struct {
	Name, Rule, Judge, Reason string
	// Run is the run whose meaning is wanted where the events are those of several runs.
	Run string
	// Exact says that the spelling of numbers matters, and each code unit of a string.
	Exact  bool
	Events []json.RawMessage
	Want   *meaning
}

func goldenCases(t *testing.T) (cases []goldenCase) {
	t.Helper()
	files, err := filepath.Glob("golden/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden cases: %v", err)
	}
	for _, file := range files {
		text := testfile.Read(t, file)
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		var inFile []goldenCase
		if err := decoder.Decode(&inFile); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, c := range inFile {
			if c.Want == nil {
				t.Fatalf("%s: %s: nothing is wanted: make oracle-update writes it", file, c.Name)
			}
			c.Name = strings.TrimSuffix(filepath.Base(file), ".json") + ": " + c.Name
			cases = append(cases, c)
		}
	}
	return cases
}

// Both reducers make of each golden case what its judge does: of the whole, going on from a snapshot at any event, and, SQL against Go,
// of what there was at any seq.
func TestGoldenCases(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	for i, c := range goldenCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			lineage := c.lineage(t)
			for stop := range len(lineage) + 1 {
				if difference := c.differences(foldWithStop(t, lineage, stop), *c.Want); difference != "" {
					t.Errorf("Go, resumed after %d events: %s", stop, difference)
				}
			}

			if c.Run != "" {
				if difference := c.differences(c.foldBranches(t), *c.Want); difference != "" {
					t.Errorf("Go, in branches: %s", difference)
				}
			}

			thread := c.store(t, pool, i)
			wants := []meaning{*c.Want}
			seqs := []*int64{nil}
			prefix := compaction.New()
			for _, event := range lineage {
				prefix.Apply(event.payload)
				wants = append(wants, meaningOf(t, prefix))
				seqs = append(seqs, &event.seq)
			}
			for j, restored := range meanings(t, pool, restoreAtSeqs, thread, c.Run, seqs) {
				if difference := c.differences(restored, wants[j]); difference != "" {
					t.Errorf("SQL, as of event %d of %d (0: the end): %s", j, len(lineage), difference)
				}
			}
			for j, resumed := range meanings(t, pool, foldWithStops, thread, c.Run) {
				if difference := c.differences(resumed, *c.Want); difference != "" {
					t.Errorf("SQL, resumed after %d events: %s", j+1, difference)
				}
			}
		})
	}
}

const (
	// restoreAtSeqs restores thread $1 at run $2 (empty: the head) as of each of the seqs $3 (null: the end).
	restoreAtSeqs = `
		select agui.restore($1, nullif($2, ''), at.seq)
		from unnest($3::bigint[]) with ordinality as at (seq, position)
		order by at.position`

	// foldWithStops folds the lineage of run $2 of thread $1 (empty: the head) going on from what it meant at each of its seqs.
	foldWithStops = `
		with lineage as (
			select agui.thread_key('', $1) as thread_key, * from agui.lineage($1, nullif($2, ''))
		),
		head as (
			select * from lineage order by depth desc limit 1
		)
		select
			format(
				'{"messages":[%s],"state":%s,"interrupts":%s}',
				array_to_string(whole.bodies, ','), whole.state, whole.interrupts
			)::json
		from head
		cross join generate_series(1, head.last_seq - 1) as stop (seq)
		cross join lateral (
			select
				array_agg(run_no order by depth) as run_nos,
				array_agg(greatest(first_seq - 1, stop.seq) order by depth) as after_seqs,
				array_agg(last_seq order by depth) as through_seqs
			from lineage
			where last_seq > stop.seq
		) as rest
		cross join lateral agui_internal.fold_patched(
			agui_internal.fold_events(
				agui_internal.fold_run(head.thread_key, head.run_no, stop.seq), head.thread_key, rest.run_nos, rest.after_seqs, rest.through_seqs
			)
		) as whole
		order by stop.seq`
)

// meanings runs a query that gives documents with messages, state and interrupts.
func meanings(t *testing.T, pool *pgxpool.Pool, query string, arguments ...any) []meaning {
	t.Helper()
	rows := must.Have(pool.Query(context.Background(), query, arguments...))(t)
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (folded meaning, err error) {
		var document json.RawMessage
		if err := row.Scan(&document); err != nil {
			return meaning{}, err
		}
		return folded, json.Unmarshal(document, &folded)
	})
	must.Do(t, err)
	return found
}

// differences compares what a reducer makes of the case.
func (c goldenCase) differences(got, want meaning) string {
	if c.Exact {
		got, want = got.spelledOut(), want.spelledOut()
	}
	return differences(got, want)
}

// spelledOut gives the same with every number as a string, and strings written so that no two different ones are decoded to the same:
// two lone surrogates, for instance.
func (m meaning) spelledOut() meaning {
	all := func(values []json.RawMessage) (spelled []json.RawMessage) {
		for _, value := range values {
			spelled = append(spelled, spelledOut(value))
		}
		return spelled
	}
	return meaning{Messages: all(m.Messages), State: spelledOut(m.State), Interrupts: all(m.Interrupts)}
}

var (
	jsonStringOrNumber = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|-?[0-9][-+.eE0-9]*`)
	jsonCharacter      = regexp.MustCompile(`\\u[0-9a-fA-F]{4}|\\.|[^\x20-\x7e]`)
)

func spelledOut(value json.RawMessage) json.RawMessage {
	return jsonStringOrNumber.ReplaceAllFunc(value, func(token []byte) []byte {
		if token[0] != '"' {
			return fmt.Appendf(nil, `"number %s"`, token)
		}
		return jsonCharacter.ReplaceAllFunc(token, func(character []byte) []byte {
			var units []uint16
			if code, found := bytes.CutPrefix(character, []byte(`\u`)); found {
				unit, _ := strconv.ParseUint(string(code), 16, 16)
				units = []uint16{uint16(unit)}
			} else {
				var decoded string
				if err := json.Unmarshal(slices.Concat([]byte(`"`), character, []byte(`"`)), &decoded); err != nil {
					return character
				}
				units = utf16.Encode([]rune(decoded))
			}
			var spelled []byte
			for _, unit := range units {
				if ' ' <= unit && unit <= '~' && unit != '"' && unit != '\\' {
					spelled = append(spelled, byte(unit))
				} else {
					spelled = fmt.Appendf(spelled, `\\u%04x`, unit)
				}
			}
			return spelled
		})
	})
}

type loggedEvent struct {
	seq     int64
	payload json.RawMessage
}

// lineage returns the events that count: all of them, or those of the case's run and its ancestors.
func (c goldenCase) lineage(t *testing.T) (events []loggedEvent) {
	t.Helper()
	if c.Run == "" {
		for i, event := range c.Events {
			events = append(events, loggedEvent{int64(i) + 1, event})
		}
		return events
	}
	lineages := map[string][]loggedEvent{}
	seq := int64(0)
	for _, run := range c.runs(t) {
		lineages[run.RunID] = slices.Clone(lineages[run.ParentRunID])
		for _, event := range run.Events {
			seq++
			lineages[run.RunID] = append(lineages[run.RunID], loggedEvent{seq, event})
		}
	}
	return lineages[c.Run]
}

// runs splits the events at every RUN_STARTED. A run that names no parent follows the one before it.
func (c goldenCase) runs(t *testing.T) []recorded.Run {
	t.Helper()
	runs := recorded.Split(t, c.Events)
	for i := 1; i < len(runs); i++ {
		runs[i].ParentRunID = cmp.Or(runs[i].ParentRunID, runs[i-1].RunID)
	}
	return runs
}

// foldBranches folds all runs, each from a clone of its parent's fold, and returns what the case's run means in the end.
func (c goldenCase) foldBranches(t *testing.T) meaning {
	t.Helper()
	folds := map[string]*compaction.Fold{"": compaction.New()}
	for _, run := range c.runs(t) {
		fold := folds[run.ParentRunID].Clone()
		must.Do(t, fold.EndRun())
		for _, event := range run.Events {
			fold.Apply(event)
		}
		folds[run.RunID] = fold
	}
	return meaningOf(t, folds[c.Run])
}

// store puts the events into the log and returns their thread. The number makes it a thread of its own.
func (c goldenCase) store(t *testing.T, pool *pgxpool.Pool, number int) (threadID string) {
	t.Helper()
	if c.Run == "" {
		(&reducers{pool: pool, threads: number}).foldInSQL(t, [][]json.RawMessage{c.Events})
		return fmt.Sprint("stream-", number+1)
	}
	threadID = fmt.Sprint("runs-", number)
	for _, run := range c.runs(t) {
		must.Have(pgagui.New(pool, nil).Append(context.Background(), pgagui.RunRef{ThreadID: threadID, RunID: run.RunID}, run.Events, pgagui.AppendOptions{}))(t)
	}
	return threadID
}

// foldWithStop folds events, going on from a snapshot after so many of them.
func foldWithStop(t *testing.T, events []loggedEvent, stop int) meaning {
	t.Helper()
	fold := compaction.New()
	for _, event := range events[:stop] {
		fold.Locate("r", event.seq)
		fold.Apply(event.payload)
	}
	fold = must.Have(compaction.Resume(fold.Snapshot()))(t)
	for _, event := range events[stop:] {
		fold.Locate("r", event.seq)
		fold.Apply(event.payload)
	}
	return meaningOf(t, fold)
}
