package migration

import (
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pgagui/pgagui/internal/must"
)

// sources makes a folder sql from path, content, path, content, …, beside a migration for tables.
func sources(pathsAndContents ...string) fstest.MapFS {
	sql := fstest.MapFS{
		"schema/000001_tables.up.sql":   {Data: []byte("create table agui.thread (id int);\ncreate index thread_by_id on agui.thread (id);\n")},
		"schema/000001_tables.down.sql": {Data: []byte("drop table agui.thread;\n")},
	}
	set(sql, pathsAndContents...)
	return sql
}

// set changes sources; an empty content removes one.
func set(sql fstest.MapFS, pathsAndContents ...string) {
	for i := 0; i < len(pathsAndContents); i += 2 {
		path, content := pathsAndContents[i], pathsAndContents[i+1]
		if content == "" {
			delete(sql, path)
			continue
		}
		sql[path] = &fstest.MapFile{Data: []byte(content)}
	}
}

func folder(t *testing.T, sql fs.FS, name string) fs.FS {
	t.Helper()
	sub := must.Have(fs.Sub(sql, name))(t)
	return sub
}

func assembled(t *testing.T, sql fs.FS) ([]Migration, error) {
	t.Helper()
	a, err := Assemble(folder(t, sql, "functions"), folder(t, sql, "schema"))
	if err != nil {
		return nil, err
	}
	return a.Chain()
}

func mustAssemble(t *testing.T, sql fs.FS) []Migration {
	t.Helper()
	migrations := must.Have(assembled(t, sql))(t)
	return migrations
}

// texts are those of a migration without what is added to each, and without the lines that are always the same; empty if there is no such migration.
// texts are those of a migration without what each routine has; see TestRoutinesAreClosedToThePublic.
func texts(t *testing.T, sql fs.FS, name string) (up, down string) {
	t.Helper()
	up, down = allTexts(t, sql, name)
	return revoked.ReplaceAllString(up, ""), revoked.ReplaceAllString(down, "")
}

var revoked = regexp.MustCompile(`\n?revoke execute on routine agui\.\w+ from public;`)

func allTexts(t *testing.T, sql fs.FS, name string) (up, down string) {
	t.Helper()
	text := func(sql string) string {
		content := strings.ReplaceAll(strings.TrimPrefix(Body(sql), header), keepData, "")
		content = strings.ReplaceAll(content, "set check_function_bodies = off;", "")
		content = strings.ReplaceAll(content, "reset check_function_bodies;", "")
		return strings.Join(strings.FieldsFunc(content, func(r rune) bool { return r == '\n' }), "\n")
	}
	for _, m := range mustAssemble(t, sql) {
		if m.Name == name {
			return text(m.Up), text(m.Down)
		}
	}
	return "", ""
}

func release(t *testing.T, sql fstest.MapFS) {
	t.Helper()
	files := must.Have(Release(folder(t, sql, "functions"), folder(t, sql, "schema")))(t)
	for name, content := range files {
		sql["schema/"+name] = &fstest.MapFile{Data: content}
	}
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got\n%s\n\nwant\n%s", what, got, want)
	}
}

// pathsIn are the sources of a migration in their order.
func pathsIn(migration string) string {
	var paths []string
	for line := range strings.Lines(migration) {
		if path, ok := strings.CutPrefix(line, "-- sql/"); ok {
			paths = append(paths, strings.TrimSpace(path))
		}
	}
	return strings.Join(paths, " ")
}

func TestFoldersComeInOrderAndFilesByPath(t *testing.T) {
	t.Parallel()
	up, _ := texts(t, sources(
		"functions/api/views/v.sql", "create view agui.v as select 1;",
		"functions/core/b.sql", "create function agui.b() returns int language sql as 'select 1';",
		"functions/core/a/z.sql", "create function agui.z() returns int language sql as 'select 1';",
		"functions/api/types/t.sql", "create type agui.t as (n int);",
	), "000002_functions")
	expect(t, "order", pathsIn(up), "functions/api/types/t.sql functions/api/views/v.sql functions/core/a/z.sql functions/core/b.sql")
}

