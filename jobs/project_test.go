package jobs_test

import (
	"cmp"
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

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/jobs"
)

var projections = map[string]func(*pgxpool.Pool) error{
	"Go": func(pool *pgxpool.Pool) error {
		_, err := jobs.Project(context.Background(), pool, jobs.ProjectOptions{})
		return err
	},
	"SQL": func(pool *pgxpool.Pool) error {
		_, err := pool.Exec(context.Background(), `call agui.project()`)
		return err
	},
}

func mustProject(t *testing.T, pool *pgxpool.Pool, project func(*pgxpool.Pool) error) {
	t.Helper()
	must.Do(t, project(pool))
}

// projectAll calls the job until all that ended has facts: a transaction in progress in any database of the server holds it back.
func projectAll(t *testing.T, pool *pgxpool.Pool, project func(*pgxpool.Pool) error) {
	t.Helper()
	wait.For(t, "facts of all runs", func() bool {
		mustProject(t, pool, project)
		return count(t, pool, `
			select count(*) from agui.run left join agui.projected_run as projected using (thread_key, run_no)
			where status <> 'running' and projected.changed_in is distinct from run.changed_in`) == 0
	})
}

// facts are all rows of the views, as text.
func facts(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	lines := testdb.List[string](t, pool, `
		select concat_ws('|', 'run', thread_id, run_id, parent_run_id, status, error_code, error_message, duration, first_token_after, events, bytes)
		from agui.run_fact where status <> 'running'
		union all
		select concat_ws('|', 'tool', thread_id, run_id, call_id, tool, status, coalesce(error, '-'), started_at::text, coalesce(duration::text, '-'),
			argument_bytes, coalesce(result_bytes::text, '-'), coalesce(result_run_id, '-'))
		from agui.tool_fact
		union all
		select concat_ws('|', 'interrupt', thread_id, run_id, interrupt_id, reason, tool_call_id, asked_at::text, coalesce(expires_at::text, '-'), status, answered_by)
		from agui.interrupt_fact
		union all
		select concat_ws('|', 'usage', thread_id, run_id, provider, model, input_tokens, output_tokens, total_tokens)
		from agui.usage_fact`)
	slices.Sort(lines)
	return lines
}

// A run as the slow program below reads it.
type factRun struct {
	Thread, ID, Parent, Status string
	No, ParentNo               int
	Started, Ended             time.Time
	ErrorCode, ErrorMessage    string
	Input                      json.RawMessage
	Events                     []factEvent
	calls                      map[string]*factCall
}

type factEvent struct {
	At                                                   time.Time
	Payload                                              json.RawMessage
	Type, ToolCallID, ToolCallName, Delta, Code, Message string
	Content, Input                                       json.RawMessage
	Error                                                string
	Outcome                                              struct {
		Interrupts []struct {
			ID, Reason, ToolCallID string
			ExpiresAt              *time.Time
		}
	}
	Usage []struct {
		Provider, Model           string
		InputTokens, OutputTokens *int64
	}
}

type factCall struct {
	tool, err                                          string
	started, resultAt                                  time.Time
	arguments, result                                  int
	has, hasStart, hasEnd, hasResult, isAnswer, goesOn bool
}

func toolError(member string, content json.RawMessage) string {
	var text string
	_ = json.Unmarshal(content, &text)
	_ = json.Unmarshal([]byte(text), &text) // a string in a string
	switch {
	case member != "":
		return member
	case strings.HasPrefix(text, "Error:"), strings.HasPrefix(text, `{"error":"`), strings.Contains(text, `"isError":true`):
		return text
	}
	return ""
}

