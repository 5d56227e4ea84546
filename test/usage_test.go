package test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// Usage of generated threads is what a slow program makes of the whole log: for a run, its lineage and the thread, in batches of any
// borders and after a repack.
func TestUsageOfGeneratedThreads(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	seeds := max(20, *streamCount/50)
	for n := range seeds {
		storeDelegations(t, store, *firstSeed+uint64(n))
	}
	withUsage := 0
	for _, when := range []string{"as appended", "repacked"} {
		for n := range seeds {
			thread := fmt.Sprint("seed-", *firstSeed+uint64(n))
			log := eventsOf(t, pool, thread)
			runs := must.Have(store.Runs(t.Context(), thread))(t)
			all := make([]string, len(runs))
			for i, run := range runs {
				all[i] = run.ID
			}
			check := func(options pgagui.UsageOptions, runIDs []string) {
				t.Helper()
				got := must.Have(store.Usage(t.Context(), thread, options))(t)
				withUsage += len(got.Models)
				want := slowUsage(t, log, runIDs)
				if got, want := shown(t, got), shown(t, want); got != want {
					t.Fatalf("%s, %s, %+v:\n%s\nwant\n%s\nof the log\n%s", thread, when, options, got, want, logText(log))
				}
			}
			check(pgagui.UsageOptions{WholeThread: true}, all)
			check(pgagui.UsageOptions{}, lineageOf(t, store, thread, ""))
			for _, run := range all {
				check(pgagui.UsageOptions{RunID: run}, lineageOf(t, store, thread, run))
				check(pgagui.UsageOptions{RunID: run, NoLineage: true}, []string{run})
			}
		}
		testdb.Exec(t, pool, `call agui.repack(older_than => '0')`)
	}
	if withUsage < seeds {
		t.Errorf("%d rows in all: the generator makes too little", withUsage)
	}
}

// Each end reports what its run used so far. Of several the last one that reports counts.
func TestTheLastEndOfARunCounts(t *testing.T) {
	t.Parallel()
	store := pgagui.New(testdb.Pool(t), nil)
	finished := func(tokens int) string {
		return fmt.Sprintf(`{"type":"RUN_FINISHED","usage":[{"model":"m","inputTokens":%d}]}`, tokens)
	}
	failed := func(tokens int) string {
		return fmt.Sprintf(`{"type":"RUN_ERROR","message":"x","usage":[{"model":"m","inputTokens":%d}]}`, tokens)
	}
	for name, c := range map[string]struct {
		calls [][]string // the appends of a run after its beginning
		want  int64      // -1: none
	}{
		"finished":                           {[][]string{{finished(1)}}, 1},
		"failed":                             {[][]string{{failed(2)}}, 2},
		"in progress":                        {[][]string{{`{"type":"CUSTOM","name":"x","value":0}`}}, -1},
		"an error with usage after it":       {[][]string{{finished(1)}, {failed(2)}}, 2},
		"an error without usage after it":    {[][]string{{finished(1)}, {`{"type":"RUN_ERROR","message":"x"}`}}, 1},
		"an error with one entry after it":   {[][]string{{finished(1)}, {`{"type":"RUN_ERROR","message":"x","usage":{"inputTokens":3}}`}}, 3},
		"an error with empty usage after it": {[][]string{{finished(1)}, {`{"type":"RUN_ERROR","message":"x","usage":[]}`}}, 1},
		"finished for each turn":             {[][]string{{finished(1), finished(3)}}, 3},
		"finished at last without usage":     {[][]string{{finished(1), `{"type":"RUN_FINISHED"}`}}, 1},
		"events after the end":               {[][]string{{finished(1), `{"type":"CUSTOM","name":"x","value":{"type":"RUN_FINISHED","usage":[]}}`}}, 1},
		"a type with escapes":                {[][]string{{`{"type":"RUN_FINISHE\u0044","us\u0061ge":[{"inputTokens":4}]}`}}, 4},
	} {
		mustAppend(t, store, name, "r", rawEvents(`{"type":"RUN_STARTED"}`))
		for _, events := range c.calls {
			mustAppend(t, store, name, "r", rawEvents(events...))
		}
		usage := must.Have(store.Usage(t.Context(), name, pgagui.UsageOptions{}))(t)
		got := int64(-1)
		if len(usage.Models) == 1 && usage.Models[0].InputTokens != nil {
			got = *usage.Models[0].InputTokens
		}
		if got != c.want || usage.Runs != 1 || (usage.RunsWithoutUsage == 1) != (c.want < 0) {
			t.Errorf("%s: %s, want %d tokens", name, shown(t, usage), c.want)
		}
	}
}

