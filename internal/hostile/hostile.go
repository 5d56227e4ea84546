// Package hostile attacks the name resolution of SQL, for tests: it plants a schema in which every operator, function, type and relation of
// pg_catalog has a double. A bare name that is resolved while that schema comes first in search_path runs the code of a double.
package hostile

import (
	"context"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Path is a search_path on which the doubles come before the originals.
const Path = "hostile,pg_catalog"

// Address is that of a database with Path as the search_path of its sessions.
func Address(database string) string {
	parsed, err := url.Parse(database)
	if err != nil {
		panic(err)
	}
	parameters := parsed.Query()
	parameters.Set("search_path", Path)
	parsed.RawQuery = parameters.Encode()
	return parsed.String()
}

// Queryer is a connection or a pool.
type Queryer interface {
	QueryRow(ctx context.Context, sql string, arguments ...any) pgx.Row
}

// Plant makes the doubles, as a superuser. Each counts its calls and fails.
func Plant(t testing.TB, address string) {
	t.Helper()
	connection, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close(context.WithoutCancel(t.Context()))
	if _, err := connection.Exec(t.Context(), plant); err != nil {
		t.Fatal("plant the doubles:", err)
	}
}

// Calls is how often doubles were called.
func Calls(t testing.TB, database Queryer) (calls int) {
	t.Helper()
	if err := database.QueryRow(t.Context(), `select case when is_called then last_value else 0 end from hostile.calls`).Scan(&calls); err != nil {
		t.Fatal(err)
	}
	return calls
}

const plant = `
set search_path = pg_catalog;
create schema hostile;
create sequence hostile.calls; -- what a sequence counts survives a rollback

create function hostile.attack(what text) returns boolean language plpgsql set search_path = pg_catalog as $$
begin
	begin
		perform nextval('hostile.calls');
	exception
		when read_only_sql_transaction then null;
	end;
	raise exception 'HOSTILE: % was called', what;
end
$$;

do $plant$
declare
	original record;
	body text;
	made int := 0;
	failed int := 0;
begin
	for original in
		select
			p.oid::regprocedure::text as what,
			format('create function hostile.%I(%s) returns %s language plpgsql', p.proname,
				replace(replace(pg_get_function_arguments(p.oid), 'VARIADIC "any"', 'VARIADIC anyarray'), '"any"', 'anyelement'),
				pg_get_function_result(p.oid)) as definition
		from pg_proc as p
		where p.pronamespace = 'pg_catalog'::regnamespace and p.prokind = 'f'
			and not ('{internal,cstring,trigger,event_trigger,language_handler}'::regtype[] && (p.proargtypes::oid[] || p.prorettype)::regtype[])
		union all
		select
			p.oid::regprocedure::text,
			format('create function hostile.%1$s(state boolean%2$s) returns boolean language plpgsql as %3$L;'
				' create aggregate hostile.%4$I(%5$s) (sfunc = hostile.%1$s, stype = boolean)',
				'step_' || p.oid, (select string_agg(', ' || replace(format_type(a, null), '"any"', 'anyelement'), '') from unnest(p.proargtypes) as a),
				format('begin return hostile.attack(%L); end', p.oid::regprocedure::text), p.proname,
				coalesce(nullif(replace(replace(pg_get_function_arguments(p.oid), 'VARIADIC ', ''), '"any"', 'anyelement'), ''), '*'))
		from pg_proc as p
		where p.pronamespace = 'pg_catalog'::regnamespace and p.prokind = 'a'
		union all
		select
			o.oid::regoperator::text,
			format('create function hostile.%1$I(%2$s) returns %3$s language plpgsql as %4$L;'
				' create operator hostile.%5$s (function = hostile.%1$I%6$s, rightarg = %7$s)',
				'operator_' || o.oid,
				concat_ws(', ', format_type(nullif(o.oprleft, 0), null), format_type(o.oprright, null)),
				format_type(o.oprresult, null),
				format('begin perform hostile.attack(%L); end', o.oid::regoperator::text),
				o.oprname, ', leftarg = ' || format_type(nullif(o.oprleft, 0), null), format_type(o.oprright, null))
		from pg_operator as o
		where o.oprnamespace = 'pg_catalog'::regnamespace and o.oprright <> 0
		union all
		select
			t.typname,
			format('create domain hostile.%I as pg_catalog.%1$I constraint attack check (hostile.attack(%L))', t.typname, 'type ' || t.typname)
		from pg_type as t
		where t.typnamespace = 'pg_catalog'::regnamespace and t.typtype in ('b', 'r') and t.typelem = 0
		union all
		select
			c.relname,
			format('create view hostile.%I as select * from pg_catalog.%1$I where hostile.attack(%L)', c.relname, 'relation ' || c.relname)
		from pg_class as c
		where c.relnamespace = 'pg_catalog'::regnamespace and c.relkind in ('r', 'v')
	loop
		begin
			execute case
				when original.definition like 'create function %' and original.definition not like '% as %'
					then original.definition || format(' as %L', format('begin perform hostile.attack(%L); end', original.what))
				else original.definition
			end;
			made := made + 1;
		exception
			when others then
				failed := failed + 1;
				raise debug '%: %', original.definition, sqlerrm;
		end;
	end loop;
	-- What cannot have a double: functions with two parameters of one name, columns of pseudo-types.
	if failed > 40 then
		raise exception '% doubles made, % not', made, failed;
	end if;
end
$plant$;`