func TestObjectComesAfterWhatItIsMadeOfAndGoesBeforeIt(t *testing.T) {
	t.Parallel()
	up, down := texts(t, sources(
		"functions/api/types/a.sql", "create type agui.a as (inner agui.b);",
		"functions/api/types/b.sql", "create type agui.b as (n int);",
		"functions/core/caller.sql", "create function agui.caller() returns int return agui.helper();",
		"functions/core/helper.sql", "create function agui.helper() returns int language sql as 'select 1';",
		"functions/core/total.sql", "create or replace aggregate agui.total(n int) (sfunc = agui.total_step, stype = bigint, initcond = '0');",
		"functions/core/total_step.sql", "create function agui.total_step(total bigint, n int) returns bigint language sql return total + n;",
	), "000002_functions")
	expect(t, "order", pathsIn(up),
		"functions/api/types/b.sql functions/api/types/a.sql functions/core/helper.sql functions/core/caller.sql functions/core/total_step.sql functions/core/total.sql")
	expect(t, "down", down, `drop aggregate agui.total(n int);
drop function agui.total_step(total bigint, n int);
drop function agui.caller();
drop function agui.helper();
drop type agui.a;
drop type agui.b;`)
}

func TestFunctionsMayCallEachOther(t *testing.T) {
	t.Parallel()
	up, _ := texts(t, sources(
		"functions/core/a.sql", "create function agui.a() returns int language sql as $$ select agui.b() $$;",
		"functions/core/b.sql", "create function agui.b() returns int language sql as $$ select agui.a() $$;",
	), "000002_functions")
	expect(t, "order", pathsIn(up), "functions/core/a.sql functions/core/b.sql")
}

func TestDownDropsWhatEachStatementCreates(t *testing.T) {
	t.Parallel()
	for statement, want := range map[string]string{
		"create or replace function agui.f(a text, b int[] default array[1, 2], c text = ')', d numeric(8, 2) DEFAULT 1) returns int as '' language sql;": "drop function agui.f(a text, b int[], c text, d numeric(8, 2));",
		"CREATE PROCEDURE agui.p(\n  a int, -- a comment, with a comma\n  out b int\n) language sql as '';":                                               "drop procedure agui.p(a int, out b int);",
		"create aggregate agui.total(jsonb) (sfunc = array_append, stype = jsonb);":                                                                       "drop aggregate agui.total(jsonb);",
		"create view agui.v as select ';';": "drop view agui.v;",
		"create trigger refuse before update or delete on agui.thread for each row execute function agui.refuse();":                                         "drop trigger refuse on agui.thread;",
		"create function agui.g() returns int begin atomic select case when true then 1 end; select 2; end; create type agui.t as (n int);":                 "drop type agui.t;\ndrop function agui.g();",
		"create function agui.h() returns int language plpgsql as $body$ begin; create table x (); end $body$; comment on function agui.h() is 'It''s; h';": "drop function agui.h();",
	} {
		_, down := texts(t, sources("functions/core/f.sql", statement), "000002_functions")
		expect(t, statement, down, want)
	}
}

