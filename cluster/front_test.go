package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/cluster"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/routes"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testneeds"
)

// newFront returns a front of the cluster, in a database with PL/Proxy.
func (c *three) newFront() *pgxpool.Pool {
	c.t.Helper()
	pool := testdb.Connect(c.t, testdb.Empty(c.t))
	if !testdb.Ask[bool](c.t, pool, `select exists (select from pg_available_extensions where name = 'plproxy')`) {
		testneeds.Skip(c.t, testneeds.PLProxy, "the server has no PL/Proxy")
	}
	c.makeFront(pool)
	return pool
}

func (c *three) makeFront(pool *pgxpool.Pool) {
	c.t.Helper()
	var text bytes.Buffer
	must.Do(c.t, c.Front(c.t.Context(), &text))
	must.Have(pool.Exec(c.t.Context(), text.String(), pgx.QueryExecModeSimpleProtocol))(c.t)
}

// answer is what a call says: its rows as JSON, or its error in full.
func answer(t *testing.T, db testdb.Querier, call string) string {
	var text string
	err := db.QueryRow(t.Context(), `select coalesce(json_agg(answer), '[]')::text from `+call+` as answer`).Scan(&text)
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		return strings.Join([]string{refused.Code, refused.Message, refused.Detail, refused.Hint}, "\n")
	} else if err != nil {
		return err.Error()
	}
	return text
}

// threadNamed returns the id of a thread that node has, which begins with name.
func (c *three) threadNamed(name, scope, node string) string {
	c.t.Helper()
	return testdb.Ask[string](c.t, c.pools["a"], `
		select id from (select $1 || ' ' || n as id from generate_series(1, 10000) as n) as candidate
		where agui_internal.node_of(agui.thread_key($2, id)) = $3 limit 1`, name, scope, node)
}

func fillThread(t *testing.T, pool *pgxpool.Pool, scope, thread string) {
	t.Helper()
	for _, statement := range []string{
		`select agui.append($1, 'r', '[{"type":"RUN_STARTED"},{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","role":"user","delta":"it''s a \\ word"},
			{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f"},{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{}"},{"type":"TOOL_CALL_END","toolCallId":"c"},
			{"type":"TOOL_CALL_RESULT","messageId":"tm","toolCallId":"c","content":"done","role":"tool"},
			{"type":"STATE_SNAPSHOT","snapshot":{"a":[1,"\"x\""]}},{"type":"ACTIVITY_SNAPSHOT","messageId":"a","activityType":"plan","content":{"steps":[]}},
			{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"why"}]},"usage":[{"model":"mm","inputTokens":7,"totalTokens":9}]}]', input => '{"messages":[{"id":"u","role":"user","content":[{"type":"binary","mimeType":"image/png","data":"AAEC"}]}]}', scope => $2)`,
		`select agui.append($1, 's', '[{"type":"RUN_STARTED"},{"type":"RUN_ERROR","message":"broken","code":"x"}]', parent_run_id => 'r', scope => $2)`,
		`select agui.append($1, 'p', '[{"type":"RUN_STARTED"}]', parent_run_id => 'r', parallel => true, scope => $2)`,
		`select agui.save_session_state($1, 'k', '{"v":1}', 'r', scope => $2)`,
		`select agui.save_checkpoint($1, 'c', '{"x":1}', scope => $2)`,
		`select agui.put_checkpoint($1, 'g', '{"channel_versions":{"list":1}}', '{"a":1}', 'c', '{list}', '{1}', '{json}', '[[1,2]]', scope => $2)`,
		`select agui.claim_run($1, 'claimed', 'me', parent_run_id => 'r', parallel => true, scope => $2)`,
		`select agui.set_thread($1, title => 'a title', agent => 'bot', metadata => '{"k":1}', scope => $2)`,
	} {
		testdb.Exec(t, pool, statement, thread, scope)
	}
}

// What is given to functions for one thread.
var givenToFunctions = map[string]string{
	"run_id": `'r'`, "run_a": `'r'`, "run_b": `'s'`, "key": `'k'`, "document": `'{"n":2}'`, "checkpoint_id": `'c'`, "events": `'[{"type":"RUN_STARTED"}]'`,
	"claimant": `'me'`, "reason": `'x'`, "message_id": `'m'`, "n": `1`, "task_id": `'task'`, "channels": `'{list}'`, "types": `'{json}'`, "channel_values": `'[1]'`,
	"thread_id": `'%[1]s'`, "scope": `'%[2]s'`, "at_time": `now() + interval '1 hour'`, "session": `'{"threadId":"%[1]s","state":{"n":1}}'`,
	"thread_ids": `'{%[1]s}'`, "after_seqs": `'{1}'`, "run_ids": `'{q}'`, "scopes": `'{"%[2]s"}'`, "messages": `'[{"type":"user","content":"x"}]'`,
	"sessions": `'[{"threadId":"%[1]s","state":{"n":2}}]'`, "doc": `'{}'`, "patch": `'[]'`, "query": `'word'`,
}