func TestUsageOfTheWholeThreadTakesNoRun(t *testing.T) {
	t.Parallel()
	store := pgagui.New(testdb.Pool(t), nil)
	mustAppend(t, store, "t", "r", run("r", nil))
	for _, options := range []pgagui.UsageOptions{{WholeThread: true, RunID: "r"}, {WholeThread: true, NoLineage: true}} {
		if _, err := store.Usage(t.Context(), "t", options); !errors.Is(err, pgagui.ErrInvalidArgument) {
			t.Errorf("%+v: %v", options, err)
		}
	}
	for thread, options := range map[string]pgagui.UsageOptions{"u": {}, "t": {RunID: "s"}} {
		if _, err := store.Usage(t.Context(), thread, options); !errors.Is(err, pgagui.ErrNotFound) {
			t.Errorf("%s, %+v: %v", thread, options, err)
		}
	}
}

// Many of the largest counts do not fail: the sum stays at what a bigint holds.
func TestUsageBeyondABigint(t *testing.T) {
	t.Parallel()
	store := pgagui.New(testdb.Pool(t), nil)
	entry := fmt.Sprintf(`{"inputTokens":%d,"outputTokens":%[1]d}`, 1<<53-1)
	mustAppend(t, store, "t", "r", rawEvents(`{"type":"RUN_STARTED"}`, `{"type":"RUN_FINISHED","usage":[`+strings.Repeat(entry+",", 1500)+entry+`]}`))
	usage := must.Have(store.Usage(t.Context(), "t", pgagui.UsageOptions{}))(t)
	if m := usage.Models[0]; *m.InputTokens != math.MaxInt64 || *m.OutputTokens != math.MaxInt64 || *m.TotalTokens != math.MaxInt64 {
		t.Error(shown(t, usage))
	}
}

// What the official client counts of an entry, and how it adds entries up, is what agui.usage does.
func TestUsageCountsAsTheOfficialClient(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(*firstSeed, 9))
	lists := [][]string{}
	for _, count := range oddCounts {
		lists = append(lists, []string{`{"provider":"p","model":"m","inputTokens":` + count + `,"outputTokens":1}`})
	}
	for range max(100, *streamCount/10) {
		var list []string
		for range random.IntN(5) {
			list = append(list, usageEntry(random))
		}
		lists = append(lists, list)
	}
	var question bytes.Buffer
	for _, list := range lists {
		fmt.Fprintf(&question, "[%s]\n", strings.Join(list, ","))
	}
	startOracle(t) // skips the test if there is none
	client := exec.Command("node", filepath.Join("oracle", "usage.mjs"))
	client.Stdin = &question
	answers := must.Have(client.Output())(t)
	store := pgagui.New(testdb.Pool(t), nil)
	lines := bufio.NewScanner(bytes.NewReader(answers))
	for i, list := range lists {
		lines.Scan()
		thread := fmt.Sprint(i)
		mustAppend(t, store, thread, "r", rawEvents(`{"type":"RUN_STARTED"}`, `{"type":"RUN_FINISHED","usage":[`+strings.Join(list, ",")+`]}`))
		usage := must.Have(store.Usage(t.Context(), thread, pgagui.UsageOptions{}))(t)
		var want []pgagui.ModelUsage
		if err := json.Unmarshal(lines.Bytes(), &want); err != nil {
			t.Fatalf("%s: %v", lines.Bytes(), err)
		}
		for i := range want {
			want[i].Runs = 1
			want[i].Provider, want[i].Model = asText(want[i].Provider), asText(want[i].Model)
		}
		sortUsage(want)
		if got, want := shown(t, usage.Models), shown(t, append([]pgagui.ModelUsage{}, want...)); got != want {
			t.Errorf("%s:\n%s\nthe client counts\n%s", list, got, want)
		}
	}
}