// factsOfLog computes the same as facts from the log alone, in the plainest way.
func factsOfLog(t *testing.T, pool *pgxpool.Pool) (lines []string) {
	t.Helper()
	rows, err := pool.Query(t.Context(), `
		select thread_id as thread, run_id as id, coalesce((select run_id from agui.run as parent where parent.thread_key = run.thread_key and parent.run_no = run.parent_no), '') as parent,
			status, run_no as no, coalesce(parent_no, 0) as parent_no, started_at as started, ended_at as ended, '' as error_code, '' as error_message,
			(select input from agui.input where input.thread_key = run.thread_key and input.run_no = run.run_no)::json as input
		from agui.run join agui.thread using (thread_key) where status <> 'running' order by thread_id, run_no`)
	must.Do(t, err)
	runs, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r *factRun, err error) {
		r = &factRun{calls: map[string]*factCall{}}
		return r, row.Scan(&r.Thread, &r.ID, &r.Parent, &r.Status, &r.No, &r.ParentNo, &r.Started, &r.Ended, &r.ErrorCode, &r.ErrorMessage, &r.Input)
	})
	must.Do(t, err)
	byNo := map[string]*factRun{}
	duration := func(d time.Duration) string {
		return testdb.Ask[string](t, pool, `select $1::interval::text`, d)
	}
	stamp := func(at time.Time) string {
		return testdb.Ask[string](t, pool, `select $1::timestamptz::text`, at)
	}
	for _, r := range runs {
		byNo[fmt.Sprint(r.Thread, "/", r.No)] = r
		rows, err := pool.Query(t.Context(), `select recorded_at, payload from agui.event where thread_id = $1 and run_id = $2 order by seq`, r.Thread, r.ID)
		must.Do(t, err)
		r.Events, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (e factEvent, err error) {
			if err := row.Scan(&e.At, &e.Payload); err != nil {
				return e, err
			}
			return e, json.Unmarshal(e.Payload, &e)
		})
		must.Do(t, err)
		call := func(id string) *factCall {
			if r.calls[id] == nil {
				r.calls[id] = &factCall{}
			}
			return r.calls[id]
		}
		chunk := ""
		var end, finished *factEvent
		hasFailed := false
		var token time.Time
		for i := range r.Events {
			e := &r.Events[i]
			switch e.Type {
			case "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CHUNK":
				if token.IsZero() {
					token = e.At
				}
			case "TOOL_CALL_START", "TOOL_CALL_CHUNK", "TOOL_CALL_ARGS", "TOOL_CALL_END":
				id := e.ToolCallID
				if e.Type == "TOOL_CALL_CHUNK" {
					id = cmp.Or(id, chunk)
					chunk = id
				}
				if id == "" {
					continue
				}
				c := call(id)
				c.hasStart = c.hasStart || e.Type == "TOOL_CALL_START"
				c.hasEnd = c.hasEnd || e.Type == "TOOL_CALL_END"
				c.arguments += len(e.Delta)
				if e.ToolCallName != "" && !c.has {
					c.has, c.tool, c.started = true, e.ToolCallName, e.At
				}
			case "TOOL_CALL_RESULT":
				c := call(e.ToolCallID)
				c.hasResult, c.resultAt, c.result, c.err = true, e.At, len(e.Content), toolError(e.Error, e.Content)
			case "RUN_STARTED":
				hasFailed = false
			case "RUN_FINISHED", "RUN_ERROR":
				if hasFailed {
					continue
				}
				end, hasFailed = e, e.Type == "RUN_ERROR"
				for _, u := range e.Usage {
					if u.InputTokens != nil || u.OutputTokens != nil {
						finished = e
					}
				}
			}
		}
		code, failure := "", ""
		if r.Status == "failed" || r.Status == "cut_off" {
			code, failure = end.Code, end.Message
		}
		bytes := 0
		for _, e := range r.Events {
			bytes += len(e.Payload)
		}
		parts := []string{"run", r.Thread, r.ID}
		optional := func(texts ...string) {
			for _, text := range texts {
				if text != "" {
					parts = append(parts, text)
				}
			}
		}
		optional(r.Parent, r.Status, code, failure, duration(r.Ended.Sub(r.Started)))
		if !token.IsZero() {
			optional(duration(token.Sub(r.Started)))
		}
		optional(fmt.Sprint(len(r.Events)), fmt.Sprint(bytes))
		lines = append(lines, strings.Join(parts, "|"))

		if r.Status == "interrupted" {
			fate := testdb.Ask[string](t, pool, whatRestoresSay, r.Thread, r.No, end.Outcome.Interrupts[0].ID)
			for _, i := range end.Outcome.Interrupts {
				parts = []string{"interrupt", r.Thread, r.ID}
				optional(i.ID, i.Reason, i.ToolCallID, stamp(end.At))
				switch {
				case i.ExpiresAt == nil:
					optional("-")
				default:
					optional(stamp(*i.ExpiresAt))
				}
				switch {
				case fate != "open" && !(fate == "answered" && i.ExpiresAt != nil): // by a run that continues it
					optional(fate)
				case i.ExpiresAt != nil:
					optional("expired") // in the past, here
				default:
					optional("waiting")
				}
				lines = append(lines, strings.Join(parts, "|"))
			}
		}
		if finished != nil && r.Status != "cut_off" {
			for _, u := range finished.Usage {
				if u.InputTokens == nil && u.OutputTokens == nil {
					continue
				}
				parts = []string{"usage", r.Thread, r.ID}
				optional(u.Provider, u.Model)
				if u.InputTokens != nil {
					optional(fmt.Sprint(*u.InputTokens))
				}
				if u.OutputTokens != nil {
					optional(fmt.Sprint(*u.OutputTokens))
				}
				if u.InputTokens != nil && u.OutputTokens != nil {
					optional(fmt.Sprint(*u.InputTokens + *u.OutputTokens))
				}
				lines = append(lines, strings.Join(parts, "|"))
			}
		}
	}
	for _, r := range runs {
		// A call that is on the lineage goes on.
		for parent := byNo[fmt.Sprint(r.Thread, "/", r.ParentNo)]; parent != nil; parent = byNo[fmt.Sprint(r.Thread, "/", parent.ParentNo)] {
			for id, before := range parent.calls {
				if c := r.calls[id]; before.has && c != nil && c.has {
					c.goesOn = true
				}
			}
		}
	}
	for _, r := range runs {
		for id, c := range r.calls {
			if c.has = c.has && !c.goesOn; !c.has {
				continue
			}
			// Its name and its arguments are those that the conversation has.
			if err := pool.QueryRow(t.Context(), `
				select call.value -> 'function' ->> 'name', octet_length((call.value -> 'function' -> 'arguments')::text) - 2
				from agui.messages($1, $2) as listed
				cross join lateral json_array_elements(listed.message -> 'toolCalls') with ordinality as call (value, place)
				where call.value ->> 'id' = $3 and listed.role = 'assistant'
				order by listed.position, call.place limit 1`, r.Thread, r.ID, id).Scan(&c.tool, &c.arguments); err != nil && !errors.Is(err, pgx.ErrNoRows) {
				t.Fatal(err)
			}
		}
	}
	// What the client answered with the next run.
	for _, r := range runs {
		parent := byNo[fmt.Sprint(r.Thread, "/", r.ParentNo)]
		input := r.Input
		for _, e := range r.Events {
			if e.Type == "RUN_STARTED" && strings.HasPrefix(string(e.Input), "{") {
				input = e.Input
				break
			}
		}
		if parent == nil || input == nil {
			continue
		}
		var given struct {
			Messages []struct {
				ToolCallID, Error string
				Content           json.RawMessage
			}
		}
		must.Do(t, json.Unmarshal(input, &given))
		earlier := func(a, b time.Time) time.Time {
			if b.Before(a) {
				return b
			}
			return a
		}
		for _, message := range given.Messages {
			asked := parent.calls[message.ToolCallID]
			if known := r.calls[message.ToolCallID]; asked == nil || !asked.has || asked.hasResult || known != nil && (known.has || known.hasResult && !known.isAnswer) {
				continue
			}
			r.calls[message.ToolCallID] = &factCall{isAnswer: true, hasResult: true, resultAt: earlier(r.Started, parent.Ended), result: len(message.Content), err: toolError(message.Error, message.Content)}
		}
	}
	for _, r := range runs {
		for id, c := range r.calls {
			if !c.has {
				continue
			}
			from, result := r, c
			if !c.hasResult {
				for _, later := range runs {
					if other := later.calls[id]; later.Thread == r.Thread && later.No > r.No && other != nil && !other.has && other.hasResult {
						from, result = later, other
						break
					}
				}
			}
			status, failure, took, size, by := "called", "-", "-", "-", "-"
			switch {
			case result.hasResult:
				status, took, size, by = "completed", duration(result.resultAt.Sub(c.started)), fmt.Sprint(result.result), from.ID
				if result.err != "" {
					status, failure = "failed", result.err
				}
			case slices.Contains([]string{"cancelled", "failed", "cut_off"}, r.Status) || c.hasStart && !c.hasEnd:
				status = "cut_off"
			}
			lines = append(lines, strings.Join([]string{
				"tool", r.Thread, r.ID, id, c.tool, status, failure, stamp(c.started), took, fmt.Sprint(c.arguments), size, by,
			}, "|"))
		}
	}
	slices.Sort(lines)
	return lines
}

