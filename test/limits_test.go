package test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/compaction/compactiontest"
	"github.com/pgagui/pgagui/internal/jsontree"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/jobs"
)

// setLimits gives a database the limits.
func setLimits(t *testing.T, pool *pgxpool.Pool, limits compaction.Limits) {
	t.Helper()
	for name, value := range map[string]int64{
		"document_bytes":      limits.DocumentBytes,
		"document_depth":      int64(limits.DocumentDepth),
		"patch_operations":    int64(limits.PatchOperations),
		"patch_copied_bytes":  limits.PatchCopiedBytes,
		"patch_shifted_items": limits.PatchShiftedItems,
		"fold_bytes":          limits.FoldBytes,
		"fold_messages":       int64(limits.FoldMessages),
		"fold_lanes":          int64(limits.FoldLanes),
		"fold_fuel":           limits.FoldFuel,
	} {
		testdb.Exec(t, pool, `select agui.set_setting($1, $2)`, name, fmt.Sprint(value))
	}
}

func TestLimitsAreTheSameInSQLAndGo(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	defaults := compaction.DefaultLimits()
	want := map[string]int64{
		"document_bytes":      defaults.DocumentBytes,
		"document_depth":      int64(defaults.DocumentDepth),
		"patch_operations":    int64(defaults.PatchOperations),
		"patch_copied_bytes":  defaults.PatchCopiedBytes,
		"patch_shifted_items": defaults.PatchShiftedItems,
		"fold_bytes":          defaults.FoldBytes,
		"fold_messages":       int64(defaults.FoldMessages),
		"fold_lanes":          int64(defaults.FoldLanes),
		"fold_fuel":           defaults.FoldFuel,
	}
	for where, query := range map[string]string{
		"the defaults":      `select name, default_value::bigint from agui_internal.known_settings() where name like any ('{document\_%,patch\_%,fold\_%}')`,
		"the fold's limits": `select key, value::bigint from pg_catalog.jsonb_each_text(pg_catalog.to_jsonb(agui_internal.limits_of_folds(agui_internal.rules())))`,
	} {
		rows := must.Have(pool.Query(context.Background(), query))(t)
		got := map[string]int64{}
		var name string
		var value int64
		must.Have(pgx.ForEachRow(rows, []any{&name, &value}, func() error { got[name] = value; return nil }))(t)
		if !maps.Equal(got, want) {
			t.Errorf("%s are %v in SQL and %v in Go", where, got, want)
		}
	}
}

func TestSizesAreTheSameInSQLAndGo(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	values := []string{
		`0`, `-0`, `-0.0`, `0.00e1`, `0e5`, `1e2`, `1.5E1`, `1.50e1`, `1.0e-2`, `-12.5e-3`, `0.05e1`, `0.05e3`, `123e-2`, `9e99`, `-9e-99`, `1e005`,
		`1e400`, `-1e-400`, `0e999`, strings.Repeat("7", 249), strings.Repeat("7", 250), `0.` + strings.Repeat("7", 249), `-0.` + strings.Repeat("7", 250) + `e1`,
		`"\u0000\\\/\b\f\n\r\t\"\u001f\u007f\u0041\u00e9\u20ac\u005c\u0022\u0008\u000b"`, `"\ud83d\ude00\ud83d \ude00\ud83dx"`, `"😀é"`,
		`{"a":1,"a":[1,2],"\u0061":"x"}`, `{"[{,":",[{\",[\\","\\":"\\\"{","":[[],{}]}`, `{"\\":1,"\u005c":22,"\u0000":{"x":[],"x":{}}}`, `[[],{},[1,[2,"3"]],null,true,false]`,
	}
	many := make([]string, 40)
	for i := range many {
		many[i] = fmt.Sprintf(`"k%d":%d`, i%30, i)
	}
	values = append(values, "{"+strings.Join(many, ",")+"}", `{"bb":1,"a":{},"b":{"z":[],"y" : [1 ,2]},"a":" x\n\"é","":0.50,"ü":-12.5,"ab":[ ]}`)
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		digits := func(n int) string {
			text := fmt.Sprint(random.IntN(10))
			for range random.IntN(n) {
				text += string("0012"[random.IntN(4)])
			}
			return text
		}
		values = append(values, fmt.Sprintf("%s%d.%se%d", []string{"", "-"}[random.IntN(2)], random.IntN(20)*random.IntN(200), digits(8), random.IntN(199)-99))
	}
	for seed := range uint64(20) {
		for _, event := range compactiontest.Stream(seed, compactiontest.Options{Wild: true, Unicode: true, Numbers: true, Events: 20}) {
			values = append(values, string(event))
		}
	}
	rows, err := pool.Query(context.Background(), `
		select agui_internal.json_size(agui_internal.json_to_jsonb('{"v":' || value || '}')::text), agui_internal.json_from_jsonb(agui_internal.json_to_jsonb(value))
		from unnest($1::text[]) with ordinality as given (value, position)
		order by position`, values)
	must.Do(t, err)
	defer rows.Close()
	printedInGo := 0
	for _, value := range values {
		var size int64
		var inSQL string
		if !rows.Next() {
			t.Fatal(rows.Err())
		}
		must.Do(t, rows.Scan(&size, &inSQL))
		if printed, ok := jsontree.PrintJSONB([]byte(value)); ok {
			printedInGo++
			if string(printed) != inSQL {
				t.Errorf("%s is printed as %s in Go, as %s in SQL", value, printed, inSQL)
			}
		}
		for _, limit := range []int64{size - 1, size} {
			limits := compaction.DefaultLimits()
			limits.DocumentBytes = limit
			fold := compaction.New()
			fold.SetLimits(limits)
			fold.Apply([]byte(`{"type":"STATE_DELTA","delta":[{"op":"add","path":"/v","value":` + value + `}]}`))
			if fits := string(fold.State()) != "{}"; fits != (limit == size) {
				t.Errorf("{\"v\":%s} takes %d octets in SQL; under a limit of %d, the patch succeeds in Go: %t", value, size, limit, fits)
				break
			}
		}
	}
	if printedInGo < 100 {
		t.Errorf("Go prints only %d of %d values", printedInGo, len(values))
	}
}