// oddCounts are JSON values where a number of tokens is expected.
var oddCounts = []string{
	"0", "1", "7", "1000", "12.0", "1e3", "1.5e1", "9007199254740991", "9007199254740990", "-0", "0.0", "1E2", "2.5e+1",
	"-1", "1.5", "9007199254740992", "9007199254740993", "1e16", "1e99", "1e400", "1e400000", "1e-1", "12345678901234567890123456789012345678901234567890",
	`"5"`, `""`, `"\u0000"`, "null", "true", "[]", "[1]", "{}", `{"a":"\u0000"}`,
}

func usageEntry(random *rand.Rand) string {
	pick := func(values ...string) string { return values[random.IntN(len(values))] }
	if random.IntN(12) == 0 {
		return pick("null", "5", `"x"`, "[]", `[{"inputTokens":1}]`, "{}")
	}
	var members []string
	for _, name := range []string{"provider", "model"} {
		if random.IntN(5) > 0 {
			members = append(members, fmt.Sprintf("%q:%s", name, pick(`"a"`, `"a"`, `"b"`, `"\u0061"`, `""`, "null", "5", `"\u00e9"`, `"é"`, `"x\u0000y"`)))
		}
	}
	for _, name := range []string{"inputTokens", "outputTokens", "totalTokens", "reasoningTokens", "cachedInputTokens", "cacheWriteInputTokens"} {
		for random.IntN(5) > 1 { // now and then twice
			count := fmt.Sprint(random.IntN(1000))
			if random.IntN(4) == 0 {
				// The client adds in double precision: four counts stay exact.
				count = strings.ReplaceAll(oddCounts[random.IntN(len(oddCounts))], "900719925474099", "200719925474099")
			}
			if random.IntN(9) == 0 {
				name = strings.Replace(name, "T", `\u0054`, 1)
			}
			members = append(members, `"`+name+`":`+count)
			if random.IntN(4) > 0 {
				break
			}
		}
	}
	random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return "{" + strings.Join(append(members, `"other":{"inputTokens":1}`), ",") + "}"
}

// slowUsage reads all events of some runs.
func slowUsage(t *testing.T, log []pgagui.Event, runIDs []string) pgagui.Usage {
	t.Helper()
	usage := pgagui.Usage{Models: []pgagui.ModelUsage{}, Runs: int64(len(runIDs))}
	for _, runID := range runIDs {
		var custom, ends []pgagui.ModelUsage // by this run so far
		hasFailed, hasEnded := false, false
		for _, event := range log {
			if event.RunID != runID {
				continue
			}
			body := decoded(t, event.JSON)
			isEnd := body["type"] == "RUN_FINISHED" || body["type"] == "RUN_ERROR"
			switch {
			case hasFailed && body["type"] != "RUN_STARTED":
				continue
			case isEnd:
				object, isObject := body["usage"].(map[string]any)
				_, isCall := object["promptTokens"]
				if used := slowEntries(body["usage"]); isObject && isCall && len(used) > 0 {
					for _, model := range used { // the generator has no run with both kinds
						ends = addUsage(ends, model)
					}
				} else if len(used) > 0 {
					ends = used
				}
			case body["type"] == "CUSTOM" && body["name"] == "usage":
				if used := slowEntries(body["value"]); len(used) > 0 {
					custom = used
				}
			}
			hasFailed = body["type"] == "RUN_ERROR"
			hasEnded = hasEnded || isEnd
		}
		used := ends
		if len(used) == 0 && hasEnded {
			used = custom
		}
		if len(used) == 0 {
			usage.RunsWithoutUsage++
		}
		for _, model := range used {
			model.Runs = 1
			usage.Models = addUsage(usage.Models, model)
		}
	}
	sortUsage(usage.Models)
	return usage
}