// factStep is something that happens to a conversation.
func appendFactRun(t *testing.T, random *rand.Rand, store *pgagui.Store, thread, run string, earlier []string) {
	t.Helper()
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	ref := pgagui.RunRef{ThreadID: thread, RunID: run}
	options := pgagui.AppendOptions{AfterSeq: new(int64)}
	start := map[string]any{"type": "RUN_STARTED"}
	if len(earlier) > 0 && random.IntN(2) == 0 {
		start["parentRunId"] = earlier[random.IntN(len(earlier))]
	}
	var messages []map[string]any
	for call := range random.IntN(4) {
		messages = append(messages, map[string]any{
			"id": fmt.Sprint("answer ", run, call), "role": "tool", "toolCallId": fmt.Sprint("call ", random.IntN(6)),
			"content": pick("done", "Error: no such file", `{"error":"denied"}`, `{"ok":1}`), "error": pick("", "", "the client refused"),
		})
	}
	if messages != nil {
		input := map[string]any{"threadId": thread, "runId": run, "messages": messages}
		if random.IntN(2) == 0 {
			start["input"] = input
		} else {
			options.Input, _ = json.Marshal(input)
		}
	}
	events := []map[string]any{start}
	add := func(event map[string]any) { events = append(events, event) }
	for range random.IntN(12) {
		call := fmt.Sprint("call ", random.IntN(6))
		switch random.IntN(7) {
		case 0:
			add(map[string]any{"type": "TEXT_MESSAGE_CHUNK", "messageId": "m" + run, "delta": "Hello \u00e9"})
		case 1:
			add(map[string]any{"type": "TOOL_CALL_START", "toolCallId": call, "toolCallName": pick("search", "book")})
		case 2:
			add(map[string]any{"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": pick("{", "abc", "}")})
		case 3:
			add(map[string]any{"type": "TOOL_CALL_END", "toolCallId": call})
		case 4:
			add(map[string]any{"type": "TOOL_CALL_RESULT", "toolCallId": call, "messageId": "r" + call, "content": pick("fine", "Error: broken", "Errors are fine", `{"isError":true}`, `{"error":null}`, `{"error": null}`, `"Error: in a string"`, `"{\"error\":\"in a string\"}"`)})
		case 5:
			chunk := map[string]any{"type": "TOOL_CALL_CHUNK", "delta": "xy"}
			if random.IntN(2) == 0 {
				chunk["toolCallId"], chunk["toolCallName"] = call, "chunked"
			}
			add(chunk)
		case 6:
			add(map[string]any{"type": "CUSTOM", "name": "TOOL_CALL_START", "value": "\\u0041 RUN_FINISHED"})
		}
	}
	end := func() {
		finish := map[string]any{"type": "RUN_FINISHED"}
		switch random.IntN(5) {
		case 0:
			interrupt := map[string]any{"id": "i" + run, "reason": pick("tool_call", "input"), "message": "May I?"}
			if random.IntN(2) == 0 {
				interrupt["expiresAt"] = "2020-01-02T03:04:05Z"
			}
			finish["outcome"] = map[string]any{"type": "interrupt", "interrupts": []any{interrupt, map[string]any{"id": "second", "reason": "x", "toolCallId": "call 1"}}}
		case 1:
			finish = map[string]any{"type": "RUN_ERROR", "message": "it broke", "code": pick("E1", "E2")}
		case 2:
			finish["outcome"] = map[string]any{"type": "cancelled"}
		}
		if random.IntN(2) == 0 {
			finish["usage"] = []any{
				map[string]any{"provider": "p", "model": pick("a", "b"), "inputTokens": random.IntN(100), "outputTokens": random.IntN(100)},
				map[string]any{"model": "nothing"},
			}
		}
		add(finish)
	}
	ends := random.IntN(8) > 0
	if ends {
		end()
		if random.IntN(4) == 0 { // late events, and sometimes another end
			add(map[string]any{"type": "CUSTOM", "name": "late", "value": 1})
			if random.IntN(2) == 0 {
				end()
			}
		}
	}
	for chunk := range slices.Chunk(events, 1+random.IntN(6)) {
		var raw []json.RawMessage
		for _, event := range chunk {
			text := must.Have(json.Marshal(event))(t)
			raw = append(raw, text)
		}
		last := must.Have(store.Append(t.Context(), ref, raw, options))(t)
		options.Input, options.AfterSeq = nil, &last
	}
	if !ends {
		must.Have(store.Abandon(t.Context(), ref, pgagui.AbandonOptions{Reason: "gone"}))(t)
	}
}