func TestDepth(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	for _, test := range []struct {
		document string
		depth    int
	}{
		{`1`, 0}, {`"[[{"`, 0}, {`[]`, 1}, {`{"a\\":"[","\"]":[]}`, 2}, {`[[],{},[1,[2,"3"]],null]`, 3},
		{strings.Repeat("[", 8) + strings.Repeat("]", 8), 8},
		{strings.Repeat("[", 9) + strings.Repeat("]", 9), 9},
		{strings.Repeat(`[[1,{}],{"a":`, 500) + `"x"` + strings.Repeat("}]", 500), 1001},
		{`[` + strings.Repeat(`[[[[[[[[[[]]]]]]]]]],`, 1000) + strings.Repeat("[", 30) + strings.Repeat("]", 30) + `]`, 31},
		// Parts of a large document, which are cut in strings, in escapes and at any depth.
		{`["` + strings.Repeat(`\\\\\"[{é`, 60_000) + `",` + strings.Repeat(`[[["[",{"a\\\"]":[]}]]],`, 40_000) + `{}]`, 6},
		{`[` + strings.Repeat(`{},`, 100_000) + strings.Repeat("[", 300) + `"` + strings.Repeat(`\\`, 300_000) + `",` + strings.Repeat("[", 400) + strings.Repeat("]", 701), 701},
		// To take one level away at a time would be 500 times as long here.
		{`[` + strings.Repeat(strings.Repeat("[", 500)+strings.Repeat("]", 500)+",", 2000) + `1]`, 501},
	} {
		var depth int
		var tooDeep, deepEnough bool
		if err := pool.QueryRow(context.Background(), `
			select agui_internal.json_depth($1), agui_internal.json_too_deep($1::json, $2 - 1), not agui_internal.json_too_deep($1::json, $2)`,
			test.document, test.depth).Scan(&depth, &tooDeep, &deepEnough); err != nil {
			t.Fatal(err)
		}
		if depth != test.depth || !deepEnough || test.depth > 0 && !tooDeep {
			t.Errorf("%.60s: depth %d, want %d; too deep %t, deep enough %t", test.document, depth, test.depth, tooDeep, deepEnough)
		}
	}
}

