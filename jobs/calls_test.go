package jobs_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/recorded"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/jobs"
)

// What agents that ask by a tool call without a result send: a call of erase, and its end.
const (
	start    = `{"type":"RUN_STARTED"}`
	finish   = `{"type":"RUN_FINISHED"}`
	fail     = `{"type":"RUN_ERROR","message":"no"}`
	ask      = `{"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"erase"},{"type":"TOOL_CALL_ARGS","toolCallId":"c1","delta":"{\"at\":"},{"type":"TOOL_CALL_ARGS","toolCallId":"c1","delta":"\"it\"}"},{"type":"TOOL_CALL_END","toolCallId":"c1"}`
	result   = `{"type":"TOOL_CALL_RESULT","messageId":"m1","toolCallId":"c1","content":"yes"}`
	asked    = `{"id":"c1","role":"assistant","toolCalls":[{"id":"c1","type":"function","function":{"name":"erase","arguments":"{\"at\":\"it\"}"}}]}`
	answered = `{"id":"m1","role":"tool","toolCallId":"c1","content":"yes"}`
)

// callStep is a run, or events for one in progress.
type callStep struct{ run, parent, events, input string }

func (s callStep) appendTo(t *testing.T, pool *pgxpool.Pool, thread string) {
	t.Helper()
	events := s.events
	if s.parent != "" {
		events = strings.Replace(events, `"RUN_STARTED"`, fmt.Sprintf(`"RUN_STARTED","parentRunId":%q`, s.parent), 1)
	}
	var input *string
	if s.input != "" {
		input = &s.input
	}
	testdb.Exec(t, pool, `select agui.append($1, $2, $3, input => $4)`, thread, s.run, "["+events+"]", input)
}

func runOf(run string, events ...string) callStep {
	return callStep{run: run, events: strings.Join(append([]string{start}, events...), ",")}
}

func (s callStep) with(input string) callStep { s.input = input; return s }
func (s callStep) behind(run string) callStep { s.parent = run; return s }