// However the job is called in between, the facts are those that a slow, obvious program finds in the log.
func TestFactsAreThoseOfTheLog(t *testing.T) {
	t.Parallel()
	for name, project := range projections {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			store := pgagui.New(pool, nil)
			testdb.Exec(t, pool, `select agui.set_setting('call_delay', '1 day')`) // the slow program knows no calls that wait
			random := rand.New(rand.NewPCG(*firstSeed, uint64(len(name))))
			runs := map[string][]string{}
			for i := range 150 {
				thread := fmt.Sprint("t", random.IntN(12))
				run := fmt.Sprint("r", i)
				appendFactRun(t, random, store, thread, run, runs[thread])
				runs[thread] = append(runs[thread], run)
				switch random.IntN(12) {
				case 0, 1, 2:
					mustProject(t, pool, project)
				case 3:
					testdb.Exec(t, pool, `call agui.compact()`)
				case 4:
					testdb.Exec(t, pool, `call agui.repack(older_than => '0')`)
				}
			}
			check := func(when string) {
				t.Helper()
				got, want := facts(t, pool), factsOfLog(t, pool)
				if !slices.Equal(got, want) {
					for _, line := range got {
						if !slices.Contains(want, line) {
							t.Errorf("%s: not in the log: %s", when, line)
						}
					}
					for _, line := range want {
						if !slices.Contains(got, line) {
							t.Errorf("%s: missing: %s", when, line)
						}
					}
				}
			}
			projectAll(t, pool, project)
			check("after the last call")
			kinds := map[string]int{}
			for _, line := range facts(t, pool) {
				kinds[line[:strings.IndexByte(line, '|')]]++
			}
			if len(slices.Collect(maps.Keys(kinds))) != 4 || kinds["tool"] < 30 {
				t.Errorf("the log has too little of a kind: %v", kinds)
			}
			if n := count(t, pool, `select count(*) from agui.tool_fact where result_run_id <> run_id`); n == 0 {
				t.Error("no call has a result of a later run")
			}
			testdb.Exec(t, pool, `call agui.compact(); `)
			testdb.Exec(t, pool, `call agui.repack(older_than => '0')`)
			testdb.Exec(t, pool, `select agui.rebuild_facts()`)
			projectAll(t, pool, project)
			check("rebuilt")
			for thread := range runs {
				if found := damageOf(t, store, thread); len(found) > 0 {
					t.Errorf("%s: %v", thread, found)
				}
			}
			if n, err := jobs.Project(t.Context(), pool, jobs.ProjectOptions{}); err != nil || n.Runs != 0 {
				t.Errorf("a call with nothing to do reads %d runs, %v", n.Runs, err)
			}
		})
	}
}

