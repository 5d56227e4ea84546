package test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// forkedThread appends a thread with two branches: r2 and r3 both go on from r1, each of three events. r3 is the head.
func forkedThread(t *testing.T, store *pgagui.Store) {
	t.Helper()
	for _, r := range [][2]string{{"r1", ""}, {"r2", "r1"}, {"r3", "r1"}} {
		mustAppend(t, store, "t", r[0], []json.RawMessage{
			fmt.Appendf(nil, `{"type":"RUN_STARTED","runId":%q,"parentRunId":%q}`, r[0], r[1]),
			fmt.Appendf(nil, `{"type":"TEXT_MESSAGE_CHUNK","messageId":%q,"role":"assistant","delta":"x"}`, r[0]),
			json.RawMessage(`{"type":"RUN_FINISHED"}`),
		})
	}
}

// integers are the rows of a query with one column.
func integers(t *testing.T, pool *pgxpool.Pool, query string, arguments ...any) string {
	t.Helper()
	found := testdb.Ask[string](t, pool, `select coalesce(array_agg(n)::text, '{}') from (`+query+`) as row (n)`, arguments...)
	return found
}

// What is read at a run is its lineage. Where the run alone is meant, there is lineage => false.
func TestEventsOfARunAreThoseOfItsLineage(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	forkedThread(t, store)
	for _, test := range []struct {
		arguments string
		want      string // also of history, where it differs
		history   string
		options   pgagui.EventsOptions
	}{
		{"", "{1,2,3,7,8,9}", "{1,2,3,4,5,6,7,8,9}", pgagui.EventsOptions{}},
		{", 'r2'", "{1,2,3,4,5,6}", "", pgagui.EventsOptions{RunID: "r2"}},
		{", 'r3'", "{1,2,3,7,8,9}", "", pgagui.EventsOptions{RunID: "r3"}},
		{", 'r3', after_seq => 2", "{3,7,8,9}", "", pgagui.EventsOptions{RunID: "r3", AfterSeq: 2}},
		{", 'r3', after_seq => 5", "{7,8,9}", "", pgagui.EventsOptions{RunID: "r3", AfterSeq: 5}},
		{", 'r2', lineage => false", "{4,5,6}", "", pgagui.EventsOptions{RunID: "r2", NoLineage: true}},
		{", 'r2', lineage => false, after_seq => 4", "{5,6}", "", pgagui.EventsOptions{RunID: "r2", NoLineage: true, AfterSeq: 4}},
		{", lineage => false", "{7,8,9}", "", pgagui.EventsOptions{NoLineage: true}},
		{", lineage => null, run_id => 'r2'", "{1,2,3,4,5,6}", "", pgagui.EventsOptions{RunID: "r2"}},
	} {
		if got := integers(t, pool, `select seq from agui.events('t'`+test.arguments+`)`); got != test.want {
			t.Errorf("agui.events('t'%s): %s, want %s", test.arguments, got, test.want)
		}
		want := test.want
		if test.history != "" {
			want = test.history
		}
		if got := integers(t, pool, `select seq from agui.history('t'`+test.arguments+`)`); got != want {
			t.Errorf("agui.history('t'%s): %s, want %s", test.arguments, got, want)
		}
		var seqs []int64
		for event, err := range store.Events(t.Context(), "t", test.options) {
			must.Do(t, err)
			seqs = append(seqs, event.Seq)
		}
		if got := integers(t, pool, `select unnest($1::bigint[])`, seqs); got != test.want {
			t.Errorf("Events %+v: %s, want %s", test.options, got, test.want)
		}
		page, err := store.History(t.Context(), "t", pgagui.HistoryOptions{
			RunID: test.options.RunID, NoLineage: test.options.NoLineage, AfterSeq: test.options.AfterSeq,
		})
		must.Do(t, err)
		seqs = nil
		for _, event := range page.Events {
			seqs = append(seqs, event.Seq)
		}
		if got := integers(t, pool, `select unnest($1::bigint[])`, seqs); got != want {
			t.Errorf("History %+v: %s, want %s", test.options, got, want)
		}
	}
}