// Streams mean the same in SQL and in Go where limits are so low that patches reach them.
func TestLowLimitsAgree(t *testing.T) {
	t.Parallel()
	all := compaction.DefaultLimits()
	for _, kind := range []struct {
		name   string
		apart  bool
		change func(*compaction.Limits)
	}{
		{"small documents", false, func(l *compaction.Limits) { l.DocumentBytes = 1500 }},
		{"small documents, taken apart", true, func(l *compaction.Limits) { l.DocumentBytes = 1500 }},
		{"tiny documents, taken apart", true, func(l *compaction.Limits) { l.DocumentBytes = 60 }},
		{"flat documents", true, func(l *compaction.Limits) { l.DocumentDepth = 4 }},
		{"few operations", false, func(l *compaction.Limits) { l.PatchOperations = 2 }},
		{"few copies", true, func(l *compaction.Limits) { l.PatchCopiedBytes = 30 }},
		{"few shifts", false, func(l *compaction.Limits) { l.PatchShiftedItems = 0 }},
		{"few shifts, taken apart", true, func(l *compaction.Limits) { l.PatchShiftedItems = 0 }},
	} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			limits := all
			kind.change(&limits)
			judges := reducers{pool: testdb.Pool(t), limits: &limits}
			setLimits(t, judges.pool, limits)
			if kind.apart {
				takeAllApart(t, judges.pool)
			}
			streams := streamsThatReach(t, limits, max(4, streamsOfAKind(6)), func(seed uint64) [][]json.RawMessage {
				odd := seed%2 == 0
				return [][]json.RawMessage{
					compactiontest.PatchStream(seed, compactiontest.Options{Events: 150, Unicode: odd, Numbers: odd}),
					compactiontest.Stream(seed, compactiontest.Options{Events: 150, Wild: true, Proposals: true, Unicode: odd}),
				}
			})
			for i, difference := range judges.differences(t, streams) {
				if difference == "" {
					continue
				}
				shrunk := shrink(streams[i], func(stream []json.RawMessage) bool {
					return judges.differences(t, [][]json.RawMessage{stream})[0] != ""
				})
				t.Fatalf("stream %d: %s\nshrunk to %d events:\n%s", i,
					judges.differences(t, [][]json.RawMessage{shrunk})[0], len(shrunk), bytes.Join(rawBytes(shrunk), []byte("\n")))
			}
		})
	}
}

// streamsThatReach generates some streams as they come, and as many that mean something else within the limits.
func streamsThatReach(t *testing.T, limits compaction.Limits, wanted int, generate func(seed uint64) [][]json.RawMessage) (streams [][]json.RawMessage) {
	t.Helper()
	hits := 0
	for seed := *firstSeed; hits < wanted; seed++ {
		if seed == *firstSeed+1000 {
			t.Fatalf("only %d streams of 1,000 seeds reach the limits", hits)
		}
		for _, stream := range generate(seed) {
			reaches := differences(foldWithin(t, stream, &limits), foldInGo(t, stream)) != ""
			if reaches {
				hits++
			}
			if reaches || len(streams) < wanted {
				streams = append(streams, stream)
			}
		}
	}
	return streams
}