// A transaction that is in progress holds back what came after it, and nothing is lost when it commits or rolls back.
func TestFactsWaitForTransactionsInProgress(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	mustProject(t, pool, projections["SQL"])
	for _, commits := range []bool{true, false} {
		tx, err := pool.Begin(t.Context())
		must.Do(t, err)
		slow := fmt.Sprint("slow ", commits)
		testdb.Exec(t, tx, `select agui.append($1, 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]')`, slow)
		appendRun(t, store, fmt.Sprint("fast ", commits), "r", "")
		mustProject(t, pool, projections["SQL"])
		if commits {
			err = tx.Commit(t.Context())
		} else {
			err = tx.Rollback(t.Context())
		}
		must.Do(t, err)
		projectAll(t, pool, projections["Go"])
	}
	if n := count(t, pool, `select count(*) from agui.run_fact where events is not null`); n != 3 {
		t.Errorf("%d runs have facts, of 3", n)
	}
}

// A run that fails goes into quarantine, and the others of its group have facts.
func TestARunWithoutFactsIsNamed(t *testing.T) {
	t.Parallel()
	for name, project := range projections {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			store := pgagui.New(pool, nil)
			for i := range 5 {
				appendRun(t, store, fmt.Sprint("t", i), "r", "", `{"type":"TOOL_CALL_START","toolCallId":"`+fmt.Sprint("call ", i)+`","toolCallName":"f"}`)
			}
			testdb.Exec(t, pool, `alter table agui.projected_call add constraint poison check (call_id <> 'call 3')`)
			wait.For(t, "facts of the other runs", func() bool {
				mustProject(t, pool, project)
				// A run that changed is read whatever its note says.
				unread := `select count(*) from agui.run join agui_internal.projection as state on run.changed_in > state.changed_in`
				return count(t, pool, `select count(*) from agui.tool_fact`) == 4 && count(t, pool, unread) == 0
			})
			if n := count(t, pool, `select count(*) from agui.quarantine where job = 'project' and thread_id = 't3' and error like '%poison%'`); n != 1 {
				t.Errorf("%d runs are named", n)
			}
			testdb.Exec(t, pool, `update agui_internal.job_note set next_at = now() + interval '1 hour'`)
			testdb.Exec(t, pool, `alter table agui.projected_call drop constraint poison`)
			mustProject(t, pool, project)
			if n := count(t, pool, `select count(*) from agui.tool_fact`); n != 4 {
				t.Errorf("it did not wait: %d calls", n)
			}
			testdb.Exec(t, pool, `select agui.retry('project')`)
			mustProject(t, pool, project)
			if n := count(t, pool, `select count(*) from agui.tool_fact`) + count(t, pool, `select count(*) from agui_internal.job_note`); n != 5 {
				t.Errorf("after the retry: %d calls and notes", n)
			}
		})
	}
}