func slowEntries(value any) (used []pgagui.ModelUsage) {
	entries, isList := value.([]any)
	if !isList {
		entries = []any{value}
	}
	for _, entry := range entries {
		entry, _ := entry.(map[string]any)
		counts := [6]*int64{}
		empty := true
		for i, names := range [][]string{
			{"inputTokens", "promptTokens", "input_token_count"}, {"outputTokens", "completionTokens", "output_token_count"}, {"totalTokens", "total_token_count"},
			{"reasoningTokens"}, {"cachedInputTokens"}, {"cacheWriteInputTokens"},
		} {
			named := slices.IndexFunc(names, func(name string) bool { _, has := entry[name]; return has })
			if named >= 0 {
				counts[i] = slowCount(entry[names[named]])
			}
			empty = empty && counts[i] == nil
		}
		if counts[2] == nil && counts[0] != nil && counts[1] != nil {
			counts[2] = new(*counts[0] + *counts[1])
		}
		if empty {
			continue
		}
		provider, _ := entry["provider"].(string)
		model, _ := entry["model"].(string)
		used = addUsage(used, pgagui.ModelUsage{
			Provider: asText(provider), Model: asText(model), InputTokens: counts[0], OutputTokens: counts[1], TotalTokens: counts[2],
			ReasoningTokens: counts[3], CachedInputTokens: counts[4], CacheWriteInputTokens: counts[5],
		})
	}
	return used
}

func addUsage(list []pgagui.ModelUsage, more pgagui.ModelUsage) []pgagui.ModelUsage {
	for i := range list {
		if m := &list[i]; m.Provider == more.Provider && m.Model == more.Model {
			for sum, count := range map[**int64]*int64{
				&m.InputTokens: more.InputTokens, &m.OutputTokens: more.OutputTokens, &m.TotalTokens: more.TotalTokens,
				&m.ReasoningTokens: more.ReasoningTokens, &m.CachedInputTokens: more.CachedInputTokens, &m.CacheWriteInputTokens: more.CacheWriteInputTokens,
			} {
				if count != nil && *sum != nil {
					*sum = new(**sum + *count)
				} else if count != nil {
					*sum = count
				}
			}
			m.Runs += more.Runs
			return list
		}
	}
	return append(list, more)
}

// sortUsage orders labels by their bytes, none last.
func sortUsage(list []pgagui.ModelUsage) {
	noneLast := func(a, b string) int {
		if (a == "") != (b == "") {
			return cmp.Compare(b, a)
		}
		return cmp.Compare(a, b)
	}
	slices.SortFunc(list, func(a, b pgagui.ModelUsage) int {
		return cmp.Or(noneLast(a.Provider, b.Provider), noneLast(a.Model, b.Model))
	})
}

func slowCount(value any) *int64 {
	number, _ := value.(json.Number)
	if len(number) > 40 || strings.Contains(string(number), "00000") && strings.ContainsAny(string(number), "eE") { // too much for big.Rat
		return nil
	}
	exact, isNumber := new(big.Rat).SetString(string(number))
	if !isNumber || !exact.IsInt() || exact.Sign() < 0 || exact.Num().BitLen() > 53 {
		return nil
	}
	return new(exact.Num().Int64())
}

// asText is how SQL returns a string: text cannot contain U+0000.
func asText(s string) string { return strings.ReplaceAll(s, "\x00", `\u0000`) }

func decoded(t *testing.T, event json.RawMessage) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(event))
	decoder.UseNumber()
	var body map[string]any
	if err := decoder.Decode(&body); err != nil {
		t.Fatalf("%v: %s", err, event)
	}
	return body
}

func shown(t *testing.T, value any) string {
	t.Helper()
	text := must.Have(json.MarshalIndent(value, "", " "))(t)
	return string(text)
}

func logText(log []pgagui.Event) string {
	var text strings.Builder
	for _, event := range log {
		fmt.Fprintf(&text, "%d %s %s\n", event.Seq, event.RunID, event.JSON)
	}
	return text.String()
}

func lineageOf(t *testing.T, store *pgagui.Store, thread, run string) (runIDs []string) {
	t.Helper()
	runs := must.Have(store.Lineage(t.Context(), pgagui.RunRef{ThreadID: thread, RunID: run}))(t)
	for _, run := range runs {
		runIDs = append(runIDs, run.ID)
	}
	return runIDs
}