func TestErrorsNameTheFile(t *testing.T) {
	t.Parallel()
	const f = "create function agui.f() returns int language sql as '';"
	for want, sql := range map[string]fstest.MapFS{
		"sql/functions/core/f.sql:3: cannot tell":      sources("functions/core/f.sql", "\n\nalter table agui.thread add column x int;"),
		"sql/functions/core/g.sql:1: cannot tell":      sources("functions/core/g.sql", "create function unqualified() returns int language sql as '';"),
		"sql/functions/core/h.sql:1: cannot tell":      sources("functions/core/h.sql", "create table agui.t ();"),
		"sql/functions/core/i.sql:1: cannot tell":      sources("functions/core/i.sql", "do $$ begin perform 1; end $$;"),
		"sql/functions/core/j.sql:1: \"comment on fun": sources("functions/core/j.sql", "comment on function agui.f() is 'Elsewhere';", "functions/core/f.sql", f),
		"created in sql/functions/core/f.sql too":      sources("functions/core/f.sql", f, "functions/core/k.sql", "create function agui.f(a int) returns int language sql as '';"),
		"need each other": sources(
			"functions/core/a.sql", "create function agui.a() returns int return agui.b();",
			"functions/core/b.sql", "create function agui.b() returns int return agui.a();"),
		"no SQL files":             sources("functions/core/README.md", "None."),
		"its number must be 2":     sources("functions/core/f.sql", f, "schema/000003_late.up.sql", "select 1;", "schema/000003_late.down.sql", "select 1;"),
		"begin with its number":    sources("functions/core/f.sql", f, "schema/late.up.sql", "select 1;"),
		"000002_a.up.sql has no w": sources("functions/core/f.sql", f, "schema/000002_a.up.sql", "select 1;"),
	} {
		if _, err := assembled(t, sql); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

func TestAssemblyIsDeterministic(t *testing.T) {
	t.Parallel()
	sql := sources("functions/core/f.sql", "create function agui.f() returns int return 1;")
	if !slices.Equal(mustAssemble(t, sql), mustAssemble(t, sql)) {
		t.Error("the same sources give different migrations")
	}
}

// A migration written by hand comes before the one that is made of the sources, which is always the last.
func TestMigrationWrittenByHandComesBeforeThatOfTheSources(t *testing.T) {
	t.Parallel()
	sql := sources("functions/core/f.sql", "create function agui.f() returns int return 1;",
		"schema/000002_column.up.sql", "alter table agui.thread add column c int;", "schema/000002_column.down.sql", "alter table agui.thread drop column c;")
	up, _ := texts(t, sql, "000003_functions")
	expect(t, "up", up, "-- sql/functions/core/f.sql\ncreate function agui.f() returns int return 1;")
	up, down := texts(t, sql, "000002_column")
	expect(t, "by hand, up", up, "alter table agui.thread add column c int;")
	expect(t, "by hand, down", down, "alter table agui.thread drop column c;")
}

func TestReleasedMigrationsAreFrozen(t *testing.T) {
	t.Parallel()
	const f = "functions/core/f.sql"
	sql := sources(f, "create or replace function agui.f() returns int return 1;")
	before := mustAssemble(t, sql)
	release(t, sql)
	for i, m := range mustAssemble(t, sql) {
		if Body(m.Up) != Body(before[i].Up) {
			t.Errorf("a release changes the migration %s", m.Name)
		}
		if strings.Contains(m.Up+m.Down, buildFunction) {
			t.Errorf("%s is released, and records the sources of a build", m.Name)
		}
		before[i] = m
	}
	set(sql, f, "create or replace function agui.f() returns int return 2;")
	after := mustAssemble(t, sql)
	if !slices.Equal(after[:len(before)], before) || len(after) != len(before)+1 {
		t.Errorf("a change after the release is not the next migration: %v", after)
	}
	for name, test := range map[string]struct {
		change func(sql fstest.MapFS)
		want   string
	}{
		"changed": {func(sql fstest.MapFS) {
			set(sql, "schema/000001_tables.up.sql", string(sql["schema/000001_tables.up.sql"].Data)+"-- More.\n")
		}, "was released and must stay as it was"},
		"gone": {func(sql fstest.MapFS) { set(sql, "schema/000002_functions.down.sql", "") }, "was released and must stay"},
		"not released": {func(sql fstest.MapFS) {
			last := after[len(after)-1]
			set(sql, "schema/"+last.UpFile(), last.Up, "schema/"+last.DownFile(), last.Down)
		}, "released.sum does not list it"},
	} {
		changed := maps.Clone(sql)
		test.change(changed)
		schema := folder(t, changed, "schema")
		_, releaseErr := Release(folder(t, changed, "functions"), schema)
		for _, err := range []error{CheckReleased(schema), releaseErr} {
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: got %v, want an error with %q", name, err, test.want)
			}
		}
	}
}

// What the next migration does about a change, and on its way back.
func TestNextMigrationIsTheDifference(t *testing.T) {
	t.Parallel()
	const (
		path  = "functions/core/f.sql"
		other = "functions/core/other.sql"
	)
	for name, test := range map[string]struct {
		from, to []string // path, content, …
		up, down string
	}{
		"a body": {
			from: []string{path, "create or replace function agui.f(a int) returns int return a;\ncomment on function agui.f(int) is 'F.';"},
			to:   []string{path, "-- Why.\ncreate or replace function agui.f(a int) returns int return a + 1;\ncomment on function agui.f(int) is 'F.';"},
			up:   "-- sql/functions/core/f.sql\n-- Why.\ncreate or replace function agui.f(a int) returns int return a + 1;",
			down: "-- sql/functions/core/f.sql\ncreate or replace function agui.f(a int) returns int return a;",
		},
		"a comment": {
			from: []string{path, "create or replace function agui.f() returns int return 1;\ncomment on function agui.f() is 'F.';"},
			to:   []string{path, "create or replace function agui.f() returns int return 1;\ncomment on function agui.f() is 'F is 1.';"},
			up:   "-- sql/functions/core/f.sql\ncomment on function agui.f() is 'F is 1.';",
			down: "-- sql/functions/core/f.sql\ncomment on function agui.f() is 'F.';",
		},
		"a comment that goes": {
			from: []string{path, "create or replace function agui.f() returns int return 1;\ncomment on function agui.f() is 'F.';"},
			to:   []string{path, "create or replace function agui.f() returns int return 1;"},
			up:   "-- sql/functions/core/f.sql\ncomment on routine agui.f is null;",
			down: "-- sql/functions/core/f.sql\ncomment on function agui.f() is 'F.';",
		},
		"nothing but white space and comments between": {
			from: []string{path, "create or replace function agui.f() returns int return 1;"},
			to:   []string{path, "-- More.\ncreate or replace function agui.f()\nreturns int -- one\nreturn 1;"},
		},
		"another file": {
			from: []string{path, "create or replace function agui.f() returns int return 1;"},
			to:   []string{path, "", other, "create or replace function agui.f() returns int return 1;"},
		},
		"a default more": {
			from: []string{path, "create or replace function agui.f(a int) returns int return a;"},
			to:   []string{path, "create or replace function agui.f(a int default 1) returns int return a;"},
			up:   "-- sql/functions/core/f.sql\ncreate or replace function agui.f(a int default 1) returns int return a;",
			// It cannot be taken away by CREATE OR REPLACE.
			down: "drop function agui.f(a int);\n-- sql/functions/core/f.sql\ncreate or replace function agui.f(a int) returns int return a;",
		},
		"an argument with a default more, which would make an ambiguous overload": {
			from: []string{path, "create or replace function agui.f(a int) returns int return a;"},
			to:   []string{path, "create or replace function agui.f(a int, b int default 1) returns int return a;"},
			up:   "drop function agui.f(a int);\n-- sql/functions/core/f.sql\ncreate or replace function agui.f(a int, b int default 1) returns int return a;",
			down: "drop function agui.f(a int, b int);\n-- sql/functions/core/f.sql\ncreate or replace function agui.f(a int) returns int return a;",
		},
		"an argument's name": {
			from: []string{path, "create or replace function agui.f(a int) returns int return 1;"},
			to:   []string{path, "create or replace function agui.f(b int) returns int return 1;"},
			up:   "drop function agui.f(a int);\n-- sql/functions/core/f.sql\ncreate or replace function agui.f(b int) returns int return 1;",
			down: "drop function agui.f(b int);\n-- sql/functions/core/f.sql\ncreate or replace function agui.f(a int) returns int return 1;",
		},
		"what a function returns": {
			from: []string{path, "create or replace function agui.f() returns table (a int) language sql as 'select 1';"},
			to:   []string{path, "create or replace function agui.f() returns table (a int, b int) language sql as 'select 1, 2';"},
			up:   "drop function agui.f();\n-- sql/functions/core/f.sql\ncreate or replace function agui.f() returns table (a int, b int) language sql as 'select 1, 2';",
			down: "drop function agui.f();\n-- sql/functions/core/f.sql\ncreate or replace function agui.f() returns table (a int) language sql as 'select 1';",
		},
		"a function that becomes a procedure": {
			from: []string{path, "create or replace function agui.f() returns int return 1;"},
			to:   []string{path, "create or replace procedure agui.f() language sql as '';"},
			up:   "drop function agui.f();\n-- sql/functions/core/f.sql\ncreate or replace procedure agui.f() language sql as '';",
			down: "drop procedure agui.f();\n-- sql/functions/core/f.sql\ncreate or replace function agui.f() returns int return 1;",
		},
		"a type, what is made of it, and a function that has it in a variable": {
			from: []string{
				"functions/api/t.sql", "create type agui.t as (a int);",
				path, "create or replace function agui.f() returns agui.t language sql as 'select row(1)';",
				"functions/core/caller.sql", "create or replace function agui.caller() returns int return (agui.f()).a;",
				other, "create or replace function agui.other() returns int language plpgsql as $$ declare v agui.t[]; begin return 1; end $$;",
				"functions/core/unconcerned.sql", "create or replace function agui.unconcerned() returns int return 1;",
			},
			to: []string{"functions/api/t.sql", "create type agui.t as (a int, b int);", path, "create or replace function agui.f() returns agui.t language sql as 'select row(1, 2)';"},
			up: `drop function agui.caller();
drop function agui.f();
drop type agui.t;
-- sql/functions/api/t.sql
create type agui.t as (a int, b int);
-- sql/functions/core/f.sql
create or replace function agui.f() returns agui.t language sql as 'select row(1, 2)';
-- sql/functions/core/caller.sql
create or replace function agui.caller() returns int return (agui.f()).a;
-- sql/functions/core/other.sql
create or replace function agui.other() returns int language plpgsql as $$ declare v agui.t[]; begin return 1; end $$;`,
			down: `drop function agui.caller();
drop function agui.f();
drop type agui.t;
-- sql/functions/api/t.sql
create type agui.t as (a int);
-- sql/functions/core/f.sql
create or replace function agui.f() returns agui.t language sql as 'select row(1)';
-- sql/functions/core/caller.sql
create or replace function agui.caller() returns int return (agui.f()).a;
-- sql/functions/core/other.sql
create or replace function agui.other() returns int language plpgsql as $$ declare v agui.t[]; begin return 1; end $$;`,
		},
		"columns at the end of a view": {
			from: []string{"functions/api/v.sql", "create or replace view agui.v as select t.id, 1 as \"one\" from agui.thread as t where a is distinct from b;"},
			to:   []string{"functions/api/v.sql", "create or replace view agui.v as with x as (select 1) select t.id, 2::int as one, x from x;"},
			up:   "-- sql/functions/api/v.sql\ncreate or replace view agui.v as with x as (select 1) select t.id, 2::int as one, x from x;",
			down: "drop view agui.v;\n-- sql/functions/api/v.sql\ncreate or replace view agui.v as select t.id, 1 as \"one\" from agui.thread as t where a is distinct from b;",
		},
		"columns in a view that cannot be told": {
			from: []string{"functions/api/v.sql", "create or replace view agui.v as select t.* from agui.thread as t;"},
			to:   []string{"functions/api/v.sql", "create or replace view agui.v as select t.* from agui.thread as t where true;"},
			up:   "drop view agui.v;\n-- sql/functions/api/v.sql\ncreate or replace view agui.v as select t.* from agui.thread as t where true;",
			down: "drop view agui.v;\n-- sql/functions/api/v.sql\ncreate or replace view agui.v as select t.* from agui.thread as t;",
		},
		"a trigger's function, but not the triggers, which would lock their tables": {
			from: []string{path, "create or replace function agui.f() returns trigger language plpgsql as 'begin end';\ncreate or replace trigger t before update on agui.thread for each row execute function agui.f();"},
			to:   []string{path, "create or replace function agui.f() returns trigger language plpgsql as 'begin return new; end';\ncreate or replace trigger t before update on agui.thread for each row execute function agui.f();"},
			up:   "-- sql/functions/core/f.sql\ncreate or replace function agui.f() returns trigger language plpgsql as 'begin return new; end';",
			down: "-- sql/functions/core/f.sql\ncreate or replace function agui.f() returns trigger language plpgsql as 'begin end';",
		},
		"a trigger": {
			from: []string{path, "create or replace function agui.f() returns trigger language plpgsql as 'begin end';\ncreate or replace trigger t before update on agui.thread for each row execute function agui.f();"},
			to:   []string{path, "create or replace function agui.f() returns trigger language plpgsql as 'begin end';\ncreate or replace trigger u before update on agui.thread for each row execute function agui.f();"},
			up:   "drop trigger t on agui.thread;\n-- sql/functions/core/f.sql\ncreate or replace trigger u before update on agui.thread for each row execute function agui.f();",
			down: "drop trigger u on agui.thread;\n-- sql/functions/core/f.sql\ncreate or replace trigger t before update on agui.thread for each row execute function agui.f();",
		},
		"an aggregate": {
			from: []string{path, "create or replace aggregate agui.f(int) (sfunc = int4pl, stype = int);"},
			to:   []string{path, "create or replace aggregate agui.f(int) (sfunc = int4mul, stype = int);"},
			up:   "drop aggregate agui.f(int);\n-- sql/functions/core/f.sql\ncreate or replace aggregate agui.f(int) (sfunc = int4mul, stype = int);",
			down: "drop aggregate agui.f(int);\n-- sql/functions/core/f.sql\ncreate or replace aggregate agui.f(int) (sfunc = int4pl, stype = int);",
		},
		"objects that come and go": {
			from: []string{path, "create or replace function agui.f() returns int return 1;"},
			to:   []string{path, "", other, "create or replace function agui.g() returns int return 1;"},
			up:   "drop function agui.f();\n-- sql/functions/core/other.sql\ncreate or replace function agui.g() returns int return 1;",
			down: "drop function agui.g();\n-- sql/functions/core/f.sql\ncreate or replace function agui.f() returns int return 1;",
		},
		"privileges, which each migration that is made of the sources completes in the end": {
			from: []string{path, "create or replace function agui.f() returns int return 1;", other, "create or replace procedure agui.grant_access() language sql as '';"},
			to:   []string{path, "create or replace function agui.f() returns int return 2;"},
			up:   "-- sql/functions/core/f.sql\ncreate or replace function agui.f() returns int return 2;\ncall agui.grant_access();",
			down: "-- sql/functions/core/f.sql\ncreate or replace function agui.f() returns int return 1;\ncall agui.grant_access();",
		},
		"what a migration written by hand has dropped": {
			from: []string{path, "create or replace view agui.v as select id from agui.thread;"},
			to: []string{
				"schema/000003_type.up.sql", "drop view if exists agui.v, agui.w;\nalter table agui.thread alter column id type bigint;", "schema/000003_type.down.sql", "select 1;",
			},
			up:   "-- sql/functions/core/f.sql\ncreate or replace view agui.v as select id from agui.thread;",
			down: "drop view agui.v;",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sql := sources(append([]string{"functions/core/zero.sql", "create or replace function agui.zero() returns int return 0;"}, test.from...)...)
			release(t, sql)
			set(sql, test.to...)
			file := "000003_functions"
			if sql["schema/000003_type.up.sql"] != nil {
				file = "000004_functions"
			}
			up, down := texts(t, sql, file)
			expect(t, "up", up, test.up)
			expect(t, "down", down, test.down)

			// And back, by the next release.
			if test.up == "" {
				return
			}
			release(t, sql)
			if up, _ := texts(t, sql, "000005_functions"); up != "" {
				t.Errorf("after the release there is more to do: %s", up)
			}
		})
	}
}

