package test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// The subagents of generated threads are what a slow program makes of the log, event by event: of the lineage of each run and of the run
// alone, at the end and at any seq, in batches of any borders and after a repack.
func TestSubagentsOfGeneratedThreads(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	// The first seeds are the same in each run: they have every status, and subagents of three levels.
	seeds := []uint64{9, 10, 36}
	for seed := *firstSeed; len(seeds) < max(20, *streamCount/50); seed++ {
		if !slices.Contains(seeds, seed) {
			seeds = append(seeds, seed)
		}
	}
	for _, seed := range seeds {
		storeDelegations(t, store, seed)
	}
	seen := map[pgagui.SubagentStatus]int{}
	deepest := 0
	for _, when := range []string{"as appended", "repacked"} {
		for _, seed := range seeds {
			random := rand.New(rand.NewPCG(seed, 11))
			thread := fmt.Sprint("seed-", seed)
			log := eventsOf(t, pool, thread)
			runs := must.Have(store.Runs(t.Context(), thread))(t)
			for _, run := range runs {
				lineage := lineageOf(t, store, thread, run.ID)
				for _, options := range []pgagui.SubagentsOptions{
					{At: pgagui.At{RunID: run.ID}},
					{At: pgagui.At{RunID: run.ID}, NoLineage: true},
					{At: pgagui.At{RunID: run.ID, Seq: 1 + random.Int64N(int64(len(log)))}},
				} {
					got := must.Have(store.Subagents(t.Context(), thread, options))(t)
					of := lineage
					if options.NoLineage {
						of = []string{run.ID}
					}
					for i := range got {
						got[i].StartedAt, got[i].EndedAt = got[i].StartedAt.UTC(), got[i].EndedAt.UTC()
						seen[got[i].Status]++
						deepest = max(deepest, got[i].Depth)
					}
					want := slowSubagents(t, log, runs, of, options.At.Seq)
					if got, want := shown(t, got), shown(t, want); got != want {
						t.Fatalf("%s, %s, %+v:\n%s\nwant\n%s\nof the log\n%s", thread, when, options, got, want, logText(log))
					}
				}
			}
		}
		testdb.Exec(t, pool, `call agui.repack(older_than => '0')`)
	}
	if len(seen) != 5 || deepest < 3 {
		t.Errorf("statuses %v, %d deep: the generator makes too little", seen, deepest)
	}
}