// Folds end at the same events in SQL and in Go where limits are so low that they are reached.
func TestFoldsEndAtTheSameEvents(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, kind := range []struct {
		name   string
		change func(*compaction.Limits)
	}{
		{"fold_bytes", func(l *compaction.Limits) { l.FoldBytes, l.DocumentBytes = 4000, 300 }},
		{"fold_bytes, often looked at", func(l *compaction.Limits) { l.FoldBytes, l.DocumentBytes = 1200, 40 }},
		{"fold_messages", func(l *compaction.Limits) { l.FoldMessages = 5 }},
		{"fold_lanes", func(l *compaction.Limits) { l.FoldLanes = 1 }},
		{"fold_fuel", func(l *compaction.Limits) { l.FoldFuel = 8000 }},
		{"fold_fuel with looks", func(l *compaction.Limits) { l.FoldFuel, l.FoldBytes, l.DocumentBytes = 30_000, 5000, 500 }},
	} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			limits := compaction.DefaultLimits()
			kind.change(&limits)
			judges := reducers{pool: testdb.Pool(t), limits: &limits}
			testdb.Exec(t, judges.pool, `
				create function limit_of(thread text, n int) returns text language plpgsql as $$
				begin
					perform agui.restore(thread, at_seq => n);
					return '';
				exception when sqlstate 'UI023' then
					return substring(sqlerrm from 'fold_[a-z]*');
				end $$`)
			inGo := func(stream []json.RawMessage) string {
				fold := compaction.New()
				fold.SetLimits(limits)
				for _, event := range stream {
					fold.Apply(event)
				}
				var limit *compaction.LimitError
				if errors.As(fold.EndRun(), &limit) {
					return limit.Setting
				}
				return ""
			}
			// looks returns the events where a stream goes over a limit or comes back, and some between.
			looks := func(stream []json.RawMessage) (ends []int, limits []string) {
				before := ""
				for n := 1; n <= len(stream); n++ {
					limit := inGo(stream[:n])
					if limit != before || n == len(stream) || n%29 == 0 {
						ends, limits = append(ends, n), append(limits, limit)
						before = limit
					}
				}
				return ends, limits
			}
			// As many streams as it takes to be on both sides of the limit often.
			var streams [][]json.RawMessage
			wanted := 2 * max(3, streamsOfAKind(10))
			over, within := 0, 0
			for seed := *firstSeed; len(streams) < wanted || over < 10 || within < 10; seed++ {
				if seed == *firstSeed+1000 {
					t.Fatalf("%d stretches of 2,000 streams are over the limit, %d are not", over, within)
				}
				odd := seed%2 == 0
				for _, stream := range [][]json.RawMessage{
					compactiontest.PatchStream(seed, compactiontest.Options{Events: 150, Unicode: odd, Numbers: odd}),
					compactiontest.Stream(seed, compactiontest.Options{Events: 150, Wild: true, Proposals: true, Unicode: odd}),
				} {
					streams = append(streams, stream)
					_, limits := looks(stream)
					for _, limit := range limits {
						if limit != "" {
							over++
						} else {
							within++
						}
					}
				}
			}
			judges.foldInSQL(t, streams)
			setLimits(t, judges.pool, limits)

			for i, stream := range streams {
				ends, _ := looks(stream)
				for _, n := range ends {
					for near := max(1, n-1); near <= min(len(stream), n+1); near++ {
						want, got := inGo(stream[:near]), ""
						must.Do(t, judges.pool.QueryRow(ctx, `select limit_of($1, $2)`, fmt.Sprint("stream-", i+1), near).Scan(&got))
						if got != want {
							t.Fatalf("stream %d through event %d ends at the limit %q in SQL, %q in Go: %s", i, near, got, want, stream[near-1])
						}
					}
				}
			}
		})
	}
}

