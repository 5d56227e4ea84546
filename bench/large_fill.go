package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/jobs"
)

// A store of the phase large has a thread for each eventsAThread events, and a scope for each threadsAScope threads.
const (
	eventsAThread = 100
	threadsAScope = 100
)

// modelCounts are how many models a store is copied from: threads that all jobs are done with, threads whose last run no job has read,
// and threads with a run in progress.
type modelCounts struct{ done, waiting, running int }

// of is the length of the queues and the number of runs in progress. They depend on what is written at a time, not on the size of a
// store, so they are the same in both.
func (c modelCounts) of(threads int) (waiting, running int) {
	return min(1000, threads/10), min(100, threads/100)
}

const modelScope = "models"

// fillModels makes threads with the functions of the store, runs the jobs, and keeps a copy of their rows in the schema model.
func (d *database) fillModels(ctx context.Context, counts modelCounts) error {
	for _, statement := range []string{
		// Runs in progress must stay so while the benchmark runs.
		`select agui.set_setting('lease', '1 day')`,
		`select agui.enable_search('english')`,
	} {
		if _, err := d.Exec(ctx, statement); err != nil {
			return err
		}
	}
	store := d.store.InScope(modelScope)
	models := make([]*spokenThread, counts.done+counts.waiting+counts.running)
	for i := range models {
		models[i] = newSpokenThread(fmt.Sprint("model-", i), uint64(i))
		for range models[i].runs - 1 {
			if err := models[i].append(ctx, store, models[i].run(), 5); err != nil {
				return err
			}
		}
	}
	last := func(models []*spokenThread, isRunning bool) error {
		for _, model := range models {
			run := model.run()
			if isRunning {
				run.events = run.events[:len(run.events)/2]
			}
			if err := model.append(ctx, store, run, 5); err != nil {
				return err
			}
		}
		return nil
	}
	if err := last(models[:counts.done], false); err != nil {
		return err
	}
	for i := range models[:counts.done] {
		if err := d.dress(ctx, i); err != nil {
			return err
		}
	}
	if _, err := jobs.Compact(ctx, d.Pool, jobs.CompactOptions{}); err != nil {
		return err
	}
	if _, err := jobs.Repack(ctx, d.Pool, jobs.RepackOptions{OlderThan: new(time.Duration)}); err != nil {
		return err
	}
	if err := d.projectAll(ctx); err != nil {
		return err
	}
	if err := last(models[counts.done:counts.done+counts.waiting], false); err != nil {
		return err
	}
	if err := last(models[counts.done+counts.waiting:], true); err != nil {
		return err
	}
	if _, err := d.Exec(ctx, "create schema model"); err != nil {
		return err
	}
	tables, err := d.filledTables(ctx)
	if err != nil {
		return err
	}
	for _, table := range tables {
		for _, statement := range []string{
			fmt.Sprintf("create table model.%s as select * from agui.%[1]s", table.name),
			fmt.Sprintf("create index on model.%s (thread_key)", table.name),
			fmt.Sprintf("analyze model.%s", table.name),
		} {
			if _, err := d.Exec(ctx, statement); err != nil {
				return err
			}
		}
	}
	return nil
}

// projectAll projects all runs that have ended. A transaction in progress holds the last ones back.
func (d *database) projectAll(ctx context.Context) error {
	for left := 1; left > 0; {
		if _, err := jobs.Project(ctx, d.Pool, jobs.ProjectOptions{}); err != nil {
			return err
		}
		if err := d.QueryRow(ctx, `
			select count(*)
			from agui.run
			left join agui.projected_run as projected using (thread_key, run_no)
			where projected.changed_in is distinct from run.changed_in and run.status <> 'running'`).Scan(&left); err != nil {
			return err
		}
	}
	return nil
}