// A tool call without a result waits if its run finished and the call is one of the client's tools, until the head of its thread has a
// result, from an event, an input or a snapshot.
func TestACallWithoutAResultWaits(t *testing.T) {
	t.Parallel()
	const waits = "r1 c1 erase {\"at\":\"it\"}"
	asking := runOf("r1", ask, finish)
	for name, project := range projections {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			store := pgagui.New(pool, nil)
			testdb.Exec(t, pool, `select agui.set_setting('call_delay', '0')`)
			for name, c := range map[string]struct {
				steps       []callStep
				want        string
				wantStatus  string // in agui.interrupt_fact, if it does not wait
				wantAnswers string
			}{
				"no input":                  {steps: []callStep{asking}, want: waits},
				"an input without tools":    {steps: []callStep{asking.with(`{"messages":[]}`)}, want: waits},
				"an empty list of tools":    {steps: []callStep{asking.with(`{"tools":[]}`)}, want: waits},
				"a tool of the client":      {steps: []callStep{asking.with(`{"tools":[{"name":"pick"},{"name":"erase"}]}`)}, want: waits},
				"no tool of the client":     {steps: []callStep{asking.with(`{"tools":[{"name":"pick"}]}`)}},
				"a call in chunks":          {steps: []callStep{runOf("r1", `{"type":"TOOL_CALL_CHUNK","toolCallId":"c1","toolCallName":"erase","delta":"{\"at\":\"it\"}"}`, finish)}, want: waits},
				"a result of its own":       {steps: []callStep{runOf("r1", ask, result, finish)}},
				"a snapshot has the result": {steps: []callStep{runOf("r1", ask, `{"type":"MESSAGES_SNAPSHOT","messages":[`+asked+`,`+answered+`]}`, finish)}},
				"a snapshot without it":     {steps: []callStep{runOf("r1", ask, `{"type":"MESSAGES_SNAPSHOT","messages":[]}`, finish)}},
				"a call that did not end":   {steps: []callStep{runOf("r1", `{"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"erase"}`, finish)}},
				"the run failed":            {steps: []callStep{runOf("r1", ask, fail)}},
				"the run was cut off":       {steps: []callStep{runOf("r1", ask), {run: "abandon"}}},
				"the run is in progress":    {steps: []callStep{runOf("r1", ask)}},
				"an interrupt about the call": {
					steps: []callStep{runOf("r1", ask, `{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[{"id":"i1","toolCallId":"c1"}]}}`)},
					want:  "r1 i1 c1 erase",
				},
				"the answer is in progress": {steps: []callStep{asking, runOf("r2")}, wantStatus: "answering r2"},
				"answered by an event":      {steps: []callStep{asking, runOf("r2", result, finish)}, wantStatus: "answered r2"},
				"answered in the next input": {
					steps: []callStep{asking, runOf("r2", finish).with(`{"messages":[` + asked + `,` + answered + `]}`)}, wantStatus: "answered r2",
				},
				"answered by a snapshot": {
					steps: []callStep{asking, runOf("r2", `{"type":"MESSAGES_SNAPSHOT","messages":[`+asked+`,`+answered+`]}`, finish)}, wantStatus: "answered r2",
				},
				"the call is gone": {steps: []callStep{asking, runOf("r2", `{"type":"MESSAGES_SNAPSHOT","messages":[]}`, finish)}},
				"the run with the answer failed": {
					steps: []callStep{asking, runOf("r2", fail).with(`{"messages":[` + answered + `]}`)}, wantStatus: "answered r2",
				},
				"the next run broke off":   {steps: []callStep{asking, runOf("r2"), {run: "abandon"}}, want: waits},
				"the next run failed":      {steps: []callStep{asking, runOf("r2", fail)}, want: waits},
				"the next run has no word": {steps: []callStep{asking, runOf("r2", finish)}, want: waits},
				"answered later": {
					steps: []callStep{asking, runOf("r2", finish), runOf("r3", finish).with(`{"messages":[` + asked + `,` + answered + `]}`)},
				},
				"a branch that is not at the head": {steps: []callStep{runOf("r0", finish), asking, runOf("r2", finish).behind("r0")}},
				"another branch has the answer": {
					steps: []callStep{asking, runOf("r2", result, finish), runOf("r3", finish).behind("r1")}, want: waits,
				},
				"a run behind the other branch": {
					steps: []callStep{asking, runOf("r2", result, finish), runOf("r3", finish).behind("r1"), runOf("r4", finish)}, want: waits,
				},
				"begun once more": {steps: []callStep{asking, runOf("r2", ask, result, finish)}, wantStatus: "answered r2"},
			} {
				t.Run(name, func(t *testing.T) {
					for _, step := range c.steps {
						if step.run == "abandon" {
							testdb.Exec(t, pool, `select agui.abandon($1, run_id, 'killed') from agui.runs($1) where status = 'running'`, name)
							continue
						}
						step.appendTo(t, pool, name)
						projectAll(t, pool, project)
					}
					projectAll(t, pool, project)
					mustProject(t, pool, project)
					got := []string{}
					waiting := must.Have(store.Facts().Waiting(t.Context(), pgagui.WaitingOptions{Limit: 1000}))(t)
					for _, one := range waiting {
						if one.ThreadID == name {
							got = append(got, strings.Join(strings.Fields(strings.Join([]string{one.RunID, one.InterruptID, one.ToolCallID, one.Tool, one.Arguments}, " ")), " "))
						}
					}
					if got := strings.Join(got, ", "); got != c.want {
						t.Errorf("what waits is %q, want %q", got, c.want)
					}
					page := must.Have(store.Threads(t.Context(), pgagui.ThreadsOptions{Status: pgagui.Interrupted, Title: "", Limit: 1000}))(t)
					if isListed := slices.ContainsFunc(page.Threads, func(thread pgagui.Thread) bool { return thread.ID == name }); isListed != (c.want != "") {
						t.Errorf("the list of threads that wait has it: %t", isListed)
					}
					status := testdb.Ask[*string](t, pool, `
						select string_agg(concat_ws(' ', status, answered_by), ', ') from agui.interrupt_fact where thread_id = $1 and kind = 'call' and status <> 'waiting'`, name)
					if status == nil {
						status = new(string)
					}
					if *status != c.wantStatus {
						t.Errorf("the fact says %q, want %q", *status, c.wantStatus)
					}
					if problem := testdb.Ask[*string](t, pool, `select string_agg(problem, ', ') from agui.verify($1) where severity = 'damage'`, name); problem != nil {
						t.Error(*problem)
					}
				})
			}
			// A rebuild finds the same.
			before := callFacts(t, pool)
			testdb.Exec(t, pool, `call agui.compact()`)
			testdb.Exec(t, pool, `select agui.rebuild_facts()`)
			projectAll(t, pool, project)
			mustProject(t, pool, project)
			if after := callFacts(t, pool); after != before {
				t.Errorf("after a rebuild the facts are\n%s\nnot\n%s", after, before)
			}
		})
	}
}

func callFacts(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	return testdb.Ask[string](t, pool, `
		select string_agg(concat_ws(' ', thread_id, run_id, tool_call_id, tool, arguments, status, answered_by), e'\n' order by thread_id, run_id) from agui.interrupt_fact where kind = 'call'`)
}