// slowSubagents goes through the events of some runs up to a seq (0: all).
func slowSubagents(t *testing.T, log []pgagui.Event, runs []pgagui.Run, runIDs []string, until int64) []pgagui.Subagent {
	t.Helper()
	type span struct{ first, last time.Time }
	type state struct {
		pgagui.Subagent
		isStarted, isOpen bool
		suspendedIn       string // the run
		spans             map[string]*span
	}
	var states []*state
	byID := map[string]*state{}
	text := func(value any) string {
		text, _ := value.(string)
		return asText(text)
	}
	for _, event := range log {
		if !slices.Contains(runIDs, event.RunID) || until > 0 && event.Seq > until {
			continue
		}
		body := decoded(t, event.JSON)
		id, isText := body["subagentRunId"].(string)
		if !isText {
			continue
		}
		at := event.RecordedAt.UTC()
		switch body["timestamp"] {
		case json.Number("1700000000000"):
			at = time.UnixMilli(1700000000000).UTC()
		case json.Number("1700000060000"):
			at = time.UnixMilli(1700000060000).UTC()
		case "2023-11-14T22:13:25Z":
			at = time.UnixMilli(1700000005000).UTC()
		}
		s := byID[id]
		if s == nil {
			s = &state{spans: map[string]*span{}, isOpen: true}
			s.ID, s.RunID, s.FirstSeq, s.StartedAt = asText(id), event.RunID, event.Seq, at
			byID[id] = s
			states = append(states, s)
		}
		s.LastRunID, s.LastSeq = event.RunID, event.Seq
		s.EventCount++
		if s.spans[event.RunID] == nil {
			s.spans[event.RunID] = &span{at, at}
		}
		if of := s.spans[event.RunID]; at.Before(of.first) {
			of.first = at
		} else if at.After(of.last) {
			of.last = at
		}

		isEnd := body["type"] == "SUBAGENT_FINISHED" || body["type"] == "SUBAGENT_ERROR"
		if body["type"] == "SUBAGENT_STARTED" || isEnd || s.suspendedIn != "" && s.suspendedIn != event.RunID {
			s.isOpen, s.suspendedIn, s.EndedAt = !isEnd, "", time.Time{}
			s.Status, s.Result, s.InterruptIDs, s.ErrorMessage, s.ErrorCode, s.Usage = "", nil, nil, "", "", nil
		}
		if body["type"] == "SUBAGENT_STARTED" && !s.isStarted {
			s.isStarted = true
			s.Name, s.Description, s.ParentID = text(body["name"]), text(body["description"]), text(body["parentSubagentRunId"])
			s.ParentToolCallID, s.ParentMessageID = text(body["parentToolCallId"]), text(body["parentMessageId"])
			if _, isText := body["parentSubagentRunId"].(string); !isText {
				s.ParentID = "none" // for place below; "" is an id
			}
		}
		if !isEnd {
			continue
		}
		s.EndedAt = at
		var raw struct{ Result, Usage json.RawMessage }
		must.Do(t, json.Unmarshal(event.JSON, &raw))
		if _, isList := body["usage"].([]any); isList {
			s.Usage = raw.Usage
		}
		outcome, _ := body["outcome"].(map[string]any)
		switch {
		case body["type"] == "SUBAGENT_ERROR":
			s.Status, s.ErrorMessage, s.ErrorCode = pgagui.SubagentFailed, text(body["message"]), text(body["code"])
		case outcome["type"] == "suspended":
			s.Status, s.suspendedIn = pgagui.SubagentSuspended, event.RunID
			list, _ := outcome["interruptIds"].([]any)
			for _, item := range list {
				if id, isText := item.(string); isText {
					s.InterruptIDs = append(s.InterruptIDs, id)
				}
			}
		default:
			s.Status = pgagui.SubagentFinished
			if body["result"] != nil {
				s.Result = raw.Result
			}
		}
	}

	children := map[*state][]*state{}
	for _, s := range states {
		if s.isOpen {
			s.Status = pgagui.SubagentRunning
			for _, run := range runs {
				if run.ID == s.LastRunID && run.LastSeq > 0 && (until == 0 || run.LastSeq <= until) {
					s.Status, s.EndedAt = pgagui.SubagentCutOff, run.EndedAt.UTC()
				}
			}
		}
		var duration time.Duration
		for _, span := range s.spans {
			duration += span.last.Sub(span.first)
		}
		s.DurationMs = duration.Milliseconds()
		var parent *state
		for _, other := range states {
			if s.isStarted && other.ID == s.ParentID && other.FirstSeq < s.FirstSeq {
				parent = other
			}
		}
		if s.ParentID == "none" {
			s.ParentID = ""
		}
		children[parent] = append(children[parent], s)
	}
	inOrder := []pgagui.Subagent{}
	var walk func(parent *state, depth int)
	walk = func(parent *state, depth int) {
		for _, child := range children[parent] {
			child.Depth = depth
			inOrder = append(inOrder, child.Subagent)
			walk(child, depth+1)
		}
	}
	walk(nil, 1)
	return inOrder
}