func TestChildrenWithoutARunAreTheRoots(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	forkedThread(t, pgagui.New(pool, nil))
	testdb.Exec(t, pool, `
		insert into agui.run (thread_key, run_no, run_id, status, first_seq, started_at)
		values (agui.thread_key('', 't'), 4, 'second', 'running', 10, now())`)
	for arguments, want := range map[string]string{
		"'t'":                    "{r1,second}",
		"'t', null":              "{r1,second}",
		"'t', 'r1'":              "{r2,r3}",
		"'t', 'r2'":              "{}",
		"'t', run_id => 'r1'":    "{r2,r3}",
		"'t', 'r3', scope => ''": "{}",
	} {
		got := testdb.Ask[string](t, pool, `select coalesce(array_agg(run_id)::text, '{}') from agui.children(`+arguments+`)`)
		if got != want {
			t.Errorf("agui.children(%s): %s, want %s", arguments, got, want)
		}
	}
}

// A seq may be any number, also one that no log has.
func TestSeqsAtTheirBounds(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	forkedThread(t, store)
	mustAppend(t, store, "t", "r3b", []json.RawMessage{json.RawMessage(
		`{"type":"RUN_STARTED","input":{"messages":[{"id":"u","role":"user","content":"?"}]}}`), json.RawMessage(
		`{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"n"}`)})
	bounds := map[string]int64{"null": 0, "-1": -1, "0": 0, "(-9223372036854775808)": math.MinInt64, "9223372036854775806": math.MaxInt64 - 1, "9223372036854775807": math.MaxInt64}
	all := map[string]string{
		`select count(*)::int from agui.events('t', after_seq => %s)`:                         "8",
		`select count(*)::int from agui.events('t', 'r3', after_seq => %s, lineage => false)`: "3",
		`select count(*)::int from agui.history('t', after_seq => %s)`:                        "11",
		`select sum(n)::int from agui.poll('{t}', array[%s]::bigint[])`:                       "11",
		`select count(*)::int from agui.tool_calls('t', after_seq => %s)`:                     "1",
		`select count(*)::int from agui.session_messages('t', after_seq => %s)`:               "4",
	}
	for query, whole := range all {
		for bound, seq := range bounds {
			want := "{" + whole + "}"
			if seq > 100 {
				want = "{0}"
				if query[:10] == "select sum" {
					want = "{NULL}"
				}
			}
			if got := integers(t, pool, fmt.Sprintf(query, bound)); got != want {
				t.Errorf(query+": %s, want %s", bound, got, want)
			}
		}
	}
	at := map[string]string{
		`select count(*)::int from agui.messages('t', at_seq => %s)`:              "4",
		`select json_array_length(agui.restore('t', at_seq => %s) -> 'messages')`: "4",
		`select count(agui.state('t', at_seq => %s))::int - 1`:                    "0",
		`select count(*)::int from agui.interrupts('t', at_seq => %s)`:            "0",
		`select count(*)::int from agui.tool_calls('t', at_seq => %s)`:            "1",
		`select count(*)::int from agui.session_messages('t', at_seq => %s)`:      "4",
		`select count(*)::int from agui.activities('t', at_seq => %s)`:            "0",
		`select (agui.restore('t', at_seq => %s) ->> 'seq')::int`:                 "11",
	}
	for query, whole := range at {
		for bound, seq := range bounds {
			want := "{" + whole + "}"
			if seq <= 0 && bound != "null" {
				want = "{0}"
			}
			if got := integers(t, pool, fmt.Sprintf(query, bound)); got != want {
				t.Errorf(query+": %s, want %s", bound, got, want)
			}
		}
	}
	for _, seq := range []int64{math.MinInt64, -1, math.MaxInt64 - 1, math.MaxInt64} {
		count := 0
		for _, err := range store.Events(t.Context(), "t", pgagui.EventsOptions{AfterSeq: seq}) {
			must.Do(t, err)
			count++
		}
		if want := map[bool]int{true: 8, false: 0}[seq < 0]; count != want {
			t.Errorf("Events behind %d: %d, want %d", seq, count, want)
		}
	}
}