// Patches that would take all memory or time fail whole, in both folds, and leave the state as it was; those next to them succeed.
func TestCostlyPatchesFail(t *testing.T) {
	t.Parallel()
	judges := reducers{pool: testdb.Pool(t)}
	snapshot := func(state string) string { return `{"type":"STATE_SNAPSHOT","snapshot":` + state + `}` }
	delta := func(operations ...string) string {
		return `{"type":"STATE_DELTA","delta":[` + strings.Join(operations, ",") + `]}`
	}
	times := func(n int, operation string) []string {
		operations := make([]string, n)
		for i := range operations {
			operations[i] = operation
		}
		return operations
	}
	zeros := func(n int) string { return "[" + strings.TrimSuffix(strings.Repeat("0,", n), ",") + "]" }
	nested := func(n int) string { return strings.Repeat(`{"a":`, n) + `0` + strings.Repeat(`}`, n) }
	texts := `["` + strings.Join(times(3, strings.Repeat("x", 1000)), `","`) + `"]`
	empty := "[" + strings.TrimSuffix(strings.Repeat("{},", 600_000), ",") + "]"
	copies := make([]string, 2000)
	for i := range copies {
		copies[i] = fmt.Sprintf(`{"op":"copy","from":"/s","path":"/c%d"}`, i)
	}
	for _, test := range []struct {
		name      string
		events    []string
		fails     bool
		allocates uint64 // MiB in Go at most
	}{
		{"an array copied into itself", []string{snapshot(texts), delta(times(25, `{"op":"copy","from":"","path":"/-"}`)...)}, true, 128},
		{"as often as fits", []string{snapshot(texts), delta(times(12, `{"op":"copy","from":"","path":"/-"}`)...)}, false, 128},
		{"inserts at the front", []string{snapshot(zeros(400_000)), delta(times(4000, `{"op":"add","path":"/0","value":1}`)...)}, true, 256},
		{"a few of them", []string{snapshot(zeros(400_000)), delta(times(20, `{"op":"add","path":"/0","value":1}`)...)}, false, 256},
		{"tiny copies beside a large array", []string{snapshot(`{"s":1,"large":` + zeros(200_000) + `}`), delta(copies...)}, false, 128},
		{"a patch of a large array of empty objects", []string{snapshot(empty), delta(`{"op":"add","path":"/-","value":1}`), delta(`{"op":"remove","path":"/0"}`)}, true, 64},
		{"a large array of empty objects gives way", []string{snapshot(empty), delta(`{"op":"add","path":"","value":{}}`, `{"op":"remove","path":"/a"}`),
			delta(`{"op":"add","path":"","value":[]}`), delta(`{"op":"add","path":"/-","value":1}`)}, false, 64},
		{"a patch that brings a large array of empty objects", []string{snapshot(`{}`), delta(`{"op":"add","path":"/a","value":`+empty+`}`, `{"op":"remove","path":"/a"}`,
			`{"op":"add","path":"/b","value":1}`)}, true, 64},
		{"patches 900 deep", []string{snapshot(nested(900)), delta(times(300, `{"op":"add","path":"`+strings.Repeat("/a", 899)+`/b","value":1}`)...)}, false, 256},
		{"patches deeper than the limit", []string{snapshot(nested(600)), delta(`{"op":"add","path":"` + strings.Repeat("/a", 599) + `/b","value":` + nested(401) + `}`)}, true, 64},
		{"depth that doubles by copying", []string{snapshot(nested(300)), delta(
			`{"op":"copy","from":"","path":"`+strings.Repeat("/a", 300)+`"}`, `{"op":"copy","from":"","path":"`+strings.Repeat("/a", 600)+`"}`)}, true, 64},
		{"too many operations", []string{snapshot(`{}`), delta(times(10_001, `{"op":"add","path":"/a","value":1}`)...)}, true, 64},
		{"copies that are taken away", []string{snapshot(`{"s":` + zeros(100_000) + `}`),
			delta(times(500, `{"op":"copy","from":"/s","path":"/t"},{"op":"remove","path":"/t"}`)...)}, true, 64},
	} {
		t.Run(test.name, func(t *testing.T) {
			stream := make([]json.RawMessage, len(test.events))
			for i, event := range test.events {
				stream[i] = json.RawMessage(event)
			}
			unpatched := compaction.New()
			unpatched.Apply(stream[0])
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			fold := compaction.New()
			for _, event := range stream {
				fold.Apply(event)
			}
			runtime.ReadMemStats(&after)
			inGo := fold.State()
			if failed := bytes.Equal(inGo, unpatched.State()); failed != test.fails {
				t.Errorf("Go: the patch fails: %t", failed)
			}
			if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; allocated > test.allocates {
				t.Errorf("Go allocates %d MiB, want %d at most", allocated, test.allocates)
			}
			inSQL := judges.foldInSQL(t, [][]json.RawMessage{stream})[0]
			if !jsontree.Equal(inSQL.State, inGo) {
				t.Errorf("SQL and Go differ: states of %d and %d bytes", len(inSQL.State), len(inGo))
			}
		})
	}
}