// whatRestoresSay is what became of an interrupt of a run, by what a restore of each run after it has.
const whatRestoresSay = `
	with later as (
		select run.run_no, run.run_id, run.parent_no, run.status, exists (select from agui.interrupts($1, run.run_id) where interrupt_id = $3) as has_it
		from agui.run as run
		where run.thread_key = agui.thread_key('', $1) and run.run_no >= $2
	)
	select case
		when has_it and status = 'running' then 'answering|' || run_id
		when has_it then 'open'
		else concat_ws('|', 'answered', (
			select answer.run_id
			from later as answer
			join later as parent on parent.run_no = answer.parent_no
			where parent.has_it and not answer.has_it
			order by answer.run_no
			limit 1
		))
	end
	from later
	order by run_no desc
	limit 1`

// whatWaits compares agui.waiting with what all interrupts and runs say. Before the job has read how a run ended, what waits
// again may be missing.
func whatWaits(t *testing.T, pool *pgxpool.Pool, agent, scope *string) int64 {
	t.Helper()
	const plain = `
		select interrupt.*
		from agui.interrupt_fact as interrupt
		where status = 'waiting' and ($1::text is null or agent = $1) and ($2::text is null or scope = $2)`
	const listed = `select * from agui.waiting(1000, $1, $2)`
	if n := count(t, pool, fmt.Sprintf(`select count(*) from (%s except all %s) as wrong`, listed, plain), agent, scope); n != 0 {
		t.Fatalf("agui.waiting has %d interrupts that do not wait", n)
	}
	const inOrder = `select count(*) from agui.waiting(3, $1, $2) with ordinality as first
		join (select *, row_number() over (order by asked_at, thread_key, run_no) as place from (` + listed + `) as interrupt) as other on other.place = first.ordinality
		where (first.asked_at, first.thread_key, first.run_no) is distinct from (other.asked_at, other.thread_key, other.run_no)`
	if n := count(t, pool, inOrder, agent, scope); n != 0 {
		t.Fatalf("%d of the first three interrupts are others", n)
	}
	return count(t, pool, `select count(*) from (`+listed+`) as listed`, agent, scope)
}

// Whatever happens to conversations, and before the job hears of it, agui.waiting has no interrupt that does not wait; after the job, it has
// all that do.
func TestWhatWaits(t *testing.T) {
	t.Parallel()
	for name, project := range projections {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			random := rand.New(rand.NewPCG(*firstSeed, uint64(len(name))))
			scopes, agents := []string{"", "a", "b"}, []string{"writer", "reader"}
			runs := map[string]int{}
			appendTo := func(scope, thread string, run int, events string) (isStored bool) {
				_, err := pool.Exec(t.Context(), `select agui.append($1, $2, $3, scope => $4)`, thread, fmt.Sprint("r", run), "["+events+"]", scope)
				if err != nil && !errors.Is(pgagui.ErrorOf(err), pgagui.ErrRunEnded) && !errors.Is(pgagui.ErrorOf(err), pgagui.ErrRunInProgress) {
					t.Fatal(err)
				}
				return err == nil
			}
			for i := range 200 {
				scope, thread := scopes[random.IntN(3)], fmt.Sprint("t", random.IntN(4))
				key := scope + "/" + thread
				switch step := random.IntN(20); {
				case step < 12:
					// A run continues one of those before it, and ends, mostly with questions, or not yet.
					start := `{"type":"RUN_STARTED"}`
					if before := runs[key]; before > 0 {
						start = fmt.Sprintf(`{"type":"RUN_STARTED","parentRunId":"r%d"}`, 1+random.IntN(before))
					}
					end := []string{
						``, `,{"type":"RUN_FINISHED"}`, `,{"type":"RUN_ERROR","message":"no"}`,
						`,{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[{"id":"past","expiresAt":"2020-01-02T03:04:05Z"}]}}`,
						`,{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[{"id":"one"},{"id":"two","expiresAt":"2100-01-02T03:04:05Z"}]}}`,
						`,{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[{"id":"past","expiresAt":"2020-01-02T03:04:05Z"},{"id":"one"}]}}`,
					}[random.IntN(6)]
					if appendTo(scope, thread, runs[key]+1, start+end) {
						runs[key]++
					}
				case step < 14 && runs[key] > 0:
					// The end of its last run, if that is in progress.
					appendTo(scope, thread, runs[key], []string{
						`{"type":"RUN_FINISHED"}`, `{"type":"RUN_ERROR","message":"no"}`, `{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[{"id":"again"}]}}`,
						`{"type":"RUN_FINISHED"},{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[{"id":"at last"}]}}`,
					}[random.IntN(4)])
				case step == 14 && runs[key] > 0:
					testdb.Exec(t, pool, `select agui.set_thread($1, agent => $2, archived => $3, scope => $4)`, thread, agents[random.IntN(2)], random.IntN(2) == 0, scope)
				case step == 15 && runs[key] > 0 && random.IntN(3) == 0:
					testdb.Exec(t, pool, `select agui.erase($1, scope => $2), agui.lift_erasure($1, scope => $2)`, thread, scope)
					runs[key] = 0
				case step == 16:
					// Time passes.
					testdb.Exec(t, pool, `update agui.projected_interrupt set expires_at = now() where interrupt_id = 'two' and random() < 0.5`)
				case step == 17:
					// A store that did not have the column.
					testdb.Exec(t, pool, `update agui.projected_interrupt set is_open = null where random() < 0.5`)
				case step == 18 && random.IntN(3) == 0:
					testdb.Exec(t, pool, `select agui.rebuild_facts()`)
				default:
					mustProject(t, pool, project)
				}
				whatWaits(t, pool, nil, nil)
				whatWaits(t, pool, nil, &scope)
				whatWaits(t, pool, &agents[i%2], &scope)
			}
			appendTo("", "last", 1, `{"type":"RUN_STARTED"},{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[{"id":"last"}]}}`)
			wait.For(t, "what waits is open, nothing else is", func() bool {
				mustProject(t, pool, project)
				return count(t, pool, `select count(*) from agui.interrupt_fact where status = 'waiting'`) == whatWaits(t, pool, nil, nil) &&
					count(t, pool, `select count(*) from agui.projected_interrupt where is_open is distinct from agui_internal.may_wait(projected_interrupt)`) == 0 &&
					count(t, pool, `select count(*) from agui.projected_interrupt where is_open and interrupt_id = 'last'`) == 1
			})
		})
	}
}