func TestRoutinesAreClosedToThePublic(t *testing.T) {
	t.Parallel()
	const path = "functions/core/f.sql"
	sql := sources(path, `create or replace function agui.f() returns int return 1;
create procedure agui.p(a int) language sql as '';
comment on procedure agui.p is 'P.';
create aggregate agui.total(n int) (sfunc = int4pl, stype = int);
create view agui.v as select 1 as a;`)
	up, _ := allTexts(t, sql, "000002_functions")
	expect(t, "up", up, `-- sql/functions/core/f.sql
create or replace function agui.f() returns int return 1;
revoke execute on routine agui.f from public;
create procedure agui.p(a int) language sql as '';
revoke execute on routine agui.p from public;
comment on procedure agui.p is 'P.';
create aggregate agui.total(n int) (sfunc = int4pl, stype = int);
revoke execute on routine agui.total from public;
create view agui.v as select 1 as a;`)

	// One that is replaced has what it had; one that is dropped and created is closed once more.
	release(t, sql)
	set(sql, path, `create or replace function agui.f() returns int return 2;
create procedure agui.p(a bigint) language sql as '';
comment on procedure agui.p is 'P.';
create aggregate agui.total(n int) (sfunc = int4pl, stype = int);
create view agui.v as select 1 as a;`)
	up, _ = allTexts(t, sql, "000003_functions")
	expect(t, "up", up, `drop procedure agui.p(a int);
-- sql/functions/core/f.sql
create or replace function agui.f() returns int return 2;
create procedure agui.p(a bigint) language sql as '';
revoke execute on routine agui.p from public;
comment on procedure agui.p is 'P.';`)

	// A release that said so itself, with arguments, needs nothing more.
	set(sql, path, `create or replace function agui.f() returns int return 2;
revoke execute on function agui.f() from public;
create procedure agui.p(a bigint) language sql as '';
comment on procedure agui.p(bigint) is 'P.';
create aggregate agui.total(n int) (sfunc = int4pl, stype = int);
create view agui.v as select 1 as a;`)
	release(t, sql)
	if up, _ := allTexts(t, sql, "000004_functions"); up != "" {
		t.Errorf("a comment and a privilege that are spelled in another way: %s", up)
	}
}