// Each of many activities stays what it was where copies of its members would make it too large.
func TestCopiesInManyActivities(t *testing.T) {
	t.Parallel()
	limits := compaction.DefaultLimits()
	limits.DocumentBytes = 64 << 10
	judges := reducers{pool: testdb.Pool(t), limits: &limits}
	setLimits(t, judges.pool, limits)
	var stream []json.RawMessage
	doublings := make([]string, 25)
	for i := range doublings {
		doublings[i] = fmt.Sprintf(`{"op":"copy","from":"","path":"/c%d"}`, i)
	}
	for number := range 40 {
		stream = append(stream,
			json.RawMessage(fmt.Sprintf(`{"type":"ACTIVITY_SNAPSHOT","messageId":"a%d","activityType":"x","content":{"s":%q}}`, number, strings.Repeat("x", 2000))),
			json.RawMessage(fmt.Sprintf(`{"type":"ACTIVITY_DELTA","messageId":"a%d","activityType":"x","patch":[%s]}`, number, strings.Join(doublings, ","))),
			json.RawMessage(fmt.Sprintf(`{"type":"ACTIVITY_DELTA","messageId":"a%d","activityType":"x","patch":[%s]}`, number, strings.Join(doublings[:4], ","))))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	inGo := foldWithin(t, stream, &limits)
	runtime.ReadMemStats(&after)
	if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; allocated > 128 {
		t.Errorf("Go allocates %d MiB", allocated)
	}
	for _, message := range inGo.Messages {
		if len(message) < 16*2000 || len(message) > 20*2000 { // doubled four times, by the second patch
			t.Errorf("an activity of %d bytes", len(message))
		}
	}
	if difference := judges.differences(t, [][]json.RawMessage{stream})[0]; difference != "" {
		t.Error(difference)
	}
}

// The jobs in Go fold within the limits of the database, as its functions do.
func TestJobsKeepTheLimits(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	limits := compaction.DefaultLimits()
	limits.DocumentBytes = 1500
	setLimits(t, pool, limits)
	streams := streamsThatReach(t, limits, 6, func(seed uint64) [][]json.RawMessage {
		return [][]json.RawMessage{slices.Concat(
			[]json.RawMessage{json.RawMessage(`{"type":"RUN_STARTED"}`)},
			compactiontest.PatchStream(seed, compactiontest.Options{Events: 100}),
			[]json.RawMessage{json.RawMessage(`{"type":"RUN_FINISHED"}`)},
		)}
	})
	restored := func(number int) (restored meaning) {
		t.Helper()
		document := testdb.Ask[json.RawMessage](t, pool, `select agui.restore($1)`, fmt.Sprint("t", number))
		must.Do(t, json.Unmarshal(document, &restored))
		return restored
	}
	for number, stream := range streams {
		mustAppend(t, store, fmt.Sprint("t", number), "r", stream)
	}
	agree := func(when string) {
		t.Helper()
		for number, stream := range streams {
			if difference := differences(restored(number), foldWithin(t, stream, &limits)); difference != "" {
				t.Errorf("thread %d, %s compaction: %s", number, when, difference)
			}
		}
	}
	agree("before")
	if done, err := jobs.Compact(ctx, pool, jobs.CompactOptions{}); err != nil || done.Runs != len(streams) {
		t.Fatalf("compacted %+v, error %v", done, err)
	}
	agree("after")
	for _, inSQL := range []bool{false, true} {
		if found, err := jobs.Verify(ctx, pool, jobs.VerifyOptions{InSQL: inSQL}); err != nil || found.Problems != 0 || found.Snapshots == 0 {
			t.Errorf("verify (in SQL: %t): %+v, error %v", inSQL, found, err)
		}
	}
}

// What a large event says of the life cycle of its run counts as that of a small one, also beside strings that PostgreSQL cannot read.
func TestLargeEventsBeginAndEndRuns(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	for name, filling := range map[string]string{
		"short": "x", "large": strings.Repeat("some words ", 200_000), "lone halves": strings.Repeat(`a\\u00e9\ud83d `, 200_000),
	} {
		for events, want := range map[string]string{
			`[{"type":"RUN_STARTED","runId":"r"},{"x":"%s","type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[]}}]`: "interrupted",
			`[{"type":"RUN_STARTED"},{"x":"%s","\u0074ype":"\u0052UN_ERROR","message":"m"}]`:                                       "failed",
			`[{"type":"RUN_STARTED"},{"x":"%s","type":"CUSTOM","a":{"type":"RUN_FINISHED"}}]`:                                      "running",
			`[{"x":"%s","type":"RUN_STARTED","runId":"other"}]`:                                                                    "UI009",
			`[{"type":"RUN_STARTED"},{"x":"%s","a":{"type":"CUSTOM"}}]`:                                                            "UI008",
			`[{"type":"RUN_STARTED"},{"x":"%s","type":7}]`:                                                                         "UI008",
			`[{"x":"%s","type":"CUSTOM","a":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}]`:                       "UI011",
			`[{"type":"RUN_STARTED"},{"x":"%s","type":"CUSTOM","a":` + strings.Repeat("[", 999) + strings.Repeat("]", 999) + `}]`:  "running",
		} {
			var found string
			tx := testdb.Begin(t, pool)
			if _, err := tx.Exec(t.Context(), `select agui.append('t', 'r', $1::json)`, strings.Replace(events, "%s", filling, 1)); err != nil {
				var refused *pgconn.PgError
				if !errors.As(err, &refused) {
					t.Fatal(err)
				}
				found = refused.Code
			} else if err := tx.QueryRow(t.Context(), `select status from agui.run`).Scan(&found); err != nil {
				t.Fatal(err)
			}
			tx.Rollback(context.Background())
			if found != want {
				t.Errorf("%s, %.90s: %s, want %s", name, events, found, want)
			}
		}
	}
}