// In a cluster that did not assign the numbers of the transactions, the job reads all runs.
func TestFactsBeginAgainInAnotherCluster(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	appendRun(t, store, "t", "a", "")
	mustProject(t, pool, projections["SQL"])
	// As a dump of an older cluster with more transactions restores it.
	testdb.Exec(t, pool, `update agui.run set changed_in = '9000000000000'; update agui_internal.projection set epoch = '1/1', changed_in = '9000000000001'`)
	appendRun(t, store, "t", "b", "")
	projectAll(t, pool, projections["SQL"])
	if n := count(t, pool, `select count(*) from agui.run_fact where events is not null`); n != 2 {
		t.Errorf("%d runs have facts, of 2", n)
	}
}

func TestFactsGoWithTheThread(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	random := rand.New(rand.NewPCG(*firstSeed, 3))
	store := pgagui.New(pool, nil)
	for i := range 30 {
		appendFactRun(t, random, store, "t", fmt.Sprint("r", i), nil)
	}
	projectAll(t, pool, projections["SQL"])
	tables := []string{"projected_run", "projected_call", "projected_interrupt", "projected_usage"}
	for _, table := range tables {
		if count(t, pool, `select count(*) from agui.`+table) == 0 {
			t.Errorf("%s is empty", table)
		}
	}
	testdb.Exec(t, pool, `select agui.erase('t')`)
	for _, table := range tables {
		if n := count(t, pool, `select count(*) from agui.`+table); n != 0 {
			t.Errorf("%d rows are left in %s", n, table)
		}
	}
}

// damageOf are the problems of a thread that are no notes.
func damageOf(t *testing.T, store *pgagui.Store, thread string) (found []string) {
	t.Helper()
	problems := must.Have(store.Maintenance().Verify(t.Context(), thread))(t)
	for _, problem := range problems {
		if problem.Severity == pgagui.Damage {
			found = append(found, problem.RunID+": "+problem.Problem)
		}
	}
	return found
}