// storeDelegations appends a thread seed-N of some runs, on branches and in parallel, in which subagents work, are suspended and resumed, and of which
// the ends report usage, as the protocol has it and otherwise.
func storeDelegations(t *testing.T, store *pgagui.Store, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 10))
	pick := func(values ...string) string { return values[random.IntN(len(values))] }
	id := func() string {
		return pick(`"s1"`, `"s1"`, `"s2"`, `"s\u0032"`, `"s3"`, `"s3"`, `"s4"`, `""`, `"x\u0000"`)
	}
	member := func(name string, values ...string) string {
		if value := pick(append(values, "")...); value != "" {
			return fmt.Sprintf(",%q:%s", name, value)
		}
		return ""
	}
	event := func() string {
		when := member("timestamp", "", "", "", "1700000000000", "1700000060000", `"2023-11-14T22:13:25Z"`, `"soon"`)
		owner := pick(`,"subagentRunId":`, `,"subagentRun\u0049d":`) + pick(id(), id(), id(), id(), id(), "null", "5", `{"a":"s1"}`)
		switch random.IntN(8) {
		case 7:
			return `{"type":"CUSTOM","name":` + pick(`"usage"`, `"us\u0061ge"`, `"used"`, "7") +
				fmt.Sprintf(`,"value":{"input_token_count":%d,"output_token_count":%s}}`, random.IntN(1000), pick("5", "null", "[]"))
		case 0, 1, 2:
			return `{"type":"SUBAGENT_STARTED"` + owner + when + member("name", `"researcher"`, `"coder"`, "7") + member("description", `"reads \u0000"`) +
				member("parentSubagentRunId", id(), id(), id(), id(), id(), `"nobody"`, "1") + member("parentToolCallId", `"c"`) + member("parentMessageId", `"m"`) + "}"
		case 3:
			return `{"type":"SUBAGENT_FINISHED"` + owner + when + member("result", `{"a":"\u0000"}`, `"done"`, "null", "1") +
				member("outcome", `{"type":"success"}`, `{"type":"suspended"}`, `{"type":"suspended","interruptIds":["i1",5,"i2"]}`,
					`{"type":"suspended","interruptIds":"i1"}`, `{"type":"later"}`, `"suspended"`, "null") + member("usage", `[{"inputTokens":1}]`, "5") + "}"
		case 4:
			return `{"type":"SUBAGENT_ERROR"` + owner + when + member("message", `"no \u0000"`, "1") + member("code", `"E"`) +
				member("outcome", `{"type":"suspended"}`) + member("usage", `[]`) + "}"
		}
		return `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x"` + pick("", owner, owner) + when + "}"
	}
	reportsCalls := false // as TanStack does
	end := func() string {
		if reportsCalls {
			return `{"type":` + pick(`"RUN_FINISHED"`, `"RUN_ERROR","message":"x"`) + pick("", fmt.Sprintf(`,"usage":{"model":"m","promptTokens":%d,"completionTokens":5}`, random.IntN(1000))) + "}"
		}
		var entries []string
		for range random.IntN(4) {
			entries = append(entries, usageEntry(random))
		}
		list := "[" + strings.Join(entries, ",") + "]"
		return `{"type":` + pick(`"RUN_FINISHED"`, `"RUN_FINISHED"`, `"RUN_ERROR","message":"x"`, `"RUN_\u0046INISHED"`) +
			pick("", `,"usage":`+list, `,"usage":`+list, `,"usage":`+list, `,"usage":null`, `,"usage":{"inputTokens":1}`, `,"usage":"\u0000"`) + "}"
	}

	var ended []string
	for number := range 1 + random.IntN(6) {
		options := pgagui.AppendOptions{Parallel: true, NoParent: true}
		if len(ended) > 0 && random.IntN(5) > 0 {
			options.NoParent, options.ParentRunID = false, ended[len(ended)-1-random.IntN(min(2, len(ended)))]
		}
		ref := pgagui.RunRef{ThreadID: fmt.Sprint("seed-", seed), RunID: fmt.Sprint("run-", number)}
		events := []string{`{"type":"RUN_STARTED"}`}
		for range random.IntN(20) {
			events = append(events, event())
		}
		hasEnd := random.IntN(6) > 0
		reportsCalls = random.IntN(4) == 0
		var tail []string // in one call: after an end, append takes nothing but a repeat
		if hasEnd {
			ended = append(ended, ref.RunID)
			for tail = []string{end()}; random.IntN(3) == 0; {
				tail = append(tail, pick(event(), end()))
			}
		}
		for len(events) > 0 {
			n := min(1+random.IntN(5), len(events))
			call := events[:n]
			if events = events[n:]; len(events) == 0 {
				call = append(slices.Clone(call), tail...)
			}
			if _, err := store.Append(context.Background(), ref, rawEvents(call...), options); err != nil {
				t.Fatalf("%s %s: %v", ref, call, err)
			}
			options = pgagui.AppendOptions{}
		}
	}
}

