package test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testfile"
)

const referenceHeader = `# SQL reference

All functions, procedures, views and tables of the schema ` + "`agui`" + `, by area. psql shows the same with
` + "`\\df+ agui.*`, `\\dv+ agui.*` and `\\d+ agui.batch`" + `. [sql.md](../sql.md) has examples,
[errors.md](../errors.md) what to do about an SQLSTATE.

This page is written from the comments in the catalog: make golden
`

// The reference page says what the catalog says of all that is public, in the order of the areas of sql/functions/README.md.
func TestSQLReference(t *testing.T) {
	t.Parallel()
	rows, err := testdb.Pool(t).Query(t.Context(), `
		select p.proname::text, case p.prokind when 'p' then 'procedure' when 'a' then 'aggregate' else 'function' end,
			'agui.' || p.proname || '(' || pg_get_function_arguments(p.oid) || ')' || coalesce(' → ' || lower(left(pg_get_function_result(p.oid), 5)) || substr(pg_get_function_result(p.oid), 6), ''),
			obj_description(p.oid, 'pg_proc'), coalesce(obj_description(t.oid, 'pg_type'), '')
		from pg_proc as p
		left join pg_type as t on t.oid = p.prorettype and t.typnamespace = 'agui'::regnamespace
		where p.pronamespace = 'agui'::regnamespace
		union all
		select c.relname, kind.name, 'agui.' || c.relname || ' (' || string_agg(a.attname, ', ' order by a.attnum) || ')', obj_description(c.oid, 'pg_class'), ''
		from pg_class as c
		join (values ('r', 'table'), ('v', 'view')) as kind (code, name) on kind.code = c.relkind::text
		join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
		where c.relnamespace = 'agui'::regnamespace and c.relname <> 'schema_migrations'
		group by c.oid, c.relname, kind.name
		order by 2, 1`)
	must.Do(t, err)
	type entry struct{ name, kind, signature, about, result string }
	entries, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e entry, err error) {
		return e, row.Scan(&e.name, &e.kind, &e.signature, &e.about, &e.result)
	})
	must.Do(t, err)
	areaOf := map[string]string{}
	for _, object := range testfile.SQLObjects(t) {
		areaOf[strings.TrimPrefix(object.Name, "agui.")] = object.Area
	}
	readme := testfile.Read(t, "../sql/functions/README.md")

	var page strings.Builder
	page.WriteString(referenceHeader)
	written := 0
	cast := regexp.MustCompile(`::[a-z ]+(\[\])?`)
	write := func(title string, belongs func(entry) bool) {
		if slices.ContainsFunc(entries, belongs) {
			fmt.Fprintf(&page, "\n## %s\n", strings.ToUpper(title[:1])+title[1:])
		}
		for _, e := range entries {
			if !belongs(e) {
				continue
			}
			written++
			fmt.Fprintf(&page, "\n### agui.%s\n\n```\n%s\n```\n\n%s\n", e.name, cast.ReplaceAllString(strings.NewReplacer(", ", ",\n    ", "(IN ", "(", " DEFAULT NULL", " default null", " DEFAULT ", " default ").Replace(strings.ReplaceAll(e.signature, ", IN ", ", ")), ""), inMarkdown(e.about))
			if e.result != "" {
				fmt.Fprintf(&page, "\nReturns: %s\n", inMarkdown(e.result))
			}
		}
	}
	for _, match := range regexp.MustCompile("(?m)^\\| `(\\w+/\\w+)` \\| (.*) \\|$").FindAllStringSubmatch(string(readme), -1) {
		write(match[2], func(e entry) bool { return e.kind != "table" && areaOf[e.name] == match[1] })
	}
	write("Tables", func(e entry) bool { return e.kind == "table" })
	if written != len(entries) {
		t.Errorf("%d of %d objects are in an area of sql/functions/README.md", written, len(entries))
	}
	testfile.Golden(t, "../docs/reference/sql.md", page.String())
}

// inMarkdown keeps what Markdown would read as its own.
func inMarkdown(text string) string {
	return strings.NewReplacer("<", "&lt;", "*", `\*`, "_", `\_`, "[", `\[`).Replace(text)
}