// Facts that are not those of the log are damage, which names the run.
func TestVerifyFindsWrongFacts(t *testing.T) {
	t.Parallel()
	for _, change := range []struct{ statement, about string }{
		{`update agui.projected_run set events = events + 1 where run_no = 3`, "the run"},
		{`update agui.projected_call set tool = 'other' where (run_no, place) = (select run_no, place from agui.projected_call where tool is not null limit 1)`, "its tool calls"},
		{`delete from agui.projected_call where (run_no, place) = (select run_no, place from agui.projected_call where tool is not null limit 1)`, "its tool calls"},
		{`insert into agui.projected_usage (thread_key, run_no, place, model) values (agui.thread_key('', 't'), 2, 9, 'm')`, "its tokens"},
		{`update agui.projected_interrupt set reason = 'changed' where (run_no, place) = (select run_no, place from agui.projected_interrupt limit 1)`, "its interrupts"},
		{`insert into agui.projected_interrupt (thread_key, run_no, place, asked_at, is_open) values (agui.thread_key('', 't'), 30, 9, now(), false)`, "its interrupts"},
		{`insert into agui.projected_call (thread_key, run_no, place, call_id, is_answer) values (agui.thread_key('', 't'), 4711, 1, 'x', false)`, "its tool calls"},
	} {
		t.Run(change.statement, func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			store := pgagui.New(pool, nil)
			random := rand.New(rand.NewPCG(*firstSeed, 4))
			for i := range 30 {
				appendFactRun(t, random, store, "t", fmt.Sprint("r", i), nil)
			}
			projectAll(t, pool, projections["SQL"])
			if found := damageOf(t, store, "t"); len(found) > 0 {
				t.Fatal(found)
			}
			testdb.Exec(t, pool, change.statement)
			if found := damageOf(t, store, "t"); len(found) != 1 || !strings.Contains(found[0], change.about) {
				t.Errorf("in SQL: %v", found)
			}
			if done, err := jobs.Verify(t.Context(), pool, jobs.VerifyOptions{}); err != nil || done.Problems != 1 {
				t.Errorf("in Go: %v, %v", done, err)
			}
			testdb.Exec(t, pool, `delete from agui.projected_call where run_no = 4711; select agui.rebuild_facts()`)
			projectAll(t, pool, projections["SQL"])
			mustProject(t, pool, projections["Go"])
			if found := damageOf(t, store, "t"); len(found) > 0 {
				t.Errorf("rebuilt: %v", found)
			}
		})
	}
}

// inBackground executes a statement, and returns when it has ended or waits for a lock.
func inBackground(t *testing.T, pool *pgxpool.Pool, statement string) chan error {
	t.Helper()
	ended := make(chan error, 1)
	go func() {
		_, err := pool.Exec(t.Context(), statement)
		ended <- err
	}()
	wait.For(t, statement+" has ended or waits", func() bool {
		return len(ended) > 0 ||
			count(t, pool, `select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query = $1 and datname = current_database()`, statement) > 0
	})
	return ended
}

// A step that is in progress while a thread is erased leaves no key of it behind. They do not block each other for ever.
func TestAnErasureWaitsForAStepInProgress(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	testdb.Exec(t, pool, `select agui.append('first', 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]')`)
	testdb.Exec(t, pool, `call agui.project()`)
	testdb.Exec(t, pool, `select agui.append('t', 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]')`)
	testdb.Exec(t, pool, `update agui_internal.projection set scan_key = '00000000-0000-0000-0000-000000000000', scan_no = 0`)
	testdb.Exec(t, pool, `create function public.project_slowly() returns int language plpgsql as $$
		begin
			perform from agui_internal.projection for update;
			perform pg_advisory_lock(1), pg_advisory_unlock(1);
			return agui_internal.project_step();
		end $$`)
	last := testdb.Ask[string](t, pool, `select thread_id from agui.thread order by thread_key desc limit 1`)

	gate := testdb.Begin(t, pool)
	defer func() { _ = gate.Rollback(context.Background()) }()
	testdb.Exec(t, gate, `select pg_advisory_xact_lock(1)`)
	step := inBackground(t, pool, `select public.project_slowly()`)
	erased := inBackground(t, pool, `select agui.erase('`+last+`')`)
	must.Do(t, gate.Rollback(t.Context()))
	for _, ended := range []chan error{step, erased} {
		must.Do(t, <-ended)
	}
	if n := count(t, pool, `select count(*) from agui_internal.projection where agui.thread_key('', $1) in (thread_key, scan_key)`, last); n != 0 {
		t.Error("the projection names the erased thread")
	}
}

// A mapping of usage holds for the facts of all runs, also for those of a first step that was in progress when it was set.
func TestAMappingWaitsForAStepInProgress(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	testdb.Exec(t, pool, `select agui.append('t', 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED","metadata":{"usage":{"prompt":7}}}]')`)
	step := must.Have(pool.Begin(t.Context()))(t)
	defer func() { _ = step.Rollback(context.Background()) }()
	testdb.Exec(t, step, `select agui_internal.project_step()`)
	mapped := inBackground(t, pool, `select agui.map_usage('{metadata,usage}', '{"inputTokens":"prompt"}')`)
	must.Do(t, step.Commit(t.Context()))
	must.Do(t, <-mapped)
	testdb.Exec(t, pool, `call agui.project()`)
	if tokens := count(t, pool, `select coalesce(sum(input_tokens), 0) from agui.usage_fact`); tokens != 7 {
		t.Errorf("%d tokens by the mapping, want 7", tokens)
	}
}