// Each function of a node, through the front and on the node of the thread: the same answer, or the same error.
func TestAFrontAnswersAsTheNodesDo(t *testing.T) {
	c := newThree(t, nil)
	testdb.Exec(t, c.pools["a"], `select agui.enable_search()`)
	for _, other := range []string{"b", "c"} {
		testdb.Exec(t, c.pools[other], `select agui.enable_search()`)
	}
	c.rebalance()
	front := c.newFront()
	scopes := []string{"", "it's"}
	threads := map[string][]string{}
	for _, node := range []string{"a", "b", "c"} {
		testdb.Exec(t, c.pools[node], `select agui.enable_chain()`)
		for i, scope := range scopes {
			threads[node] = append(threads[node], c.threadNamed("t", scope, node))
			fillThread(t, c.pools[node], scope, threads[node][i])
		}
		testdb.Exec(t, c.pools[node], `select agui.append($1, 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"why"}]}}]')`, c.threadNamed("asks", "", node))
		testdb.Exec(t, c.pools[node], `call agui.project()`)
	}

	type function struct {
		Name                string
		Arguments, Required []string
		Volatile, Procedure bool
	}
	rows, err := c.pools["a"].Query(t.Context(), `
		select proname, coalesce(proargnames[: pronargs], '{}'), coalesce(proargnames[: pronargs - pronargdefaults], '{}'), provolatile = 'v', prokind = 'p'
		from pg_proc where pronamespace = 'agui'::regnamespace and prokind <> 'a' order by proname`)
	must.Do(t, err)
	functions := must.Have(pgx.CollectRows(rows, pgx.RowToStructByPos[function]))(t)
	all := must.Have(routes.Of())(t)
	made := 0
	var carried []string
	for _, f := range functions {
		route := all[f.Name]
		var given []string
		for _, name := range f.Arguments {
			isRequired := slices.Contains(f.Required, name)
			value := givenToFunctions[name]
			switch {
			case f.Name == "append_many" && name == "events":
				value = `array['[{"type":"RUN_STARTED"}]']::json[]`
			case f.Name == "compact_events" && name == "events", value != "" && isRequired:
			case name == "scope" || name == "scopes" || name == "thread_id" && route.By != routes.NoData || name == "at_time" && !f.Volatile:
			case isRequired:
				value = "null"
			default:
				continue
			}
			given = append(given, name+" => "+value)
		}
		call := "agui." + f.Name + "(" + strings.Join(given, ", ") + ")"
		fill := func(thread, scope string) string {
			return strings.NewReplacer("%[1]s", thread, "%[2]s", strings.ReplaceAll(scope, "'", "''")).Replace(call)
		}
		made++
		if route.Front != routes.Refused && route.Front != routes.Local && route.By != routes.NoData {
			carried = append(carried, fill(threads["b"][1], scopes[1]))
		}
		switch {
		case route.Front == routes.Refused:
			statement := "select " + fill("t", "")
			if f.Procedure {
				statement = "call " + fill("t", "")
			}
			_, err := front.Exec(t.Context(), statement)
			if testdb.State(err) != "0A000" || !strings.Contains(err.Error(), "agui."+f.Name+": a front of a cluster does not have this") {
				t.Errorf("%s: %v", statement, err)
			}
		case route.Front == routes.Merged: // below
		case route.Front == routes.Local || route.Front == routes.Anywhere:
			if got, want := answer(t, front, fill("t", "s")), answer(t, c.pools["b"], fill("t", "s")); got != want {
				t.Errorf("%s:\n%s\non a node:\n%s", call, got, want)
			}
		case !f.Volatile:
			for node, of := range threads {
				for i, scope := range scopes {
					for _, thread := range []string{of[i], c.threadNamed("unborn", scope, node)} {
						call := fill(thread, scope)
						if got, want := answer(t, front, call), answer(t, c.pools[node], call); got != want {
							t.Errorf("%s:\n%s\non node %s:\n%s", call, got, node, want)
						}
					}
				}
			}
		default:
			// It changes something: of two threads that are alike, one is changed through the front.
			for _, node := range []string{"c"} {
				scope := scopes[1]
				one, other := c.threadNamed(f.Name+" one", scope, node), c.threadNamed(f.Name+" other", scope, node)
				fillThread(t, c.pools[node], scope, one)
				fillThread(t, c.pools[node], scope, other)
				for range 2 { // the second time many are refused, or a repeat
					alike := strings.NewReplacer(one, "THREAD", other, "THREAD")
					got, want := alike.Replace(answer(t, front, fill(one, scope))), alike.Replace(answer(t, c.pools[node], fill(other, scope)))
					if maskedTimes(got) != maskedTimes(want) {
						t.Errorf("%s:\n%s\non node %s:\n%s", call, got, node, want)
					}
				}
				for _, read := range []string{"agui.runs('%s', scope => 'it''s')", "agui.restore('%s', scope => 'it''s')", "agui.load_session('%s', scope => 'it''s')", "agui.checkpoints('%s', scope => 'it''s')"} {
					alike := strings.NewReplacer(one, "THREAD", other, "THREAD")
					got, want := alike.Replace(answer(t, c.pools[node], fmt.Sprintf(read, one))), alike.Replace(answer(t, c.pools[node], fmt.Sprintf(read, other)))
					if maskedTimes(got) != maskedTimes(want) {
						t.Errorf("after %s %s:\n%s\non node %s:\n%s", call, read, got, node, want)
					}
				}
			}
		}
	}
	if made < 120 {
		t.Errorf("only %d functions", made)
	}
	t.Run("merged", func(t *testing.T) { c.checkMerged(t, front) })

	// The front calls as one role, which row-level security may not apply to: once it is on, the nodes refuse what they cannot judge.
	for _, node := range c.pools {
		testdb.Exec(t, node, `call agui.enable_row_security()`)
	}
	for _, call := range carried {
		if got := answer(t, front, call); !strings.HasPrefix(got, "42501\nthe front was made before row-level security") {
			t.Errorf("under row-level security %s: %s", call, got)
		}
	}
}