// A call that a page answers at once is in no list, and no webhook hears of it; one that waits longer is listed, and sent once.
func TestACallWaitsForSomeTime(t *testing.T) {
	t.Parallel()
	for name, project := range projections {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			testdb.Exec(t, pool, `select agui.set_setting('call_delay', '1 hour')`)
			hook := addEndpoint(t, pool, jobs.Webhook{Name: "hook", AllScopes: true, Kinds: []jobs.WebhookKind{jobs.WebhookRunWaiting}}, nil)
			other := addEndpoint(t, pool, jobs.Webhook{Name: "other", Scope: "other", Kinds: []jobs.WebhookKind{jobs.WebhookRunWaiting}}, nil)
			look := func(wantWaiting string, wantSent ...string) {
				t.Helper()
				projectAll(t, pool, project)
				mustProject(t, pool, project)
				mustSend(t, pool, toLoopback)
				if got := testdb.Ask[string](t, pool, `select coalesce(string_agg(thread_id, ' ' order by thread_id), '') from agui.waiting()`); got != wantWaiting {
					t.Errorf("%q waits, want %q", got, wantWaiting)
				}
				hook.expect(t, wantSent...)
			}
			// As if the runs had ended earlier.
			pass := func(minutes int) {
				for _, statement := range []string{
					`alter table agui.batch disable trigger user`,
					`update agui.batch set recorded_at = recorded_at - interval '%d minutes'`,
					`alter table agui.batch enable trigger user`,
					`update agui.run set started_at = started_at - interval '%d minutes'`,
					`update agui.projected_interrupt set asked_at = asked_at - interval '%d minutes'`,
					`update agui.webhook set created_at = created_at - interval '%d minutes'`,
					`update agui_internal.webhook_position set calls_since = calls_since - interval '%d minutes'`,
				} {
					testdb.Exec(t, pool, strings.ReplaceAll(statement, "%d", fmt.Sprint(minutes)))
				}
			}
			runOf("r1", ask, finish).appendTo(t, pool, "at once")
			runOf("r1", ask, finish).appendTo(t, pool, "later")
			runOf("r1", ask, finish).appendTo(t, pool, "tried")
			look("")
			pass(40)
			look("")
			runOf("r2", result, finish).appendTo(t, pool, "at once")
			pass(40)
			look("later tried", "run.waiting later r1", "run.waiting tried r1")
			if n := count(t, pool, `select count(*) from agui.interrupt_fact where thread_id = 'at once'`); n != 0 {
				t.Errorf("%d facts about what was answered at once", n)
			}
			body := hook.notices()[0].body
			var sent struct {
				Data struct {
					Status string
					Calls  []struct{ ToolCallID, Tool string }
				}
			}
			if err := json.Unmarshal([]byte(body), &sent); err != nil || sent.Data.Status != "finished" || len(sent.Data.Calls) != 1 || sent.Data.Calls[0].ToolCallID != "c1" || sent.Data.Calls[0].Tool != "erase" ||
				strings.Contains(body, "interrupts") || strings.Contains(body, `it`+`\"`) {
				t.Errorf("the body is %s (%v)", body, err)
			}
			// A run that goes on answers; if it breaks off, the call waits as before, which is sent once.
			runOf("r2").appendTo(t, pool, "tried")
			look("later", "run.waiting later r1", "run.waiting tried r1")
			testdb.Exec(t, pool, `select agui.abandon('tried', 'r2', 'killed')`)
			runOf("r2", finish).appendTo(t, pool, "later") // it says nothing of the call
			look("later tried", "run.waiting later r1", "run.waiting tried r1", "run.waiting tried r2")
			look("later tried", "run.waiting later r1", "run.waiting tried r1", "run.waiting tried r2")
			runOf("r3", result, finish).appendTo(t, pool, "tried")
			runOf("r3", result, finish).appendTo(t, pool, "later")
			testdb.Exec(t, pool, `select agui.rebuild_facts()`)
			look("", "run.waiting later r1", "run.waiting tried r1", "run.waiting tried r2")
			other.expect(t)
		})
	}
}

// The questions of Agno and ADK, and their answers.
func TestRecordedCallsWait(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	testdb.Exec(t, pool, `select agui.set_setting('call_delay', '0')`)
	for file, want := range map[string][]string{
		"agno-approval": {"erase", "erase", "erase"}, // without its inputs nothing brings the answer
		"adk-approval":  {"erase", "", ""},
	} {
		for i, run := range recorded.Read(t, filepath.Join("../testdata/recordings/field", file+".ndjson")) {
			events := must.Have(json.Marshal(run.Events))(t)
			testdb.Exec(t, pool, `select agui.append($1, $2, $3)`, run.ThreadID, run.RunID, string(events))
			projectAll(t, pool, projections["SQL"])
			mustProject(t, pool, projections["SQL"])
			got := testdb.Ask[string](t, pool, `select coalesce(string_agg(tool, ' '), '') from agui.waiting() where thread_id = $1`, run.ThreadID)
			if got != want[i] {
				t.Errorf("%s: after run %d %q waits, want %q", file, i+1, got, want[i])
			}
		}
	}
}
