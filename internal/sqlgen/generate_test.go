package main

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestMigrationIsUpToDate(t *testing.T) {
	t.Parallel()
	if err := run("../../sql", true); err != nil {
		t.Error(err)
	}
}

// sources makes a folder of SQL sources from path, content, path, content, …
func sources(pathsAndContents ...string) fstest.MapFS {
	sql := fstest.MapFS{}
	for _, folder := range sourceFolders {
		sql[folder+"/.keep"] = &fstest.MapFile{}
	}
	for i := 0; i < len(pathsAndContents); i += 2 {
		sql[pathsAndContents[i]] = &fstest.MapFile{Data: []byte(pathsAndContents[i+1])}
	}
	return sql
}

func mustGenerate(t *testing.T, sql fstest.MapFS) (up, down string) {
	t.Helper()
	upBytes, downBytes, err := generate(sql)
	if err != nil {
		t.Fatal(err)
	}
	return string(upBytes), string(downBytes)
}

// sourcesIn are the files of a migration in their order.
func sourcesIn(migration string) string {
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
	up, _ := mustGenerate(t, sources(
		"privileges/a.sql", "grant select on agui.thread to public;",
		"api/views/v.sql", "create view agui.v as select 1;",
		"internal/b.sql", "create function agui.b() returns int language sql as 'select 1';",
		"internal/a/z.sql", "create function agui.z() returns int language sql as 'select 1';",
		"api/types/t.sql", "create type agui.t as (n int);",
	))
	if got, want := sourcesIn(up), "api/types/t.sql api/views/v.sql internal/a/z.sql internal/b.sql privileges/a.sql"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestSourceComesAfterWhatItIsMadeOf(t *testing.T) {
	t.Parallel()
	up, down := mustGenerate(t, sources(
		"api/types/a.sql", "create type agui.a as (inner agui.b);",
		"api/types/b.sql", "create type agui.b as (n int);",
		"internal/caller.sql", "create function agui.caller() returns int return agui.helper();",
		"internal/helper.sql", "create function agui.helper() returns int language sql as 'select 1';",
	))
	if got, want := sourcesIn(up), "api/types/b.sql api/types/a.sql internal/helper.sql internal/caller.sql"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	want := "drop function agui.caller();\ndrop function agui.helper();\ndrop type agui.a;\ndrop type agui.b;\n"
	if got := strings.TrimPrefix(down, header); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestFunctionsMayCallEachOther(t *testing.T) {
	t.Parallel()
	up, _ := mustGenerate(t, sources(
		"internal/a.sql", "create function agui.a() returns int language sql as $$ select agui.b() $$;",
		"internal/b.sql", "create function agui.b() returns int language sql as $$ select agui.a() $$;",
	))
	if got, want := sourcesIn(up), "internal/a.sql internal/b.sql"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestDownDropsWhatEachStatementCreates(t *testing.T) {
	t.Parallel()
	for statement, want := range map[string]string{
		"create or replace function agui.f(a text, b int[] default array[1, 2], c text = ')', d numeric(8, 2) DEFAULT 1) returns int as '' language sql;": "drop function agui.f(a text, b int[], c text, d numeric(8, 2));\n",
		"CREATE PROCEDURE agui.p(\n  a int, -- a comment, with a comma\n  out b int\n) language sql as '';":                                               "drop procedure agui.p(a int, out b int);\n",
		"create aggregate agui.total(jsonb) (sfunc = agui.f, stype = jsonb);":                                                                             "drop aggregate agui.total(jsonb);\n",
		"create view agui.v as select ';';": "drop view agui.v;\n",
		"create trigger refuse before update or delete on agui.batch for each row execute function agui.refuse();":                                          "drop trigger refuse on agui.batch;\n",
		"create function agui.g() returns int begin atomic select case when true then 1 end; select 2; end; create type agui.t as (n int);":                 "drop type agui.t;\ndrop function agui.g();\n",
		"create function agui.h() returns int language plpgsql as $body$ begin; create table x (); end $body$; comment on function agui.h() is 'It''s; h';": "drop function agui.h();\n",
		"do $$ begin perform 1; end $$; revoke execute on function agui.f from public;":                                                                     "",
	} {
		_, down := mustGenerate(t, sources("internal/f.sql", statement))
		if got := strings.TrimPrefix(down, header); got != want {
			t.Errorf("%s\ngot  %swant %s", statement, got, want)
		}
	}
}

func TestErrorsNameTheFile(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]fstest.MapFS{
		"sql/internal/f.sql:3: cannot tell": sources("internal/f.sql", "\n\nalter table agui.thread add column x int;"),
		"sql/internal/g.sql:1: cannot tell": sources("internal/g.sql", "create function unqualified() returns int language sql as '';"),
		"need each other": sources(
			"internal/a.sql", "create function agui.a() returns int return agui.b();",
			"internal/b.sql", "create function agui.b() returns int return agui.a();"),
	} {
		if _, _, err := generate(sql); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want an error with %q", err, name)
		}
	}
}

func TestAggregateComesAfterItsFunctionAndGoesBeforeIt(t *testing.T) {
	t.Parallel()
	up, down := mustGenerate(t, sources(
		"internal/total.sql", "create or replace aggregate agui.total(n int) (sfunc = agui.total_step, stype = bigint, initcond = '0');",
		"internal/total_step.sql", "create function agui.total_step(total bigint, n int) returns bigint language sql return total + n;",
	))
	if got, want := sourcesIn(up), "internal/total_step.sql internal/total.sql"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if want := "drop aggregate agui.total(n int);\ndrop function agui.total_step(total bigint, n int);\n"; !strings.HasSuffix(down, want) {
		t.Errorf("got %s\nwant at its end %s", down, want)
	}
}