func TestAFileMayBeginWithAComment(t *testing.T) {
	t.Parallel()
	sql := sources("functions/core/f.sql", "-- What the file\n-- is for.\n\n-- What f does.\ncreate function agui.f() returns int return 1;")
	up, _ := texts(t, sql, "000002_functions")
	expect(t, "up", up, "-- sql/functions/core/f.sql\n-- What f does.\ncreate function agui.f() returns int return 1;")
	set(sql, "functions/core/f.sql", "-- What the file\n-- is for.\n\ngrant execute on function agui.g() to public;")
	if _, err := assembled(t, sql); err == nil || !strings.Contains(err.Error(), "f.sql:4: ") {
		t.Errorf("got %v, want the line", err)
	}
}

func TestTheLastMigrationRecordsTheCatalog(t *testing.T) {
	t.Parallel()
	sql := sources("functions/core/f.sql", "create or replace procedure agui_internal.record_objects() language sql as '';")
	release(t, sql)
	for _, file := range []string{"schema/000003_a", "schema/000004_b"} {
		set(sql, file+".up.sql", "select 1;", file+".down.sql", "select 1;")
	}
	for version, records := range map[int]bool{2: true, 3: false, 4: true} {
		up := mustAssemble(t, sql)[version-1].Up
		calls, forgets := strings.Contains(up, "call agui_internal.record_objects();"), strings.Contains(up, "delete from agui_internal.installed_object;")
		if calls != records || forgets == records {
			t.Errorf("migration %d: records the catalog: %v, forgets it: %v", version, calls, forgets)
		}
	}
}

func TestPrivilegeThatIsGoneIsTakenBackByHand(t *testing.T) {
	t.Parallel()
	sql := sources("functions/core/f.sql", "create or replace function agui.f() returns int return 1;\ngrant execute on function agui.f() to public;")
	release(t, sql)
	set(sql, "functions/core/f.sql", "create or replace function agui.f() returns int return 1;")
	if _, err := assembled(t, sql); err == nil || !strings.Contains(err.Error(), "by hand") {
		t.Errorf("got %v", err)
	}
}
