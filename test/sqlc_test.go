package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/examples/sqlc/db"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testfile"
	"github.com/pgagui/pgagui/internal/testneeds"
)

const sqlcHeader = `-- The schema agui as sqlc (https://sqlc.dev) reads it, to be listed under "schema" in sqlc.yaml. Not to be run: functions have no bodies, and
-- views and the types of results are declared as tables, which is how sqlc knows their columns.
-- Written from the catalog of an installed schema: make golden

create schema agui;
`

// sqlcSchema writes the declarations.
func sqlcSchema(t *testing.T) string {
	t.Helper()
	pool := testdb.Pool(t)
	always := map[string][]string{} // columns of views and types that have a value in each row, which a catalog does not say
	for _, object := range testfile.SQLObjects(t) {
		if columns := object.Facts["always"]; columns != "" {
			always[strings.TrimPrefix(object.Name, "agui.")] = strings.Split(columns, ", ")
		}
	}
	var text strings.Builder
	text.WriteString(sqlcHeader)
	rows, err := pool.Query(t.Context(), `
		select
			c.relname, obj_description(coalesce(nullif(case when c.relkind = 'c' then c.reltype end, 0)::oid, c.oid), case c.relkind when 'c' then 'pg_type' else 'pg_class' end),
			array_agg(a.attname::text order by a.attnum), array_agg(format_type(a.atttypid, a.atttypmod) order by a.attnum),
			array_agg(a.attnotnull order by a.attnum), array_agg(coalesce(col_description(c.oid, a.attnum), '') order by a.attnum)
		from pg_class as c
		join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
		where c.relnamespace = 'agui'::regnamespace and c.relkind in ('r', 'v', 'c') and c.relname <> 'schema_migrations'
		group by c.oid
		order by position(c.relkind::text in 'rvc'), c.relname collate "C"`)
	must.Do(t, err)
	var name, comment string
	var columns, types, comments []string
	var notNull []bool
	if _, err := pgx.ForEachRow(rows, []any{&name, &comment, &columns, &types, &notNull, &comments}, func() error {
		for _, column := range always[name] {
			if !slices.Contains(columns, column) {
				t.Errorf("agui.%s has no column %s", name, column)
			}
		}
		var list, about []string
		for i, column := range columns {
			declared := "    " + pgx.Identifier{column}.Sanitize() + " " + types[i]
			if notNull[i] || slices.Contains(always[name], column) {
				declared += " not null"
			}
			list = append(list, declared)
			if comments[i] != "" {
				about = append(about, fmt.Sprintf("comment on column agui.%s.%s is %s;\n", name, pgx.Identifier{column}.Sanitize(), quotedSQL(comments[i])))
			}
		}
		fmt.Fprintf(&text, "\ncreate table agui.%s (\n%s\n);\ncomment on table agui.%s is %s;\n%s", name, strings.Join(list, ",\n"), name, quotedSQL(comment), strings.Join(about, ""))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	text.WriteString("\n")
	for _, function := range testdb.List[string](t, pool, `
		select format('create function agui.%s(%s) returns %s language sql as %L;', p.proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid), '')
		from pg_proc as p
		where p.pronamespace = 'agui'::regnamespace and p.prokind = 'f'
		order by p.proname collate "C"`) {
		text.WriteString(function + "\n")
	}
	return text.String()
}

// quotedSQL quotes a comment. sqlc copies it into a comment of Go with the quotes doubled, so single ones become typographic.
func quotedSQL(text string) string { return "'" + strings.ReplaceAll(text, "'", "’") + "'" }

func TestSQLCSchemaIsUpToDate(t *testing.T) {
	t.Parallel()
	testfile.Golden(t, "../sql/sqlc/agui.sql", sqlcSchema(t))
}

// A project of someone's who queries the schema through sqlc has Go types for all columns of the view agui.event and of what functions return.
func TestSQLCInfersTypes(t *testing.T) {
	t.Parallel()
	project := filepath.Join("..", "examples", "sqlc")
	tool := func(arguments ...string) *exec.Cmd {
		command := exec.CommandContext(t.Context(), "go", append([]string{"tool", "-modfile=" + filepath.Join("..", "tools", "go.mod"), "sqlc"}, arguments...)...)
		command.Env = append(os.Environ(), "GOWORK=off") // which -modfile takes
		return command
	}
	if out, err := tool("version").CombinedOutput(); err != nil {
		testneeds.Skip(t, testneeds.Sqlc, "sqlc cannot be built: %v\n%s", err, out)
	}
	if out, err := tool("diff", "-f", filepath.Join(project, "sqlc.yaml")).CombinedOutput(); err != nil {
		t.Errorf("examples/sqlc/db is not what sqlc makes of it (run: make generate): %v\n%s", err, out)
	}
	for _, name := range []string{"queries.sql.go", "models.go"} {
		generated := testfile.Read(t, filepath.Join(project, "db", name))
		for _, line := range regexp.MustCompile(`(?m)^.*interface\{\}.*$`).FindAllString(string(generated), -1) {
			t.Errorf("%s: no type: %s", name, strings.TrimSpace(line))
		}
	}

	// What it makes works.
	pool := testdb.Pool(t)
	ctx := t.Context()
	store := pgagui.New(pool, nil)
	forkedThread(t, store)
	queries := db.New(pool)
	seq, err := queries.AppendEvents(ctx, db.AppendEventsParams{ThreadID: "t", RunID: "r4", Events: []byte(`[{"type":"RUN_STARTED"},{"type":"STATE_SNAPSHOT","snapshot":{"a":1}}]`)})
	if err != nil || seq != 11 {
		t.Errorf("append: %d, %v", seq, err)
	}
	logged, err := queries.LoggedEvents(ctx, db.LoggedEventsParams{ThreadID: "t", Type: "RUN_STARTED"})
	if err != nil || len(logged) != 4 || logged[3].Seq != 10 || string(logged[3].Payload) != `{"type":"RUN_STARTED"}` {
		t.Errorf("the view: %+v, %v", logged, err)
	}
	events, err := queries.EventsBehind(ctx, db.EventsBehindParams{ThreadID: "t", AfterSeq: 8})
	if err != nil || len(events) != 3 || events[0].Seq != 9 || events[2].Type != "STATE_SNAPSHOT" || !events[0].RecordedAt.Valid {
		t.Errorf("events: %+v, %v", events, err)
	}
	messages, err := queries.Conversation(ctx, db.ConversationParams{ThreadID: "t", RunID: "r2"})
	if err != nil || len(messages) != 2 || messages[1].MessageID.String != "r2" || messages[1].Position != 2 {
		t.Errorf("messages: %+v, %v", messages, err)
	}
	if restored, err := queries.Restore(ctx, "t"); err != nil || !strings.Contains(string(restored), `"state":{"a":1}`) {
		t.Errorf("restore: %s, %v", restored, err)
	}
	attached, err := queries.Attach(ctx, "t")
	if err != nil || attached.RunID.String != "r4" || attached.Seq != 11 || len(attached.Running) != 1 {
		t.Errorf("attach: %+v, %v", attached, err)
	}
	news, err := queries.Poll(ctx, db.PollParams{ThreadIds: []string{"t"}, AfterSeqs: []int64{9}})
	if err != nil || len(news) != 1 || news[0].ThreadNo != 1 || news[0].FirstSeq.Int64 != 10 {
		t.Errorf("poll: %+v, %v", news, err)
	}
	threads, err := queries.Threads(ctx, "")
	if err != nil || len(threads) != 1 || threads[0].ThreadID != "t" || threads[0].Runs != 4 {
		t.Errorf("threads: %+v, %v", threads, err)
	}
	// Together with a table of its own.
	schema := testfile.Read(t, filepath.Join(project, "schema.sql"))
	testdb.Exec(t, pool, string(schema))
	must.Do(t, queries.SaveNote(ctx, db.SaveNoteParams{ThreadID: "t", Seq: 9, Note: "look at this"}))
	if noted, err := queries.NotedEvents(ctx, "t"); err != nil || len(noted) != 1 || noted[0].Type != "RUN_FINISHED" {
		t.Errorf("the events with notes: %+v, %v", noted, err)
	}
}
