package test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/routes"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testfile"
)

// A call for a thread of another node is answered by UI027, in whatever form SQL has for it: never as if the thread were unknown or empty.
func TestNoNodeAnswersForThreadsOfAnother(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	a, b := testdb.Pool(t), testdb.Pool(t)
	testdb.Exec(t, a, `select agui.append('on a', 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]'), agui.append('moved', 'r', '[{"type":"RUN_STARTED"}]')`)
	testdb.Exec(t, a, `call agui.join_cluster('a')`)
	known := testdb.Ask[string](t, a, `select agui.cluster_map()`)
	testdb.Exec(t, b, `call agui.join_cluster('b', $1)`, known)
	// Its rows are still on a.
	testdb.Exec(t, a, `select agui_internal.fence_threads(array[agui.thread_key('', 'moved')], 'b')`)

	// Any value will do for what names no thread: the answer is the same for all.
	values := map[string]string{
		"thread_id": `%s`, "thread_ids": `array[%s]`, "session": `json_build_object('threadId', %s, 'state', json_build_object('k', 1))`,
		"sessions": `json_build_array(json_build_object('threadId', %s, 'state', json_build_object('k', 1)))`,
		"events":   `'[{"type":"RUN_STARTED"}]'`, "channel_values": `'[1]'`, "status": `422`,
	}
	all := must.Have(routes.Of())(t)
	calls := callsOf(t, a, values, func(f *publicFunction) bool {
		by := all[f.Name].By
		if by == routes.ThreadIfNamed {
			f.Required = append(f.Required, "thread_id")
		}
		return by == routes.Thread || by == routes.Threads || by == routes.ThreadIfNamed
	})
	if len(calls) < 60 {
		t.Fatalf("only %d functions name threads", len(calls))
	}

	forms := map[string]string{
		"select":   `select (%s)::text`,
		"from":     `select answer::text from %s as answer`,
		"subquery": `select (select string_agg(answer::text, '') from %s as answer)`,
		// A call that answers in rows is found by its row, each other one raises.
		"condition":         `select 'found' where exists (select from %s as answer where answer::text like '%%UI027%%')`,
		"materialized CTE":  `with answer as materialized (select answer::text from %s as answer) select * from answer`,
		"insert":            `insert into pg_temp.answers select answer::text from %s as answer returning answer`,
		"union":             `select 'UI027' union all select answer::text from %s as answer`,
		"PL/pgSQL":          `do $do$ begin perform count(answer::text) from %s as answer; end $do$`,
		"PL/pgSQL, a query": `do $do$ declare answer record; begin for answer in select * from %s loop end loop; end $do$`,
	}
	// These answer for each thread, in a row.
	inRows := []string{"append_many", "poll"}
	for _, node := range []struct {
		conn    *pgx.Conn
		threads []string
	}{{connectOne(t, a), []string{`'moved'`}}, {connectOne(t, b), []string{`'on a'`, `'unborn'`}}} {
		testdb.Exec(t, node.conn, `create temp table answers (answer text)`)
		testdb.Exec(t, node.conn, `set agui.unknown_thread = 'empty'`)
		for name, call := range calls {
			for _, thread := range node.threads {
				for form, statement := range forms {
					if slices.Contains(inRows, name) && strings.HasPrefix(form, "PL/pgSQL") {
						continue
					}
					statement := fmt.Sprintf(statement, fmt.Sprintf(call, thread))
					for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeExec} {
						if answer, isMoved := movedAnswer(node.conn, statement, mode); !isMoved && !strings.Contains(answer, "found") {
							t.Errorf("%s: %s\n\t%s", form, statement, answer)
						}
					}
				}
				// Of another row, by LATERAL.
				statement := `select answer::text from (values (` + thread + `)) as of (id) cross join lateral ` + fmt.Sprintf(call, "of.id") + ` as answer`
				if answer, isMoved := movedAnswer(node.conn, statement, pgx.QueryExecModeExec); !isMoved {
					t.Errorf("lateral: %s\n\t%s", statement, answer)
				}
				// Prepared, with a plan for any thread.
				statement = `select answer::text from ` + fmt.Sprintf(call, "$1::text") + ` as answer`
				testdb.Exec(t, node.conn, `set plan_cache_mode = force_generic_plan`)
				if answer, isMoved := movedAnswer(node.conn, statement, pgx.QueryExecModeCacheStatement, strings.Trim(thread, "'")); !isMoved {
					t.Errorf("prepared: %s\n\t%s", statement, answer)
				}
				testdb.Exec(t, node.conn, `reset plan_cache_mode`)
				// In a pipeline behind a statement that is right. Both are one transaction.
				batch := &pgx.Batch{}
				batch.Queue(`insert into pg_temp.answers values ('before')`)
				batch.Queue(`select answer::text from ` + fmt.Sprintf(call, thread) + ` as answer`)
				results := node.conn.SendBatch(ctx, batch)
				_, first := results.Exec()
				answers, err := results.Query()
				answer, isMoved := isMovedAnswer(answers, err)
				if err := results.Close(); first != nil || !isMoved {
					t.Errorf("pipeline: %s: %v, %s, %v", call, first, answer, err)
				}
			}
		}
		if kept := testdb.Ask[int](t, node.conn, `select count(*) from answers where answer = 'before'`); kept != len(inRows)*len(node.threads) {
			t.Errorf("%d pipelines were committed", kept)
		}
	}
	if threads := testdb.Ask[int](t, b, `select count(*) from agui.thread`); threads != 0 {
		t.Errorf("node b has %d threads", threads)
	}
}