// Usage in another place of the end counts where the owner says that it is there, in agui.usage and in the facts, and that in its own place
// comes first.
func TestUsageInAnotherPlace(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	testdb.Exec(t, pool, `
		select agui.append('t', 'r1', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED","metadata":{"llm":{"name":"large","tokens":{"in":7,"out":3}}}}]');
		select agui.append('t', 'r2', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED","metadata":{"llm":[{"name":"large","tokens":{"in":1,"out":"x"}},5,{"name":"small","tokens":{"in":2}}]}}]');
		select agui.append('t', 'r3', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED","usage":[{"model":"own","inputTokens":100}],"metadata":{"llm":{"name":"large","tokens":{"in":7}}}}]');
		select agui.append('t', 'r4', '[{"type":"RUN_STARTED"},{"type":"RUN_ERROR","message":"no","metadata":{"llm":{"name":"small","tokens":{"in":4}}}}]')`)
	const usage = `select format('%s %s %s', model, input_tokens, coalesce(output_tokens, 0)) from agui.usage('t', whole_thread => true) where model is not null order by 1`
	const facts = `select format('%s %s %s %s', run_id, model, input_tokens, coalesce(output_tokens, 0)) from agui.usage_fact order by 1`
	projected := func() string {
		t.Helper()
		testdb.Exec(t, pool, `call agui.project()`)
		return strings.Join(testdb.List[string](t, pool, facts), ", ")
	}
	if got := projected(); got != "r3 own 100 0" {
		t.Errorf("before: %s", got)
	}
	testdb.Exec(t, pool, `select agui.map_usage('{metadata,llm}', '{"model":"name","inputTokens":"tokens.in","outputTokens":"tokens.out"}')`)
	if got := strings.Join(testdb.List[string](t, pool, usage), ", "); got != "large 8 3, own 100 0, small 6 0" {
		t.Errorf("of the thread: %s", got)
	}
	if got := projected(); got != "r1 large 7 3, r2 large 1 0, r2 small 2 0, r3 own 100 0, r4 small 4 0" {
		t.Errorf("facts: %s", got)
	}
	if got := testdb.List[string](t, pool, `select problem from agui.verify('t') where severity = 'damage'`); len(got) > 0 {
		t.Errorf("verify finds %q", got)
	}
	testdb.Exec(t, pool, `select agui.unmap_usage()`)
	if got := projected(); got != "r3 own 100 0" {
		t.Errorf("without the mapping: %s", got)
	}
	for _, wrong := range []string{`agui.map_usage(null)`, `agui.map_usage('{a,null}')`, `agui.map_usage('{a}', '[]')`, `agui.map_usage('{a}', '{"tokens":"x"}')`, `agui.map_usage('{a}', '{"model":1}')`} {
		if _, err := pool.Exec(t.Context(), `select `+wrong); testdb.State(err) != "22023" {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

// What frameworks report in their own spellings counts without a mapping. TanStack ends each call of the model with RUN_FINISHED, with an
// object in usage (@tanstack/ai 0.43) or a list (0.58), so these add up. Agent Framework (agent-framework-ag-ui 1.7) sends what its run used
// so far, in a CUSTOM event after each call.
func TestUsageAsFrameworksSendIt(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	for thread, events := range map[string]string{
		"tanstack 0.43": `
			{"type":"RUN_STARTED","threadId":"t","runId":"r","model":"m-large","timestamp":1},
			{"type":"RUN_FINISHED","threadId":"t","runId":"r","model":"m-large","timestamp":1,"finishReason":"tool_calls","usage":{"promptTokens":100,"completionTokens":1,"totalTokens":101,"promptTokensDetails":{"cachedTokens":7,"cacheWriteTokens":3},"completionTokensDetails":{"reasoningTokens":1}}},
			{"type":"RUN_STARTED","threadId":"t","runId":"r","model":"m-large","timestamp":1},
			{"type":"RUN_FINISHED","threadId":"t","runId":"r","model":"m-large","timestamp":1,"finishReason":"stop","usage":{"promptTokens":200,"completionTokens":2,"totalTokens":202,"promptTokensDetails":{"cachedTokens":7,"cacheWriteTokens":3},"completionTokensDetails":{"reasoningTokens":1}}}`,
		"tanstack 0.58": `
			{"type":"RUN_STARTED","threadId":"t","runId":"r","timestamp":1,"metadata":{"tanstack":{"model":"m-large"}}},
			{"type":"RUN_FINISHED","threadId":"t","runId":"r","timestamp":1,"usage":[{"inputTokens":100,"outputTokens":1,"totalTokens":101,"cachedInputTokens":7,"reasoningTokens":1}],"metadata":{"tanstack":{"model":"m-large","finishReason":"tool_calls","usage":{"promptTokensDetails":{"cacheWriteTokens":3}}}}},
			{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c1","content":"seen"},
			{"type":"RUN_FINISHED","threadId":"t","runId":"r","timestamp":1,"usage":[{"inputTokens":200,"outputTokens":2,"totalTokens":202,"cachedInputTokens":7,"reasoningTokens":1}],"metadata":{"tanstack":{"model":"m-large","finishReason":"stop","usage":{"promptTokensDetails":{"cacheWriteTokens":3}}}}}`,
		"tanstack fails": `
			{"type":"RUN_STARTED","threadId":"t","runId":"r","model":"m-large","timestamp":1},
			{"type":"RUN_FINISHED","threadId":"t","runId":"r","model":"m-large","timestamp":1,"finishReason":"tool_calls","usage":{"promptTokens":100,"completionTokens":1,"totalTokens":101}},
			{"type":"RUN_ERROR","threadId":"t","runId":"r","message":"the model is out of order"}`,
		"agent framework": `
			{"type":"RUN_STARTED","threadId":"t","runId":"r"},
			{"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"look","parentMessageId":"a"},
			{"type":"CUSTOM","name":"usage","value":{"input_token_count":100,"output_token_count":10,"total_token_count":110,"reasoning_output_token_count":2,"cache_read_input_token_count":3,"cache_creation_input_token_count":1}},
			{"type":"TOOL_CALL_END","toolCallId":"c1"},
			{"type":"CUSTOM","name":"usage","value":{"output_token_count":20,"total_token_count":220,"reasoning_output_token_count":4,"input_token_count":200,"cache_read_input_token_count":6,"cache_creation_input_token_count":2}},
			{"type":"CUSTOM","name":"usage","value":{}},
			{"type":"RUN_FINISHED","threadId":"t","runId":"r"}`,
		"agent framework fails": `
			{"type":"RUN_STARTED","threadId":"t","runId":"r"},
			{"type":"CUSTOM","n\u0061me":"us\u0061ge","value":{"input_token_count":100,"output_token_count":10}},
			{"type":"RUN_ERROR","message":"no"},
			{"type":"CUSTOM","name":"usage","value":{"input_token_count":900,"output_token_count":90}}`,
		"agent framework is cut off": `
			{"type":"RUN_STARTED","threadId":"t","runId":"r"},
			{"type":"CUSTOM","name":"usage","value":{"input_token_count":100,"output_token_count":10}}`,
		"both":          `{"type":"RUN_STARTED"},{"type":"CUSTOM","name":"usage","value":{"input_token_count":100}},{"type":"RUN_FINISHED","usage":[{"model":"m","inputTokens":5,"promptTokens":6}]}`,
		"another event": `{"type":"RUN_STARTED"},{"type":"CUSTOM","name":"tokens","value":{"input_token_count":100}},{"type":"RUN_FINISHED","used":{"promptTokens":6}}`,
	} {
		testdb.Exec(t, pool, `select agui.append($1, 'r', $2)`, thread, "["+events+"]")
	}
	testdb.Exec(t, pool, `call agui.project()`)
	for thread, want := range map[string]string{
		"tanstack 0.43":              "m-large 300 3 303 2 14 6",
		"tanstack 0.58":              "m-large 300 3 303 2 14 6",
		"tanstack fails":             "m-large 100 1 101 - - -",
		"agent framework":            "- 200 20 220 4 6 2",
		"agent framework fails":      "- 100 10 110 - - -",
		"agent framework is cut off": "",
		"both":                       "m 5 - - - - -",
		"another event":              "",
	} {
		for source, query := range map[string]string{
			"agui.usage": `
				select concat_ws(' ', coalesce(model, '-'), input_tokens, coalesce(output_tokens::text, '-'), coalesce(total_tokens::text, '-'),
					coalesce(reasoning_tokens::text, '-'), coalesce(cached_input_tokens::text, '-'), coalesce(cache_write_input_tokens::text, '-'))
				from agui.usage($1) where input_tokens is not null`,
			"the facts": `
				select concat_ws(' ', coalesce(model, '-'), sum(input_tokens), coalesce(sum(output_tokens)::text, '-'), coalesce(sum(total_tokens)::text, '-'),
					coalesce(sum(reasoning_tokens)::text, '-'), coalesce(sum(cached_input_tokens)::text, '-'), coalesce(sum(cache_write_input_tokens)::text, '-'))
				from agui.usage_fact where thread_id = $1 group by model`,
		} {
			if got := strings.Join(testdb.List[string](t, pool, query, thread), ", "); got != want {
				t.Errorf("%s of %s: %q, want %q", source, thread, got, want)
			}
		}
		if got := testdb.List[string](t, pool, `select problem from agui.verify($1) where severity = 'damage'`, thread); len(got) > 0 {
			t.Errorf("verify of %s finds %q", thread, got)
		}
	}
}

// Several mappings hold together, for ends of runs and for CUSTOM events. Until the job has read the facts by them, verify does not
// compare these.
func TestSeveralMappingsOfUsage(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	testdb.Exec(t, pool, `
		select agui.append('t', 'top', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED","llm":"large","prompt":7}]');
		select agui.append('t', 'member', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED","metadata":{"tokens":{"in":2}}}]');
		select agui.append('t', 'custom', '[{"type":"RUN_STARTED"},{"type":"CUSTOM","name":"llm_cost","value":[{"input":3},{"input":4,"outputTokens":1}]},{"type":"RUN_FINISHED"}]');
		select agui.append('t', 'own', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED","usage":[{"in":5}],"prompt":7}]')`)
	testdb.Exec(t, pool, `call agui.project()`)
	const facts = `select concat_ws(' ', run_id, model, input_tokens, output_tokens) from agui.usage_fact order by run_no, input_tokens`
	mustBe := func(query, want string) {
		t.Helper()
		if got := strings.Join(testdb.List[string](t, pool, query), ", "); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	mustBe(facts, "")
	testdb.Exec(t, pool, `
		select agui.map_usage('{}', '{"model":"llm","inputTokens":"prompt"}');
		select agui.map_usage('{metadata,tokens}', '{"inputTokens":"wrong"}');
		select agui.map_usage('{metadata,tokens}', '{"inputTokens":"in"}');
		select agui.map_usage('{usage}', '{"inputTokens":"in"}');
		select agui.map_usage('{value}', '{"inputTokens":"input"}', custom => 'llm_cost')`)
	mustBe(`select problem from agui.verify('t') where severity = 'damage'`, "")
	testdb.Exec(t, pool, `call agui.project()`)
	mustBe(facts, "top large 7, member 2, custom 3, custom 4 1, own 5")
	mustBe(`select concat_ws(' ', model, input_tokens, output_tokens) from agui.usage('t', whole_thread => true)`, "large 7, 14 1")
	mustBe(`select problem from agui.verify('t') where severity = 'damage'`, "")
	mustBe(`select agui.unmap_usage()::text`, "true")
	mustBe(`select agui.unmap_usage()::text`, "false")
	testdb.Exec(t, pool, `call agui.project()`)
	mustBe(facts, "")
	if _, err := pool.Exec(t.Context(), `select agui.map_usage('{value}', custom => '')`); testdb.State(err) != "22023" {
		t.Errorf("no name: %v", err)
	}
}