// A subagent is suspended in one run and resumed in the next. Its own subagent fails; another is cut off with the run.
func TestSubagentsAcrossRuns(t *testing.T) {
	t.Parallel()
	store := pgagui.New(testdb.Pool(t), nil)
	mustAppend(t, store, "t", "r1", rawEvents(
		`{"type":"RUN_STARTED"}`,
		`{"type":"SUBAGENT_STARTED","subagentRunId":"a","name":"planner","description":"plans","parentToolCallId":"c","parentMessageId":"m","timestamp":1700000001000}`,
		`{"type":"SUBAGENT_STARTED","subagentRunId":"b","name":"reader","parentSubagentRunId":"a","timestamp":1700000002000}`,
		`{"type":"SUBAGENT_STARTED","subagentRunId":"d","name":"other","timestamp":1700000002500}`,
		`{"type":"SUBAGENT_ERROR","subagentRunId":"b","message":"no disk","code":"ENOSPC","timestamp":1700000003000}`,
		`{"type":"SUBAGENT_FINISHED","subagentRunId":"a","outcome":{"type":"suspended","interruptIds":["i"]},"timestamp":1700000004000}`,
		`{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"confirm","subagentRunId":"a"}]}}`,
	))
	lines := func(options pgagui.SubagentsOptions) string {
		subagents := must.Have(store.Subagents(t.Context(), "t", options))(t)
		var lines []string
		for _, s := range subagents {
			lines = append(lines, fmt.Sprintf("%s%s %s %s–%s %d ms %s%s%v%s", strings.Repeat("  ", s.Depth-1), s.Name, s.Status, s.RunID, s.LastRunID, s.DurationMs,
				s.Result, s.ErrorCode, s.InterruptIDs, s.ParentToolCallID))
		}
		return strings.Join(lines, "\n")
	}
	check := func(when, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s:\n%s\nwant\n%s", when, got, want)
		}
	}
	check("suspended", lines(pgagui.SubagentsOptions{}), `planner suspended r1–r1 3000 ms [i]c
  reader failed r1–r1 1000 ms ENOSPC[]
other cut_off r1–r1 0 ms []`)
	check("before that", lines(pgagui.SubagentsOptions{At: pgagui.At{Seq: 4}}), `planner running r1–r1 0 ms []c
  reader running r1–r1 0 ms []
other running r1–r1 0 ms []`)

	// Without SUBAGENT_STARTED, which the protocol allows.
	mustAppend(t, store, "t", "r2", rawEvents(`{"type":"RUN_STARTED","input":{"resume":[{"interruptId":"i","status":"resolved"}]}}`,
		`{"type":"TEXT_MESSAGE_START","messageId":"m2","subagentRunId":"a","timestamp":1700000900000}`))
	check("resumed", lines(pgagui.SubagentsOptions{}), `planner running r1–r2 3000 ms []c
  reader failed r1–r1 1000 ms ENOSPC[]
other cut_off r1–r1 0 ms []`)
	mustAppend(t, store, "t", "r2", rawEvents(`{"type":"SUBAGENT_FINISHED","subagentRunId":"a","result":{"plan":1},"timestamp":1700000901000}`, `{"type":"RUN_FINISHED"}`))
	check("finished", lines(pgagui.SubagentsOptions{}), `planner finished r1–r2 4000 ms {"plan":1}[]c
  reader failed r1–r1 1000 ms ENOSPC[]
other cut_off r1–r1 0 ms []`)
	check("the second run alone", lines(pgagui.SubagentsOptions{NoLineage: true}), ` finished r2–r2 1000 ms {"plan":1}[]`)
}

// Thousands of subagents, each the parent of the next or all beside each other, take time in proportion.
func TestManySubagents(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	for name, parentOf := range map[string]func(n int) int{"chain": func(n int) int { return n - 1 }, "beside": func(int) int { return -1 }, "circles": func(n int) int { return n ^ 1 }} {
		var seconds [2]float64
		for i, size := range []int{500, 5_000} {
			events := []string{`{"type":"RUN_STARTED"}`}
			for n := range size {
				events = append(events, fmt.Sprintf(`{"type":"SUBAGENT_STARTED","subagentRunId":"s%d","name":"x","parentSubagentRunId":"s%d"}`, n, parentOf(n)))
			}
			thread := fmt.Sprint(name, size)
			for batch := range slices.Chunk(events, 500) {
				mustAppend(t, store, thread, "r", rawEvents(batch...))
			}
			if i == 0 {
				testdb.Exec(t, pool, `analyze agui.batch, agui.run`)
			}
			seconds[i] = math.Inf(1)
			for range 3 { // the quickest, because the machine has other work
				begin := time.Now()
				subagents, err := store.Subagents(t.Context(), thread, pgagui.SubagentsOptions{})
				if err != nil || len(subagents) != size {
					t.Fatalf("%d subagents, %v", len(subagents), err)
				}
				seconds[i] = min(seconds[i], time.Since(begin).Seconds())
			}
		}
		t.Logf("%s: %.3f s, %.3f s", name, seconds[0], seconds[1])
		// With the square it would be 100 times.
		if ratio := seconds[1] / seconds[0]; ratio > 40 {
			t.Errorf("%s: ten times the subagents take %.0f times as long", name, ratio)
		}
	}
}