// rebalance gives each node a third of the buckets.
func (c *three) rebalance() {
	c.t.Helper()
	must.Have(c.Rebalance(c.t.Context(), cluster.MoveOptions{}))(c.t)
}

// What differs between two threads that are alike: times, keys, and ids of transactions.
var timeForm = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ][0-9:.]+([+-]\d\d:?\d\d|\+00)?|\d\d:\d\d:\d\d(\.\d+)?|"erased_in":"\d+"|[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}`)

// checkMerged compares the lists and reports of the front with those of all nodes.
func (c *three) checkMerged(t *testing.T, front *pgxpool.Pool) {
	var runs, threads, found []string
	collect := func(list *[]string, db *pgxpool.Pool, query string) {
		got := testdb.List[string](t, db, query)
		*list = append(*list, got...)
	}
	const (
		ofThreads = `select cursor || ' ' || thread_id || ' ' || title from agui.threads(max_rows => 1000, scope => 'it''s')`
		ofRuns    = `select cursor || ' ' || thread_id || ' ' || run_id from agui.list_runs('{failed,interrupted}', max_rows => 1000, scope => 'it''s')`
		ofTexts   = `select thread_id || ' ' || message_id from agui.search('word', max_rows => 1000)`
	)
	for _, node := range c.pools {
		collect(&threads, node, ofThreads)
		collect(&runs, node, ofRuns)
		collect(&found, node, ofTexts)
	}
	descending := func(list []string) []string {
		slices.Sort(list)
		slices.Reverse(list)
		return list
	}
	var got []string
	if collect(&got, front, ofThreads); len(got) < 20 || !slices.Equal(got, descending(threads)) {
		t.Errorf("threads:\n%s\nof all nodes:\n%s", strings.Join(got, "\n"), strings.Join(threads, "\n"))
	}
	got = nil
	if collect(&got, front, ofRuns); len(got) < 20 || !slices.Equal(got, descending(runs)) {
		t.Errorf("runs:\n%s\nof all nodes:\n%s", strings.Join(got, "\n"), strings.Join(runs, "\n"))
	}
	got = nil
	if collect(&got, front, ofTexts); len(got) < 3 || !slices.Equal(descending(got), descending(found)) {
		t.Errorf("texts:\n%s\nof all nodes:\n%s", got, found)
	}
	// In pages: each row once, and in order.
	for _, list := range []struct {
		name, query string
		want        []string
	}{
		{"threads", `select page.next_cursor, array(select thread.cursor || ' ' || thread.thread_id || ' ' || thread.title from unnest(page.threads) as thread) from agui.thread_page(max_rows => 4, cursor => $1, scope => 'it''s') as page`, threads},
		{"threads with a filter", `select page.next_cursor, array(select thread.cursor || ' ' || thread.thread_id || ' ' || thread.title from unnest(page.threads) as thread) from agui.thread_page(title => 'TITLE', max_rows => 3, cursor => $1, scope => 'it''s') as page`, threads},
		{"runs", `select case when count(*) = 5 then min(cursor) end, array_agg(cursor || ' ' || thread_id || ' ' || run_id) from agui.list_runs('{failed,interrupted}', max_rows => 5, cursor => $1, scope => 'it''s')`, runs},
	} {
		var cursor *string
		var all []string
		for range 100 {
			var page []*string
			if err := front.QueryRow(t.Context(), list.query, cursor).Scan(&cursor, &page); err != nil {
				t.Fatal(list.name, err)
			}
			for _, row := range page {
				if row != nil {
					all = append(all, *row)
				}
			}
			if cursor == nil {
				break
			}
		}
		if !slices.Equal(all, list.want) {
			t.Errorf("pages of %s:\n%s\nwant\n%s", list.name, strings.Join(all, "\n"), strings.Join(list.want, "\n"))
		}
	}
	// Of a report each figure is the sum.
	for call, columns := range map[string]string{
		"agui.stats(true)":                  "sum(threads), sum(runs), sum(failed_runs), sum(events), bool_and(is_exact)",
		"agui.lag()":                        "sum(runs_to_compact), sum(running_runs), bool_and(is_exact)",
		"agui.day_report(scope => 'it''s')": "sum(threads), sum(runs), sum(failed), sum(events), sum(bytes)",
		"agui.model_report()":               "sum(runs), sum(total_tokens)",
		"agui.waiting(max_rows => 1000)":    "count(*), count(distinct thread_key)",
		"agui.heads('it''s')":               "count(*), count(distinct thread_id)",
	} {
		var parts []string
		for _, node := range c.pools {
			parts = append(parts, testdb.Ask[string](t, node, `select coalesce(json_agg(answer), '[]')::text from `+call+` as answer`))
		}
		kind := testdb.Ask[string](t, front, `select pg_typeof(answer)::text from `+call+` as answer limit 1`)
		if kind == "record" {
			kind = ""
		}
		got := testdb.Ask[string](t, front, `select row(`+columns+`)::text from `+call)
		var want string
		if kind == "" {
			want = testdb.Ask[string](t, front, `select row(`+columns+`)::text from json_to_recordset($1) as answer (day date, threads bigint, runs bigint, failed bigint, events numeric, bytes numeric, total_tokens numeric)`, "["+joined(parts)+"]")
		} else {
			want = testdb.Ask[string](t, front, `select row(`+columns+`)::text from json_populate_recordset(null::`+kind+`, $1)`, "["+joined(parts)+"]")
		}
		if got != want {
			t.Errorf("%s: %s of %s, want %s", call, columns, got, want)
		}
	}
}

// joined puts the items of arrays of JSON into one.
func joined(arrays []string) string {
	var items []string
	for _, array := range arrays {
		if item := strings.TrimSuffix(strings.TrimPrefix(array, "["), "]"); item != "" {
			items = append(items, item)
		}
	}
	return strings.Join(items, ",")
}

// Threads and buckets that move, while the front is used by writers that know nothing of it.
func TestAFrontFollowsMoves(t *testing.T) {
	c := newThree(t, nil)
	front := c.newFront()
	const begun = `'[{"type":"RUN_STARTED"}]'`
	testdb.Exec(t, front, `select agui.append('alone', 'r', `+begun+`)`)
	testdb.Exec(t, front, `select agui.append('near', 'r', `+begun+`)`)
	c.mustMoveThread("", "alone", "c")
	testdb.Exec(t, front, `select agui.append('alone', 'r', '[{"type":"CUSTOM","name":"x","value":1}]')`)
	for call, want := range map[string]string{
		`select agui.head('alone')`: "r",
		`select string_agg(error_code, ',') || count(last_seq) from agui.append_many('{near,alone,near}', '{r,r,r}', array_fill('[{"type":"CUSTOM","name":"y","value":2}]'::json, '{3}'))`: "",
		`select count(*)::text from agui.keep_alive('{near,alone}', '{r,r}')`:                                                                     "0",
		`select string_agg(thread_no || ':' || first_seq || '+' || n, ' ' order by thread_no, first_seq) from agui.poll('{near,alone}', '{0,0}')`: "",
		`select json_array_length(agui.load_sessions('{near,alone}'))::text`:                                                                      "2",
	} {
		var got *string
		if err := front.QueryRow(t.Context(), call).Scan(&got); err != nil || want != "" && *got != want {
			t.Errorf("%s: %v, %v", call, got, err)
		}
	}
	if got := testdb.Ask[string](t, front, `select string_agg(thread_no || ':' || first_seq || '+' || n, ' ' order by thread_no, first_seq) from agui.poll('{near,alone}', '{0,0}')`); got != "1:1+1 1:2+1 1:3+1 2:1+1 2:2+1 2:3+1" {
		t.Errorf("poll: %s", got)
	}
	// A request to stop is heard by each heartbeat, wherever its thread is.
	testdb.Exec(t, front, `select agui.request_stop('alone')`)
	testdb.Exec(t, front, `select agui.request_stop('near')`)
	if got := testdb.Ask[string](t, front, `select string_agg(call_no::text, ',' order by call_no) from agui.keep_alive('{near,alone}', '{r,r}')`); got != "1,2" {
		t.Errorf("keep_alive: %s", got)
	}

	// Writers go on during moves of everything to and fro.
	var working sync.WaitGroup
	var stop atomic.Bool
	written := make([]int, 4)
	for writer := range written {
		working.Go(func() {
			thread := fmt.Sprint("w", writer)
			var seen int64
			tick := time.Tick(4 * time.Millisecond) // as a model
			for n := 0; !stop.Load(); n++ {
				<-tick
				event := `[{"type":"CUSTOM","name":"n","value":` + fmt.Sprint(n) + `}]`
				if n == 0 {
					event = `[{"type":"RUN_STARTED"}]`
				}
				if err := front.QueryRow(context.Background(), `select agui.append($1, 'r', $2, after_seq => $3)`, thread, event, seen).Scan(&seen); err != nil {
					t.Errorf("%s: %v", thread, err)
					return
				}
				written[writer]++
			}
		})
	}
	for _, to := range []string{"b", "c", "a"} {
		if _, err := c.Move(t.Context(), c.bucketsOfThreads("w0", "w1", "w2", "w3", "near", "alone"), to, cluster.MoveOptions{}); err != nil {
			t.Error(err)
		}
	}
	c.rebalance()
	stop.Store(true)
	working.Wait()
	for writer, n := range written {
		if got := testdb.Ask[int](t, front, `select count(*) from agui.events($1)`, fmt.Sprint("w", writer)); n < 10 || got != n {
			t.Errorf("thread w%d has %d events of %d", writer, got, n)
		}
	}
	// By then the front has learned the map.
	testdb.Exec(t, front, `select agui.head('near')`)
	bucket := testdb.Ask[int](t, front, `select agui.bucket('', 'near')`)
	const place = `select node || ' ' || epoch from agui_front.bucket where bucket = $1`
	if got, want := testdb.Ask[string](t, front, place, bucket), testdb.Ask[string](t, c.pools["a"], strings.Replace(place, "agui_front", "agui_internal", 1), bucket); got != want {
		t.Errorf("the front has bucket %d on %s, it is on %s", bucket, got, want)
	}
	// A pinned scope: calls find their node also before the front is written anew.
	must.Have(c.PinScope(t.Context(), "", bucket, cluster.MoveOptions{}))(t)
	const others = `select count(*) from generate_series(1, 12) as n cross join lateral agui_front.node_of('', 'other' || n) as node where node <> $1`
	pinnedTo := testdb.Ask[string](t, c.pools["a"], `select node from agui_internal.bucket where bucket = $1`, bucket)
	testdb.Exec(t, front, `select agui.append('before', 'r', `+begun+`)`)
	if n := testdb.Ask[int](t, front, others, pinnedTo); n == 0 {
		t.Error("the front knows a pin that is newer than its SQL")
	}
	// New SQL over the old.
	c.makeFront(front)
	if n := testdb.Ask[int](t, front, others, pinnedTo); n != 0 {
		t.Errorf("the front sends %d of 12 threads of a pinned scope to another node than %s", n, pinnedTo)
	}
	testdb.Exec(t, front, `select agui.append('behind', 'r', `+begun+`)`)
	if n := testdb.Ask[int](t, c.pools[pinnedTo], `select count(*) from agui.thread where thread_id in ('before', 'behind')`); n != 2 {
		t.Errorf("%d of 2 threads are on the node of the pin", n)
	}
	if got := testdb.Ask[string](t, front, `select agui.head('alone')`); got != "r" {
		t.Errorf("head: %s", got)
	}
	var text bytes.Buffer
	must.Do(t, c.Front(t.Context(), &text))
	if _, err := c.pools["a"].Exec(t.Context(), text.String(), pgx.QueryExecModeSimpleProtocol); err == nil || !strings.Contains(err.Error(), "has a schema agui that is no front") {
		t.Errorf("in a database with a store: %v", err)
	}
}

func (c *three) bucketsOfThreads(threads ...string) (buckets []int) {
	for _, thread := range threads {
		buckets = append(buckets, testdb.Ask[int](c.t, c.pools["a"], `select agui.bucket('', $1)`, thread))
	}
	slices.Sort(buckets)
	return slices.Compact(buckets)
}

// A write commits on its node by itself. So it is refused where the caller could believe that it does not.
func TestAFrontWritesOnlyOutsideOfTransactions(t *testing.T) {
	c := newThree(t, nil)
	front := c.newFront()
	testdb.Exec(t, front, `create table own (n int)`)
	acquired := testdb.Acquire(t, front)
	conn := acquired.Conn()
	n := 0
	begin := func() string {
		n++
		return fmt.Sprintf(`select agui.append('t%d', 'r', '[{"type":"RUN_STARTED"}]')`, n)
	}
	modes := []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeExec, pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec}
	for _, mode := range modes {
		acquired := must.Have(front.Acquire(t.Context()))(t)
		conn := acquired.Conn()
		for range 20 { // also with cached plans, and whatever time a statement takes
			if _, err := conn.Exec(t.Context(), begin(), mode); err != nil {
				t.Errorf("%s: %v", mode, err)
			}
			if _, err := conn.Exec(t.Context(), `select agui.append($1, 'r', $2)`, mode, fmt.Sprint("of ", mode, n), `[{"type":"RUN_STARTED"}]`); err != nil {
				t.Errorf("%s, with arguments: %v", mode, err)
			}
			n++
		}
		must.Do(t, conn.DeallocateAll(t.Context()))
		acquired.Release()
	}
	testdb.Exec(t, conn, `do $$ begin perform agui.append('of a block', 'r', '[{"type":"RUN_STARTED"}]'); end $$`)
	testdb.Exec(t, conn, `insert into own `+begin())

	refuse := func(want string, err error) {
		t.Helper()
		if testdb.State(err) != "25001" || !strings.Contains(err.Error(), "agui.append: "+want+", and a write through a front commits by itself") {
			t.Errorf("want %s: %v", want, err)
		}
	}
	threads := testdb.Ask[int](t, c.pools["a"], `select count(*) from agui.thread`)
	// Of an unnamed statement the front cannot tell: the next tests show what it knows then.
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheStatement} {
		testdb.Exec(t, conn, `begin`)
		_, err := conn.Exec(t.Context(), `select agui.append($1, 'r', $2)`, mode, "in a transaction", `[{"type":"RUN_STARTED"}]`)
		refuse("a transaction is open", err)
		testdb.Exec(t, conn, `rollback`)
	}
	for _, mode := range modes {
		testdb.Exec(t, conn, `begin`)
		testdb.Exec(t, conn, `insert into own values (1)`)
		_, err := conn.Exec(t.Context(), `select agui.append('in a transaction', 'r', '[{"type":"RUN_STARTED"}]')`, mode)
		refuse("the transaction has written to this database", err)
		testdb.Exec(t, conn, `rollback`)
	}
	if got := testdb.Ask[int](t, c.pools["a"], `select count(*) from agui.thread`); got != threads {
		t.Errorf("%d threads were begun by refused calls", got-threads)
	}
	// The second write of a transaction, also of one statement.
	testdb.Exec(t, conn, `begin`)
	const unnamed = `select agui.append($1, 'r', '[{"type":"RUN_STARTED"}]')`
	testdb.Exec(t, conn, unnamed, pgx.QueryExecModeExec, "first")
	_, err := conn.Exec(t.Context(), unnamed, pgx.QueryExecModeExec, "second")
	refuse("the transaction has another write through the front", err)
	testdb.Exec(t, conn, `rollback`)
	_, err = conn.Exec(t.Context(), `select agui.append('several ' || n, 'r', '[{"type":"RUN_STARTED"}]') from generate_series(1, 2) as n`)
	refuse("the transaction has another write through the front", err)
	batch := &pgx.Batch{}
	batch.Queue(`select agui.append($1, 'r', $2)`, "pipeline 1", `[{"type":"RUN_STARTED"}]`)
	batch.Queue(`select agui.append($1, 'r', $2)`, "pipeline 2", `[{"type":"RUN_STARTED"}]`)
	refuse("the transaction has another write through the front", conn.SendBatch(t.Context(), batch).Close())
	// Reads may be in a transaction.
	testdb.Exec(t, conn, `begin`)
	testdb.Exec(t, conn, `insert into own values (1)`)
	testdb.Exec(t, conn, `select agui.head('t1'), agui.restore('t1')`)
	testdb.Exec(t, conn, `commit`)

	// Two nodes cannot do one call.
	c.rebalance()
	c.makeFront(front)
	_, err = front.Exec(t.Context(), `select agui.append_many(array[$1, $2], '{r,r}', array_fill('[{"type":"RUN_STARTED"}]'::json, '{2}'))`, c.threadNamed("x", "", "a"), c.threadNamed("x", "", "b"))
	if testdb.State(err) != "0A000" || !strings.Contains(err.Error(), "agui.append_many: the threads are on several nodes of the cluster (a, b)") {
		t.Errorf("append_many: %v", err)
	}
}

// What a call depends on besides its arguments.
func TestAFrontCarriesTheSession(t *testing.T) {
	c := newThree(t, nil)
	front := c.newFront()
	thread := c.threadNamed("t", "", "a")
	testdb.Exec(t, front, `select agui.import_events($1, 'r', '[{"type":"RUN_STARTED","timestamp":1580605200000},{"type":"CUSTOM","name":"x","value":1,"timestamp":1583110800000}]')`, thread)
	acquired := testdb.Acquire(t, front)
	conn := acquired.Conn()
	testdb.Exec(t, conn, `set timezone = 'Asia/Tokyo'`)
	testdb.Exec(t, conn, `set datestyle = 'German'`)
	testdb.Exec(t, conn, `set intervalstyle = 'sql_standard'`)
	for call, want := range map[string]int{
		// 2 February, not 1 March.
		`select count(*)::int from agui.history($1, until => '03.02.2020 00:00')`:                                       1,
		`select count(*)::int from agui.history($1, until => '03.03.2020 00:00')`:                                       2,
		`select extract(hour from recorded_at at time zone 'UTC')::int from agui.events($1) where type = 'RUN_STARTED'`: 1,
	} {
		if got := testdb.Ask[int](t, conn, call, thread); got != want {
			t.Errorf("%s: %d, want %d", call, got, want)
		}
	}
	// A day begins in the time zone of the session.
	testdb.Exec(t, c.pools["a"], `call agui.project()`)
	for zone, want := range map[string]string{"UTC": "2020-02-02", "America/New_York": "2020-02-01"} {
		testdb.Exec(t, conn, `set timezone = '`+zone+`'`)
		if got := testdb.Ask[string](t, conn, `select to_char(day, 'YYYY-MM-DD') from agui.day_report()`); got != want {
			t.Errorf("the day in %s: %s", zone, got)
		}
	}
	testdb.Exec(t, conn, `set agui.unknown_thread = 'empty'`)
	if got := testdb.Ask[int](t, conn, `select count(*)::int from agui.messages('unknown')`); got != 0 {
		t.Errorf("%d messages", got)
	}
	testdb.Exec(t, conn, `reset all`)

	// Grants are those of the nodes.
	name := "reads_" + testdb.Ask[string](t, front, `select current_database()`)
	testdb.Exec(t, front, `create role `+name+` in role agui_reader`)
	testdb.Exec(t, conn, `set role `+name)
	testdb.Exec(t, conn, `select agui.head($1), agui.runs($1)`, thread)
	for _, statement := range []string{
		`select agui.append('t', 'r', '[]')`, `select agui_front.append('a', 't', 'r', '[]', null, null, null, false, false, '')`, `select agui_front.cluster_map('a')`,
		`update agui_front.bucket set node = 'a'`,
	} {
		if _, err := conn.Exec(t.Context(), statement); testdb.State(err) != "42501" {
			t.Errorf("%s: %v", statement, err)
		}
	}
	testdb.Exec(t, conn, `reset role`)
}

// With row-level security the nodes know who calls, and for which scope.
func TestAFrontCarriesTheRole(t *testing.T) {
	c := newThree(t, nil)
	database := testdb.Ask[string](t, c.pools["a"], `select current_database()`)
	operator, tenant, pooled := testdb.Ask[string](t, c.pools["a"], `select current_user`), "tenant_"+database, "pool_"+database
	for _, role := range []string{tenant, pooled} {
		testdb.Exec(t, c.pools["a"], `create role `+role+` login password 'x' in role agui_writer`)
	}
	for _, node := range c.pools {
		testdb.Exec(t, node, `select agui.map_tenant($1, 'one'), agui.map_pool($2), agui.map_operator($3)`, tenant, pooled, operator)
		testdb.Exec(t, node, `call agui.enable_row_security()`)
	}
	front := c.newFront()
	for _, role := range []string{tenant, pooled} {
		for _, node := range []string{"a", "b", "c"} {
			testdb.Exec(t, front, `create user mapping for `+role+` server agui_`+node+` options (user '`+role+`', password 'x')`)
		}
	}
	acquired := testdb.Acquire(t, front)
	conn := acquired.Conn()
	append := func(scope string) error {
		_, err := conn.Exec(t.Context(), `select agui.append($1, 'r', '[{"type":"RUN_STARTED"}]', scope => $2)`, "of "+scope, scope)
		return err
	}
	listed := func() string {
		return testdb.Ask[string](t, conn, `select coalesce(string_agg(thread_id, ',' order by thread_id), '') from (select thread_id from agui.threads(scope => 'one') union all select thread_id from agui.threads(scope => 'two')) as listed`)
	}
	for _, scope := range []string{"one", "two"} {
		must.Do(t, append(scope))
	}
	if got := listed(); got != "of one,of two" {
		t.Errorf("the operator sees %s", got)
	}
	testdb.Exec(t, conn, `set role `+tenant)
	if err := append("one"); testdb.State(err) != "UI009" { // it is there
		t.Errorf("a tenant, own scope: %v", err)
	}
	if err := append("two"); testdb.State(err) != "42501" || !strings.Contains(err.Error(), tenant) {
		t.Errorf("a tenant, another scope: %v", err)
	}
	if got := listed(); got != "of one" {
		t.Errorf("the tenant sees %s", got)
	}
	testdb.Exec(t, conn, `set role `+pooled)
	if got := listed(); got != "" {
		t.Errorf("a pool without a scope sees %s", got)
	}
	testdb.Exec(t, conn, `set agui.scope = 'two'`)
	if got := listed(); got != "of two" {
		t.Errorf("a pool with the scope two sees %s", got)
	}
	if err := append("one"); testdb.State(err) != "42501" {
		t.Errorf("a pool, another scope: %v", err)
	}
	testdb.Exec(t, conn, `set agui.scope = 'one'`)
	if got := listed(); got != "of one" {
		t.Errorf("a pool with the scope one sees %s", got)
	}
	testdb.Exec(t, conn, `reset agui.scope`)
	if got := listed(); got != "" {
		t.Errorf("a pool without a scope sees %s", got)
	}
	testdb.Exec(t, conn, `reset role`)
	other := "other_" + database
	testdb.Exec(t, front, `create role `+other+` in role agui_reader`)
	testdb.Exec(t, conn, `set role `+other)
	if _, err := conn.Exec(t.Context(), `select agui.threads()`); err == nil || !strings.Contains(err.Error(), "user mapping") {
		t.Errorf("a role without a mapping: %v", err)
	}
	testdb.Exec(t, conn, `reset role`)
}

func maskedTimes(text string) string { return timeForm.ReplaceAllString(text, "TIME") }

// A call through the front beside one of the node, on one connection.
func BenchmarkFront(b *testing.B) {
	address := testdb.New(b)
	node := testdb.Connect(b, address)
	opened := must.Have(cluster.Open(b.Context(), []cluster.Node{{Name: "a", URL: address}}))(b)
	defer opened.Close()
	must.Do(b, opened.Init(b.Context()))
	var text bytes.Buffer
	must.Do(b, opened.Front(b.Context(), &text))
	front := testdb.Connect(b, testdb.Empty(b))
	testdb.Exec(b, front, text.String(), pgx.QueryExecModeSimpleProtocol)
	for name, call := range map[string]string{
		"append": `select agui.append($1, 'r', '[{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"x"}]')`,
		"head":   `select agui.head($1)`,
	} {
		for _, to := range []struct {
			name string
			pool *pgxpool.Pool
		}{{"direct", node}, {"front", front}} {
			b.Run(name+"/"+to.name, func(b *testing.B) {
				thread := name + " " + to.name
				testdb.Exec(b, to.pool, `select agui.append($1, 'r', '[{"type":"RUN_STARTED"}]', after_seq => 0)`, thread)
				for b.Loop() {
					testdb.Exec(b, to.pool, call, thread)
				}
			})
		}
	}
}