func movedAnswer(conn *pgx.Conn, statement string, mode pgx.QueryExecMode, arguments ...any) (answer string, isMoved bool) {
	answers, err := conn.Query(context.Background(), statement, append([]any{mode}, arguments...)...)
	return isMovedAnswer(answers, err)
}

// isMovedAnswer reports whether the answer is UI027, as an error or as the one row.
func isMovedAnswer(answers pgx.Rows, err error) (answer string, isMoved bool) {
	if err == nil {
		var texts []*string
		texts, err = pgx.CollectRows(answers, pgx.RowTo[*string])
		if err == nil {
			for _, text := range texts {
				if text != nil {
					answer += *text + "; "
				}
			}
			return fmt.Sprintf("%d rows: %s", len(texts), answer), len(texts) > 0 && strings.Count(answer, "UI027") >= len(texts)
		}
	}
	return err.Error(), testdb.State(err) == "UI027"
}

// docs/reference/routes.md says of each function what stands above it.
func TestRoutesReference(t *testing.T) {
	t.Parallel()
	var page strings.Builder
	page.WriteString(`# Functions in a cluster

Which node of a cluster answers a call, for each function of the schema ` + "`agui`" + `. A node refuses a call
for a thread of another node with UI027: also for a thread that does not exist yet, and in each form
of SQL. A call that goes to all nodes, or to this node alone, is answered by a node for itself. The
last column says what a [front](../guides/front.md) does with the call.

The views and tables of a node show the rows of that node. A view cannot refuse: without a row, look
at the other nodes. Rows of a thread that was moved away are there for some seconds more.

This page is written from the sources of the functions. A test compares it with what nodes answer:
` + "`make golden`" + `

| function | goes by | through a front |
|---|---|---|
`)
	all := must.Have(routes.Of())(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		route := all[name]
		front := string(route.Front)
		if route.Instead != "" {
			front += ": " + route.Instead
			if route.Front == routes.Sent || route.Front == routes.OneNode {
				front = string(route.Front) + "; else " + route.Instead
			}
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s |\n", name, route.By, front)
	}
	testfile.Golden(t, "../docs/reference/routes.md", page.String())
}

// publicFunction is a function or procedure of the schema agui.
type publicFunction struct {
	Name, Kind, Volatility string // as in pg_proc
	Arguments, Types       []string
	Required               []string // the arguments that a call names: those without a default
}

// callsOf returns a call of each wanted function by its name, with a value for each required argument: by the name of that, or else by its type.
func callsOf(t testing.TB, pool *pgxpool.Pool, values map[string]string, isWanted func(*publicFunction) bool) map[string]string {
	t.Helper()
	ofType := map[string]string{"text": `'r'`, "text[]": `'{r}'`, "integer": `1`, "bigint": `1`, "bigint[]": `'{0}'`, "json": `'{}'`, "bytea": `'x'`,
		"json[]": `array['[{"type":"RUN_STARTED"}]']::json[]`}
	rows, err := pool.Query(t.Context(), `
		select proname::text, prokind::text, provolatile::text, coalesce(proargnames[: pronargs], '{}'),
			array(select format_type(type, null) from unnest(proargtypes::oid[]) as type), coalesce(proargnames[: pronargs - pronargdefaults], '{}')
		from pg_proc where pronamespace = 'agui'::regnamespace`)
	must.Do(t, err)
	functions := must.Have(pgx.CollectRows(rows, pgx.RowToAddrOfStructByPos[publicFunction]))(t)
	calls := map[string]string{}
	for _, f := range functions {
		if !isWanted(f) {
			continue
		}
		var given []string
		for i, argument := range f.Required {
			value := values[argument]
			if value == "" || strings.HasSuffix(f.Types[i], "json[]") {
				value = ofType[f.Types[i]]
			}
			if value == "" {
				t.Errorf("agui.%s: no value for %s", f.Name, argument)
			}
			given = append(given, argument+" => "+value)
		}
		calls[f.Name] = fmt.Sprintf("agui.%s(%s)", f.Name, strings.Join(given, ", "))
	}
	return calls
}