// dress gives some threads what applications set: an agent, metadata, the archive, session state.
func (d *database) dress(ctx context.Context, i int) error {
	store, thread := d.store.InScope(modelScope), fmt.Sprint("model-", i)
	agent := fmt.Sprint("agent-", i%5)
	changes := pgagui.ThreadChanges{Agent: &agent}
	if i%10 == 3 {
		changes.Archived = new(true)
	}
	if i%4 == 1 {
		changes.Metadata = json.RawMessage(fmt.Sprintf(`{"team":"team-%d"}`, i%3))
	}
	if _, err := store.SetThread(ctx, thread, changes); err != nil {
		return err
	}
	if i%5 == 2 {
		_, err := d.Exec(ctx, `select agui.save_session_state($1, 'settings', '{"theme":"dark"}', scope => $2)`, thread, modelScope)
		return err
	}
	return nil
}

// filledTable is a table whose rows belong to threads, with the expression of each column of a copied row: m is the row of the model, and
// copy the thread that is made of it.
type filledTable struct {
	name, columns, values string
	hasRuns               bool
}

// filledTables returns the tables that have rows.
func (d *database) filledTables(ctx context.Context) (tables []filledTable, err error) {
	rows, err := d.Query(ctx, `
		select c.relname, array_agg(a.attname::text order by a.attnum), array_agg(a.atttypid::regtype::text order by a.attnum)
		from pg_class as c
		join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
		where c.relnamespace = 'agui'::regnamespace and c.relkind = 'r'
		group by c.relname
		having 'thread_key' = any (array_agg(a.attname::text))
		order by c.relname`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	special := map[string]string{
		"thread_key":         "copy.key",
		"thread.scope":       "copy.scope",
		"thread.thread_id":   "copy.id",
		"thread.thread_uid":  "gen_random_uuid()",
		"run.run_id":         "overlay(md5(copy.n || ' ' || m.run_no)::uuid::text placing '4' from 15 for 1)",
		"changed_in":         "case when m.changed_in is not null then (copy.changed_in::text)::xid8 end",
		"scope_key":          "agui_internal.scope_key(copy.key)",
		"input_part.print":   "agui_internal.part_print(uuid_send(copy.key) || convert_to(m.kind, 'UTF8'), agui_internal.json_unguard(m.body::text))",
		"message_text.words": "ts_delete(m.words, agui_internal.word_of('scope', agui_internal.scope_key(m.thread_key)::text)) || array_to_tsvector(array[agui_internal.word_of('scope', agui_internal.scope_key(copy.key)::text)])",
	}
	for rows.Next() {
		var table filledTable
		var names, types []string
		if err := rows.Scan(&table.name, &names, &types); err != nil {
			return nil, err
		}
		var values []string
		for i, name := range names {
			value, isSpecial := special[table.name+"."+name]
			if !isSpecial {
				value, isSpecial = special[name]
			}
			switch {
			case isSpecial:
			case types[i] == "timestamp with time zone":
				value = "m." + name + " + copy.shift"
			default:
				value = "m." + name
			}
			values = append(values, value)
			table.hasRuns = table.hasRuns || name == "run_no"
		}
		table.columns, table.values = strings.Join(names, ", "), strings.Join(values, ", ")
		tables = append(tables, table)
	}
	return tables, rows.Err()
}

// fillCopies makes threads of the models. Rows are stored run by run in the order of time, and keys come at random, as in a store that has
// been written to. The queues of the jobs hold the runs that began last.
func (s *largeStore) fillCopies(ctx context.Context, counts modelCounts, progress func(string)) error {
	// Transactions of the runs, one a thread.
	if err := s.QueryRow(ctx, "select pg_current_xact_id()::text::bigint").Scan(&s.firstChange); err != nil {
		return err
	}
	if _, err := s.Exec(ctx, fmt.Sprintf("do $$ begin for i in 1..%d loop perform pg_current_xact_id(); commit; end loop; end $$", s.threads)); err != nil {
		return err
	}
	waiting, running := counts.of(s.threads)
	if _, err := s.Exec(ctx, `
		create table model.copy as
		select named.n, named.scope, named.id, agui.thread_key(named.scope, named.id) as key, model.thread_key as model_key,
			$2::bigint + named.n as changed_in,
			now() - interval '1 year' * ((named.threads - named.n)::float8 / named.threads) - model.created_at as shift
		from (
			select
				n, $1::int as threads, 'scope-' || n % ($1::int / $3::int) as scope, 'thread-' || n as id,
				case
					when n > $1::int - $8::int then $4::int + $5::int + n % $6::int
					when n > $1::int - $8::int - $7::int then $4::int + n % $5::int
					-- A scope has many models, whatever the number of scopes.
					else (n + n / ($1::int / $3::int)) % $4::int
				end as model_no
			from generate_series(1, $1::int) as n
		) as named
		join model.thread as model on model.thread_id = 'model-' || model_no`,
		s.threads, s.firstChange, threadsAScope, counts.done, counts.waiting, counts.running, waiting, running); err != nil {
		return err
	}
	for _, statement := range []string{"create index on model.copy (n)", "vacuum analyze model.copy"} {
		if _, err := s.Exec(ctx, statement); err != nil {
			return err
		}
	}
	tables, err := s.filledTables(ctx)
	if err != nil {
		return err
	}
	const aStep = 5000
	group, groupContext := errgroup.WithContext(ctx)
	group.SetLimit(min(4, runtime.NumCPU()))
	begun := time.Now()
	for from := 1; from <= s.threads; from += aStep {
		group.Go(func() error {
			if from%(20*aStep) == 1 {
				progress(fmt.Sprintf("%d of %d threads after %s", from-1, s.threads, time.Since(begun).Round(time.Second)))
			}
			return s.copyThreads(groupContext, tables, from, min(from+aStep-1, s.threads))
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if _, err := s.Exec(ctx, `update agui_internal.projection set changed_in = ($1::bigint)::text::xid8, scan_key = null, scan_no = null`,
		s.firstChange+int64(s.threads-waiting-running)); err != nil {
		return err
	}
	if err := s.QueryRow(ctx, `select sum(n) from agui.batch`).Scan(&s.events); err != nil {
		return err
	}
	for _, statement := range []string{"drop schema model cascade", "vacuum (analyze, parallel 2)", "checkpoint"} {
		if _, err := s.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func (s *largeStore) copyThreads(ctx context.Context, tables []filledTable, from, to int) error {
	tx, err := s.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx)
	// The rows keep the rules that foreign keys check, because those of the models do.
	if _, err := tx.Exec(ctx, "set local session_replication_role = replica; set local work_mem = '256MB'; set local jit = off; set local synchronous_commit = off"); err != nil {
		return err
	}
	for _, table := range tables {
		order := "copy.n"
		if table.hasRuns {
			order = "m.run_no, copy.n"
		}
		if _, err := tx.Exec(ctx, fmt.Sprintf(`
			insert into agui.%s (%s)
			select %s
			from model.copy as copy
			join model.%[1]s as m on m.thread_key = copy.model_key
			where copy.n between $1 and $2
			order by %[4]s`, table.name, table.columns, table.values, order), from, to); err != nil {
			return fmt.Errorf("copy rows of agui.%s: %w", table.name, err)
		}
	}
	return tx.Commit(ctx)
}

// spokenThread is a conversation that grows by a run at a time: a question, a call of a tool with its result, and an answer in words. The
// client sends the whole conversation with each run. Events carry no ids of thread and run, so their rows can be copied.
type spokenThread struct {
	id      string
	runs    int // that it has in the end
	random  *rand.Rand
	history []saidMessage
	begun   int
}

type spokenRun struct {
	id     string
	input  json.RawMessage
	events []json.RawMessage
}

// newSpokenThread returns a thread of one to six runs, two on average.
func newSpokenThread(id string, seed uint64) *spokenThread {
	return &spokenThread{id: id, runs: []int{1, 1, 2, 1, 3, 1, 2, 1, 6, 2}[seed%10], random: rand.New(rand.NewPCG(seed, 3))}
}

var spokenWords = func() (words []string) {
	for first := range strings.FieldsSeq("re un in de con pro per dis trans over under inter sub fore out") {
		for second := range strings.FieldsSeq("port form mand ject tract vert spect sign plain quire late cover mark turn work date bill ship pay claim") {
			words = append(words, first+second, first+second+"s")
		}
	}
	return words
}()

func (t *spokenThread) said(count int) string {
	words := make([]string, count)
	for i := range words {
		words[i] = spokenWords[t.random.IntN(len(spokenWords))]
	}
	return strings.Join(words, " ")
}

// run returns the next run: some 50 events. One of 25 fails, one of 50 ends with an interrupt, one of 100 is cancelled.
func (t *spokenThread) run() spokenRun {
	t.begun++
	no := t.begun
	call, answer, result := fmt.Sprint("call-", no), fmt.Sprint("answer-", no), fmt.Sprintf(`{"found":%d,"text":%q}`, t.random.IntN(100), t.said(15))
	if t.random.IntN(20) == 0 {
		result = `{"error":"no connection"}`
	}
	t.history = append(t.history, saidMessage{ID: fmt.Sprint("question-", no), Role: "user", Content: t.said(10 + t.random.IntN(20))})
	run := spokenRun{id: fmt.Sprint("run-", no)}
	run.input, _ = json.Marshal(map[string]any{"messages": t.history, "tools": []any{}, "context": []any{}}) // of strings
	send := func(event map[string]any) {
		text, _ := json.Marshal(event)
		run.events = append(run.events, text)
	}
	send(map[string]any{"type": "RUN_STARTED"})
	if no == 1 {
		send(map[string]any{"type": "STATE_SNAPSHOT", "snapshot": map[string]any{"steps": 0, "topic": t.said(3)}})
	} else {
		send(map[string]any{"type": "STATE_DELTA", "delta": []any{map[string]any{"op": "replace", "path": "/steps", "value": no}}})
	}
	send(map[string]any{"type": "TOOL_CALL_START", "toolCallId": call, "toolCallName": []string{"look_up", "pay", "ship"}[t.random.IntN(3)]})
	send(map[string]any{"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": "{}"})
	send(map[string]any{"type": "TOOL_CALL_END", "toolCallId": call})
	send(map[string]any{"type": "TOOL_CALL_RESULT", "messageId": "result of " + call, "toolCallId": call, "content": result})
	send(map[string]any{"type": "TEXT_MESSAGE_START", "messageId": answer, "role": "assistant"})
	said := t.said(25 + t.random.IntN(35))
	for piece := range strings.SplitAfterSeq(said, " ") {
		send(map[string]any{"type": "TEXT_MESSAGE_CONTENT", "messageId": answer, "delta": piece})
	}
	send(map[string]any{"type": "TEXT_MESSAGE_END", "messageId": answer})
	switch end := t.random.IntN(100); {
	case end < 4:
		send(map[string]any{"type": "RUN_ERROR", "message": "the model does not answer", "code": "timeout"})
	case end < 6:
		send(map[string]any{"type": "RUN_FINISHED", "outcome": map[string]any{"type": "interrupt", "interrupts": []any{map[string]any{"id": "ask", "reason": "approval"}}}})
	case end < 7:
		send(map[string]any{"type": "RUN_FINISHED", "outcome": map[string]any{"type": "cancelled"}})
	default:
		send(map[string]any{"type": "RUN_FINISHED", "usage": []any{map[string]any{"provider": "p", "model": fmt.Sprint("m", no%3), "inputTokens": 100 + t.random.IntN(900), "outputTokens": len(said) / 4}}})
	}
	t.history = append(t.history,
		saidMessage{ID: call, Role: "assistant", ToolCalls: []any{map[string]any{"id": call, "type": "function", "function": map[string]any{"name": "look_up", "arguments": "{}"}}}},
		saidMessage{ID: "result of " + call, ToolCallID: call, Role: "tool", Content: result},
		saidMessage{ID: answer, Role: "assistant", Content: said})
	return run
}

// append appends a run in calls of this number of events.
func (t *spokenThread) append(ctx context.Context, store *pgagui.Store, run spokenRun, perCall int) error {
	options := pgagui.AppendOptions{Input: run.input}
	for from := 0; from < len(run.events); from += perCall {
		if _, err := store.Append(ctx, pgagui.RunRef{ThreadID: t.id, RunID: run.id}, run.events[from:min(from+perCall, len(run.events))], options); err != nil {
			return err
		}
		options.Input = nil
	}
	return nil
}
