package schema_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/migration"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testfile"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/jobs"
	"github.com/pgagui/pgagui/sql/schema"
)

// release is a folder sql: sources, and the migrations made of them.
type release struct {
	t     *testing.T
	files fstest.MapFS
}

// thisRelease has the sources and migrations of this program.
func thisRelease(t *testing.T) release {
	t.Helper()
	r := release{t, fstest.MapFS{}}
	folder := os.DirFS("..")
	err := fs.WalkDir(folder, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains([]string{".sql", ".sum", ""}, path.Ext(file)) {
			return err
		}
		content, err := fs.ReadFile(folder, file)
		r.files[file] = &fstest.MapFile{Data: content}
		return err
	})
	must.Do(t, err)
	return r
}

// next is a copy to change.
func (r release) next() release {
	r.files = maps.Clone(r.files)
	return r
}

func (r release) write(file, content string) {
	r.files[file] = &fstest.MapFile{Data: []byte(content)}
}

// migrate adds a migration written by hand.
func (r release) migrate(name, up, down string) {
	r.t.Helper()
	released := must.Have(fs.Glob(r.files, "schema/*.up.sql"))(r.t)
	path := fmt.Sprintf("schema/%06d_%s", len(released)+1, name)
	r.write(path+".up.sql", up)
	r.write(path+".down.sql", down)
}

// replace replaces what a pattern matches first in a file.
func (r release) replace(file, pattern, replacement string) {
	r.t.Helper()
	source := r.files[file]
	if source == nil {
		r.t.Fatalf("there is no sql/%s any more", file)
	}
	match := regexp.MustCompile(pattern).FindIndex(source.Data)
	if match == nil {
		r.t.Fatalf("sql/%s has no %s any more", file, pattern)
	}
	r.write(file, string(source.Data[:match[0]])+replacement+string(source.Data[match[1]:]))
}

// freeze releases the migrations.
func (r release) freeze() {
	r.t.Helper()
	files := must.Have(migration.Release(r.folder("functions"), r.folder("schema")))(r.t)
	for name, content := range files {
		r.write("schema/"+name, string(content))
	}
}

func (r release) folder(name string) fs.FS {
	r.t.Helper()
	folder := must.Have(fs.Sub(r.files, name))(r.t)
	return folder
}

// unreleased makes of a release with its chain one that installs the same with migrations as if nothing had been released.
func (r release) unreleased() release {
	r.t.Helper()
	fresh := r.next()
	number := 0
	for _, name := range slices.Sorted(maps.Keys(r.files)) {
		base, isUp := strings.CutSuffix(strings.TrimPrefix(name, "schema/"), ".up.sql")
		if !strings.HasPrefix(name, "schema/") {
			continue
		}
		delete(fresh.files, name)
		if !isUp || strings.HasSuffix(base, "_functions") {
			continue
		}
		number++
		_, title, _ := strings.Cut(base, "_")
		for _, suffix := range []string{".up.sql", ".down.sql"} {
			defer fresh.write(fmt.Sprintf("schema/%06d_%s%s", number, title, suffix), migration.Body(string(r.files["schema/"+base+suffix].Data)))
		}
	}
	return fresh
}

// thawed is a release before it was released: its functions are not in a migration yet.
func (r release) thawed() release {
	r.t.Helper()
	thawed := r.next()
	migrations := slices.DeleteFunc(slices.Sorted(maps.Keys(r.files)), func(name string) bool { return !strings.HasSuffix(name, ".up.sql") })
	last, isOfFunctions := strings.CutSuffix(migrations[len(migrations)-1], "_functions.up.sql")
	if !isOfFunctions {
		r.t.Fatalf("the last migration is %s", last)
	}
	delete(thawed.files, last+"_functions.up.sql")
	delete(thawed.files, last+"_functions.down.sql")
	return thawed
}

func (r release) migrations() schema.Option {
	r.t.Helper()
	return schema.FromSources(r.folder("functions"), r.folder("schema"))
}

func (r release) mustUp(address string) {
	r.t.Helper()
	must.Do(r.t, schema.Up(r.t.Context(), address, r.migrations()))
}

// The first release is this program's schema and some more objects, one of which is called by every append, so that later releases
// can change all that may change of objects.
func firstRelease(t *testing.T) release {
	r := thisRelease(t)
	r.write("functions/core/sample/sample_type.sql", `create type agui_internal.sample as (a int, b text);
comment on type agui_internal.sample is 'Sample.';`)
	r.write("functions/core/sample/sample.sql", `create or replace function agui_internal.take_sample(key text, size int default 1)
returns agui_internal.sample
language plpgsql
as $$
declare
    taken agui_internal.sample;
begin
    taken := row(size, key);
    return taken;
end
$$;
comment on function agui_internal.take_sample(text, int) is 'Takes a sample.';
revoke execute on function agui_internal.take_sample(text, int) from public;`)
	r.write("functions/core/sample/count.sql", `create or replace function agui_internal.count_samples()
returns bigint
language sql
stable
begin atomic
    select count(*) from agui.sample_event as event where (agui_internal.take_sample(event.run_id)).a = 1;
end;
comment on function agui_internal.count_samples() is 'Counts samples.';
revoke execute on function agui_internal.count_samples() from public;`)
	r.write("functions/core/sample/holder.sql", `create or replace function agui_internal.hold_samples(key text)
returns int
language plpgsql
as $$
declare
    held agui_internal.sample[];
begin
    held := array[agui_internal.take_sample(key), agui_internal.take_sample(key)];
    return cardinality(held);
end
$$;
comment on function agui_internal.hold_samples(text) is 'Holds samples in an array, whose type it remembers.';
revoke execute on function agui_internal.hold_samples(text) from public;`)
	r.write("functions/core/sample/sum.sql", `create or replace aggregate agui_internal.sample_sum(int) (sfunc = int4pl, stype = int, initcond = '0');
comment on aggregate agui_internal.sample_sum(int) is 'Adds.';`)
	r.write("functions/core/sample/trigger.sql", `create or replace function agui_internal.note_sample()
returns trigger
language plpgsql
as $$ begin return new; end $$;
comment on function agui_internal.note_sample() is 'Trigger: notes.';
revoke execute on function agui_internal.note_sample() from public;
create or replace trigger note_sample before insert on agui.erasure for each row execute function agui_internal.note_sample();
create or replace trigger note_update before update on agui.erasure for each row execute function agui_internal.note_sample();`)
	r.write("functions/api/sample/sample_event.sql", `create or replace view agui.sample_event with (security_invoker = true) as
select run.run_id, run.status from agui.run as run;
comment on view agui.sample_event is 'Samples.';
comment on column agui.sample_event.run_id is 'Run.';
comment on column agui.sample_event.status is 'Status.';`)
	r.write("functions/api/sample/old_sample.sql", `create or replace procedure agui.old_sample(a int)
language plpgsql
as $$ begin perform agui_internal.take_sample('old', a); end $$;
comment on procedure agui.old_sample(int) is 'Goes.';
revoke execute on procedure agui.old_sample(int) from public;`)
	r.replace("functions/api/append.sql", `    last_seq  bigint;\nbegin\n`, "    last_seq  bigint;\nbegin\n    perform agui_internal.take_sample(thread_id), agui_internal.hold_samples(thread_id);\n")
	r.freeze()
	return r
}

// The second release changes bodies, a signature by an argument with a default, an argument's name, a composite type, a view by a
// column more, comments, privileges and tables, and removes a procedure.
func secondRelease(first release) release {
	r := first.next()
	r.migrate("labels", `alter table agui.erasure add column label text;
comment on column agui.erasure.label is 'Label.';
alter table agui.batch add column label text;
comment on column agui.batch.label is 'Label.';`, `-- In the order in which readers lock them.
alter table agui.batch drop column label;
alter table agui.erasure drop column label;`)
	r.write("functions/core/sample/sample_type.sql", `create type agui_internal.sample as (a int, b text, c timestamptz);
comment on type agui_internal.sample is 'Sample with its time.';`)
	r.replace("functions/core/sample/sample.sql", `key text, size int default 1`, `name text, size int default 1, weight int default 2`)
	r.replace("functions/core/sample/sample.sql", `row\(size, key\)`, `row(size, name, now())`)
	r.replace("functions/core/sample/sample.sql", `(?s)comment on.*`, `comment on function agui_internal.take_sample(text, int, int) is 'Takes a heavier sample.';
revoke execute on function agui_internal.take_sample(text, int, int) from public;`)
	r.replace("functions/core/sample/sum.sql", `initcond = '0'`, `initcond = '1'`)
	r.replace("functions/core/sample/trigger.sql", `before update on agui.erasure`, `before update of reason on agui.erasure`)
	r.replace("functions/api/sample/sample_event.sql", `run.status from`, `run.status, run.run_no from`)
	r.replace("functions/api/sample/sample_event.sql", `(?s)'Status.';.*`, `'How it is.';
comment on column agui.sample_event.run_no is 'Number.';`)
	delete(r.files, "functions/api/sample/old_sample.sql")
	r.write("functions/api/sample/new_sample.sql", `create or replace function agui.new_sample(a int)
returns setof agui.sample_event
language sql
stable
as $$ select * from agui.sample_event limit a $$;
comment on function agui.new_sample(int) is 'Comes.';
revoke execute on function agui.new_sample(int) from public;`)
	r.replace("functions/core/privileges.sql", `, 'pg_monitor'\]`, `]`)
	r.changeBodies("second")
	r.freeze()
	return r
}

// The third release goes further: a view in another order, so that what depends on it must be dropped and created; a return type; a trigger
// less; what had come goes, what had gone comes in another kind.
func thirdRelease(second release) release {
	r := second.next()
	r.migrate("index", `create index sample_by_status on agui.run (status) where status = 'failed';
comment on index agui.sample_by_status is 'Sample.';`, `drop index agui.sample_by_status;`)
	r.replace("functions/core/sample/sample.sql", `returns agui_internal.sample\n`, `returns setof agui_internal.sample`+"\n")
	r.replace("functions/core/sample/sample.sql", `return taken;`, `return next taken;`)
	r.replace("functions/core/sample/count.sql", `as event where .*`, `as event cross join agui_internal.take_sample(event.run_id) as sample where sample.a = 1;`)
	r.replace("functions/core/sample/holder.sql", `'Holds [^']*'`, `'Holds samples.'`)
	r.replace("functions/core/sample/trigger.sql", `(?s)create or replace trigger note_update.*`, ``)
	r.replace("functions/api/sample/sample_event.sql", `run.run_id, run.status, run.run_no from`, `run.run_no, run.status, run.run_id from`)
	r.write("functions/api/sample/old_sample.sql", `create or replace function agui.old_sample(a int, b int default 2)
returns int
language sql
immutable
return a + b;
comment on function agui.old_sample(int, int) is 'Is here, as a function now.';
revoke execute on function agui.old_sample(int, int) from public;`)
	delete(r.files, "functions/api/sample/new_sample.sql")
	r.replace("functions/core/privileges.sql", `'agui_maintainer'\]`, `'agui_maintainer', 'pg_monitor']`)
	r.changeBodies("third")
	r.freeze()
	return r
}

// changeBodies changes the body of every function in PL/pgSQL.
func (r release) changeBodies(release string) {
	r.t.Helper()
	begin := regexp.MustCompile(`(?m)^begin$`)
	changed := 0
	for file, source := range r.files {
		if strings.HasPrefix(file, "schema/") || !strings.Contains(string(source.Data), "language plpgsql") {
			continue
		}
		r.write(file, begin.ReplaceAllString(string(source.Data), "begin -- "+release))
		changed++
	}
	if changed < 10 {
		r.t.Fatalf("only %d files of functions in PL/pgSQL", changed)
	}
}

// catalog is all that the catalog says of the two schemas: objects with their definitions, comments and privileges. What differs
// by design between two chains of migrations is left out: the record of the install, and which columns were added when.
func catalog(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	return testdb.Ask[string](t, pool, `
		with namespace as (
			select oid, nspname, nspacl from pg_namespace where nspname in ('agui', 'agui_internal')
		), object (class, oid, name, definition, privileges) as (
			select 'pg_namespace'::regclass, oid, 'schema ' || nspname, '', nspacl from namespace
			union all
			select 'pg_class'::regclass, class.oid, format('%s %s', relkind, class.oid::regclass),
				concat_ws(' ', relpersistence, reloptions, relrowsecurity,
					case relkind when 'v' then pg_get_viewdef(class.oid) when 'i' then pg_get_indexdef(class.oid) end,
					(select string_agg(concat_ws(' ', attname, format_type(atttypid, atttypmod), attnotnull, attstorage, attcompression, attacl,
						pg_get_expr(adbin, adrelid), col_description(attrelid, attnum)), e'\n    ' order by case when relkind = 'r' then attname end, attnum)
					from pg_attribute left join pg_attrdef on adrelid = attrelid and adnum = attnum
					where attrelid = class.oid and attnum > 0 and not attisdropped and relkind <> 'i')),
				relacl
			from pg_class as class join namespace on namespace.oid = relnamespace
			where relkind not in ('t') and relname not like 'schema_migrations%'
			union all
			select 'pg_proc'::regclass, routine.oid, routine.oid::regprocedure::text,
				case
					when prokind = 'a' then (select to_jsonb(pg_aggregate)::text from pg_aggregate where aggfnoid = routine.oid)
					when proname <> 'this_node' then pg_get_functiondef(routine.oid) -- whose body is a setting
				end,
				proacl
			from pg_proc as routine join namespace on namespace.oid = pronamespace
			where proname not in ('installed', 'unreleased_build')
			union all
			select 'pg_type'::regclass, type.oid, 'type ' || type.oid::regtype, format_type(typbasetype, typtypmod), typacl
			from pg_type as type join namespace on namespace.oid = typnamespace
			where typname not like '%schema_migrations'
			union all
			select 'pg_constraint'::regclass, con.oid, format('constraint %s on %s', conname, conrelid::regclass), pg_get_constraintdef(con.oid), null
			from pg_constraint as con join namespace on namespace.oid = connamespace
			where conrelid <> 0 and conname not like 'schema_migrations%'
			union all
			select 'pg_trigger'::regclass, trigger.oid, format('trigger %s on %s', tgname, tgrelid::regclass), format('%s %s', pg_get_triggerdef(trigger.oid), tgenabled), null
			from pg_trigger as trigger join pg_class as class on class.oid = tgrelid join namespace on namespace.oid = relnamespace
			where not tgisinternal
		)
		select string_agg(format(e'%s\n    %s\n    %s\n    %s', object.name,
				regexp_replace(object.definition, '"aggfnoid": [^,]*, ', ''),
				obj_description(object.oid, object.class::text),
				(select string_agg(format('%s=%s', grantee::regrole, privilege_type), ' ' order by grantee::regrole::text, privilege_type) from aclexplode(object.privileges))),
			e'\n' order by object.name, object.definition)
		from object`)
}

// differences are the lines that only one of two texts has.
func differences(got, want string) string {
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(want, "\n")
	var all strings.Builder
	for _, line := range gotLines {
		if !slices.Contains(wantLines, line) {
			fmt.Fprintf(&all, "+ %s\n", line)
		}
	}
	for _, line := range wantLines {
		if !slices.Contains(gotLines, line) {
			fmt.Fprintf(&all, "- %s\n", line)
		}
	}
	if all.Len() == 0 && got != want {
		return "the same lines in another order"
	}
	return all.String()
}

// writer appends one event after the other to a run of its own until it is stopped, and repeats calls that failed.
type writer struct {
	thread  string
	written int
	calls   atomic.Int64 // that have returned
	ended   atomic.Bool
	repeats map[string]int // by SQLSTATE and message
	longest time.Duration
	failure error
}

func (w *writer) work(ctx context.Context, pool *pgxpool.Pool, stop *atomic.Bool) {
	w.repeats = map[string]int{}
	defer w.ended.Store(true)
	call := func(events string) error {
		began := time.Now()
		for attempt := 0; ; attempt++ {
			var seq int
			err := pool.QueryRow(ctx, `select agui.append($1, 'r', $2::text::json, after_seq => $3)`, w.thread, events, w.written).Scan(&seq)
			w.longest = max(w.longest, time.Since(began))
			w.calls.Add(1)
			if err == nil {
				if seq != w.written+1 {
					return fmt.Errorf("event %d got seq %d", w.written+1, seq)
				}
				w.written = seq
				return nil
			}
			var refusal *pgconn.PgError
			if !errors.As(err, &refusal) || attempt == 3 || !isRetriable(refusal) {
				return err
			}
			w.repeats[refusal.Code+" "+refusal.Message]++
		}
	}
	if w.failure = call(`[{"type":"RUN_STARTED"}]`); w.failure != nil {
		return
	}
	tick := time.Tick(5 * time.Millisecond) // as a model
	for !stop.Load() && w.failure == nil {
		<-tick
		w.failure = call(fmt.Sprintf(`[{"type":"CUSTOM","name":"n","value":%d}]`, w.written))
	}
}

// follower reads a thread while it is written.
type follower struct {
	seen    atomic.Int64
	ended   atomic.Bool
	failure error
}

func (f *follower) follow(ctx context.Context, store *pgagui.Store, thread string) {
	defer f.ended.Store(true)
	for event, err := range store.Follow(ctx, thread, pgagui.FollowOptions{Stay: true}) {
		if ctx.Err() != nil {
			return
		}
		if seen := f.seen.Load(); err != nil || event.Seq != seen+1 {
			f.failure = fmt.Errorf("after event %d: event %d, %w", seen, event.Seq, err)
			return
		}
		f.seen.Add(1)
	}
}

// keepCompacting appends short runs, and compacts them in turns with the procedure and the job in Go. It returns how many it compacted.
func keepCompacting(t *testing.T, pool *pgxpool.Pool, stop *atomic.Bool) (compacted int) {
	tick := time.Tick(5 * time.Millisecond)
	for n := 0; !stop.Load(); n++ {
		<-tick
		_, err := pool.Exec(t.Context(), `select agui.append('writer of runs', $1, '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]', 0)`, fmt.Sprint(n))
		if err == nil && n%2 == 0 {
			var done jobs.Compacted
			done, err = jobs.Compact(t.Context(), pool, jobs.CompactOptions{})
			compacted += done.Runs
		} else if err == nil {
			_, err = pool.Exec(t.Context(), `call agui.compact()`)
		}
		// A job waits 200 ms for a lock, and the next call continues.
		var refusal *pgconn.PgError
		if err != nil && !(errors.As(err, &refusal) && (isRetriable(refusal) || refusal.Code == "55P03")) {
			t.Errorf("a job beside the upgrades: %v", err)
			return compacted
		}
	}
	return compacted
}

// keepVerifying looks for damage in the threads that the writers leave alone. It returns how often it has looked at all of them.
func keepVerifying(t *testing.T, pool *pgxpool.Pool, stop *atomic.Bool) (verified int) {
	tick := time.Tick(100 * time.Millisecond)
	for !stop.Load() {
		<-tick
		var damage *string
		err := pool.QueryRow(t.Context(), `
			select string_agg(concat_ws(' ', thread_id, problem.run_id, problem.problem), e'\n')
			from (select * from agui.thread where thread_id !~ '^writer(-[0-9]| of)' offset 0) as thread
			cross join lateral agui.verify(thread_id, scope) as problem
			where problem.severity = 'damage'`).Scan(&damage)
		var refusal *pgconn.PgError
		switch {
		case errors.As(err, &refusal) && isRetriable(refusal):
		case err != nil:
			t.Errorf("verify beside the upgrades: %v", err)
			return verified
		case damage != nil:
			t.Errorf("verify beside the upgrades: %s", *damage)
			return verified
		default:
			verified++
		}
	}
	return verified
}

// isRetriable reports whether README.md allows a retry: another transaction held a lock, or the
// schema was upgraded while the call ran.
func isRetriable(refusal *pgconn.PgError) bool {
	switch refusal.Code {
	case "40001", "40P01", "42883", "42704", "42804":
		return true
	}
	return refusal.Code == "XX000" && (strings.HasPrefix(refusal.Message, "cache lookup failed") ||
		strings.HasPrefix(refusal.Message, "could not open relation")) ||
		refusal.Code == "0A000" && strings.HasPrefix(refusal.Message, "cached plan")
}

func TestUpgradesStepByStepWithWritersAtWork(t *testing.T) {
	t.Parallel()
	first := firstRelease(t)
	second := secondRelease(first)
	third := thirdRelease(second)

	// A store of 0.1.0, if that is released.
	address := testdb.Empty(t)
	pool := testdb.Connect(t, address)
	version := storeOfRelease(t, address)
	if version == 0 {
		first.mustUp(address)
		fill(t, pool)
	}
	// A run whose meaning the rules of this version change.
	testdb.Exec(t, pool, `select agui.append('writer-late', 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_ERROR","message":"x"},{"type":"STATE_SNAPSHOT","snapshot":{"late":1}},{"type":"RUN_FINISHED"}]')`)
	testdb.Exec(t, pool, `call agui.compact()`) // what became due since the store was dumped, as the job below would
	atFirst := columns(t, pool)
	data := kept(t, pool, atFirst)
	first.mustUp(address)
	if got := kept(t, pool, atFirst); got != data {
		t.Errorf("after the first upgrade: rows have changed:\n%s", differences(got, data))
	}
	testdb.Exec(t, pool, `call agui.compact()`) // snapshots of older rules are made again
	data = kept(t, pool, atFirst)
	catalogs := []string{catalog(t, pool)}
	testdb.Exec(t, pool, `create view public.dashboard as select run_id, status from agui.event join agui.run using (run_id)`) // of a user

	var stop atomic.Bool
	var working sync.WaitGroup
	writers := make([]writer, 4)
	for i := range writers {
		writers[i].thread = fmt.Sprint("writer-", i)
		working.Go(func() { writers[i].work(t.Context(), pool, &stop) })
	}
	followers := make([]follower, len(writers))
	following, endFollowing := context.WithCancel(t.Context())
	defer endFollowing()
	for i := range followers {
		working.Go(func() { followers[i].follow(following, pgagui.New(pool, nil), writers[i].thread) })
	}
	compacted, verified := 0, 0
	working.Go(func() { compacted = keepCompacting(t, pool, &stop) })
	working.Go(func() { verified = keepVerifying(t, pool, &stop) })
	check := func(what string, at release) {
		t.Helper()
		// Writers meet what is new. One that has failed ends.
		before := make([]int64, len(writers))
		for i := range writers {
			before[i] = writers[i].calls.Load()
		}
		wait.For(t, "each writer appends more", func() bool {
			for i := range writers {
				if writers[i].calls.Load() < before[i]+5 && !writers[i].ended.Load() {
					return false
				}
			}
			return true
		})
		if got := kept(t, pool, atFirst); got != data {
			t.Errorf("%s: rows have changed:\n%s", what, differences(got, data))
		}
		state, err := schema.Status(t.Context(), address, at.migrations())
		if err != nil || state.Problem() != nil {
			t.Errorf("%s: %+v, %v", what, state.Problem(), err)
		}
	}
	for i, next := range []release{second, third} {
		if i == 0 {
			upWhileALongTransactionReads(t, address, pool, next)
		} else {
			next.mustUp(address)
		}
		check(fmt.Sprintf("upgraded to release %d", i+2), next)
		catalogs = append(catalogs, catalog(t, pool))
	}

	// A fresh install of the third release, through its chain and as if nothing had been released before.
	for name, release := range map[string]release{"its chain": third, "its sources": third.unreleased()} {
		freshAddress := testdb.Empty(t)
		release.mustUp(freshAddress)
		if got, want := catalogs[2], catalog(t, testdb.Connect(t, freshAddress)); got != want {
			t.Errorf("upgraded (+) and installed from %s (-) differ:\n%s", name, differences(got, want))
		}
	}

	// Each step's way back.
	engine := ownChain(t, address, third.folder("schema"), ourVersionTable())
	for i, previous := range []release{second, first} {
		if err := engine.Steps(-2); err != nil { // the functions, then the tables
			t.Fatal(err)
		}
		check(fmt.Sprintf("back at release %d", 2-i), previous)
		if got, want := catalog(t, pool), catalogs[1-i]; got != want {
			t.Errorf("back at release %d (+) and as it was (-) differ:\n%s", 2-i, differences(got, want))
		}
	}

	stop.Store(true)
	for i := range followers {
		wait.For(t, "the follower to have all", func() bool {
			return writers[i].ended.Load() && followers[i].seen.Load() >= int64(writers[i].written) || followers[i].ended.Load()
		})
	}
	endFollowing()
	working.Wait()
	if compacted < 10 || verified < 3 {
		t.Errorf("compacted %d runs, and verified the store %d times, beside the upgrades", compacted, verified)
	}
	for i := range writers {
		if failure := followers[i].failure; failure != nil {
			t.Errorf("follower of %s: %v", writers[i].thread, failure)
		}
		writer := &writers[i]
		if writer.failure != nil {
			t.Errorf("%s: %v", writer.thread, writer.failure)
		}
		if got := testdb.Ask[int](t, pool, fmt.Sprintf(`select count(*) from agui.events('%s')`, writer.thread)); got != writer.written || got < 10 {
			t.Errorf("%s has written %d events, the log has %d", writer.thread, writer.written, got)
		}
		if writer.longest > 3*time.Second {
			t.Errorf("%s waited %s", writer.thread, writer.longest)
		}
		t.Logf("%s: %d events, longest wait %s, repeats %v", writer.thread, writer.written, writer.longest.Round(time.Millisecond), writer.repeats)
	}
}

// A build that is not released gives way to another one, of the same version or of a later one, released or not, beside a writer.
func TestUnreleasedBuildsUpgradeEachOther(t *testing.T) {
	t.Parallel()
	first := firstRelease(t)
	second := secondRelease(first)
	third := thirdRelease(second)
	other := first.thawed()
	other.changeBodies("other")
	other.replace("functions/api/sample/sample_event.sql", `run.run_id, run.status from`, `run.status, run.run_id from`)

	address := testdb.Empty(t)
	pool := testdb.Connect(t, address)
	first.thawed().mustUp(address)
	fill(t, pool)
	atFirst := columns(t, pool)
	data := kept(t, pool, atFirst)
	testdb.Exec(t, pool, `call agui.enable_row_security()`)

	var stop atomic.Bool
	var working sync.WaitGroup
	w := writer{thread: "writer"}
	working.Go(func() { w.work(t.Context(), pool, &stop) })
	for _, step := range []struct {
		name string
		to   release
	}{
		{"another build of the version", other},
		{"back", first.thawed()},
		{"the next version, unreleased", second.thawed()},
		{"the same, released", second},
		{"the version after that, released", third},
	} {
		state, err := schema.Status(t.Context(), address, step.to.migrations())
		if err != nil || !errors.Is(state.Problem(), schema.ErrUnreleased) && !errors.Is(state.Problem(), schema.ErrOlder) {
			t.Errorf("%s, before: %v, %v", step.name, state.Problem(), err)
		}
		step.to.mustUp(address)
		if state, err = schema.Status(t.Context(), address, step.to.migrations()); err != nil || state.Problem() != nil || !state.RowSecurity {
			t.Errorf("%s: %v, %v", step.name, state.Problem(), err)
		}
		if got := kept(t, pool, atFirst); got != data {
			t.Errorf("%s: rows have changed:\n%s", step.name, differences(got, data))
		}
		if node := testdb.Ask[string](t, pool, `select agui_internal.this_node()`); node != "a" {
			t.Errorf("%s: the database is node %q, it was node a", step.name, node)
		}
		freshAddress := testdb.Empty(t)
		step.to.mustUp(freshAddress)
		fresh := testdb.Connect(t, freshAddress)
		testdb.Exec(t, fresh, `call agui.enable_row_security()`)
		if got, want := catalog(t, pool), catalog(t, fresh); got != want {
			t.Errorf("%s: upgraded (+) and installed (-) differ:\n%s", step.name, differences(got, want))
		}
		const recorded = `select array_to_string(objects, e'\n') from agui_internal.installed()`
		if got, want := testdb.Ask[string](t, pool, recorded), testdb.Ask[string](t, fresh, recorded); got != want {
			t.Errorf("%s: what belongs to the install, upgraded (+) and fresh (-):\n%s", step.name, differences(got, want))
		}
		before := w.calls.Load()
		wait.For(t, "the writer to append more", func() bool { return w.calls.Load() > before+5 || w.ended.Load() })
	}
	stop.Store(true)
	working.Wait()
	if w.failure != nil {
		t.Error(w.failure)
	}
	if err := schema.Down(t.Context(), address, third.migrations()); !errors.Is(err, schema.ErrHoldsData) || !schemaExists(t, pool) {
		t.Errorf("Down, with conversations: %v", err)
	}
	if err := schema.Down(t.Context(), address, third.migrations(), schema.DeleteData()); err != nil || schemaExists(t, pool) {
		t.Errorf("Down: %v", err)
	}
}

// What programs of earlier versions send works with the schema as it is, down to the version in the file serves.
func TestTheSchemaServesProgramsOfEarlierVersions(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	connection := testdb.Acquire(t, pool)
	serves := testdb.Ask[uint](t, pool, `select serves from agui_internal.installed()`)
	files := must.Have(filepath.Glob("testdata/sent_*.sql"))(t)
	for _, file := range files {
		version := versionOf(t, file, "sent_")
		if version < serves {
			continue
		}
		text := testfile.Read(t, file)
		statements := strings.Split(string(text), ";\n\n")
		if len(statements) < 50 {
			t.Errorf("%s has %d statements", file, len(statements))
		}
		for _, statement := range statements {
			if _, err := connection.Conn().Prepare(t.Context(), "", statement); err != nil {
				t.Errorf("programs of version %d send this, and sql/schema/serves says that they work: %v\n%s", version, err, statement)
			}
		}
	}
}

// Interrupts of a store from before it was noted which are open wait as before, and the next call of the job notes it.
func TestInterruptsOfAnOlderStore(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	interrupted := func(interrupt string) string {
		return fmt.Sprintf(`[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[%s]}}]`, interrupt)
	}
	for _, run := range [][3]string{
		{"waits", "r1", interrupted(`{"id":"a"},{"id":"b","expiresAt":"2100-01-01T00:00:00Z"}`)},
		{"expired", "r1", interrupted(`{"id":"c","expiresAt":"2020-01-01T00:00:00Z"}`)},
		{"answered", "r1", interrupted(`{"id":"d"}`)},
		{"answered", "r2", `[{"type":"RUN_STARTED"}]`},
	} {
		testdb.Exec(t, pool, `select agui.append($1, $2, $3)`, run[0], run[1], run[2])
	}
	project := func(want string) {
		t.Helper()
		wait.For(t, "interrupts "+want, func() bool {
			testdb.Exec(t, pool, `call agui.project()`)
			return testdb.Ask[string](t, pool, `select string_agg(concat_ws(' ', interrupt_id, is_open), ', ' order by interrupt_id) from agui.projected_interrupt`) == want
		})
	}
	waiting := func() string {
		return testdb.Ask[string](t, pool, `select string_agg(concat_ws(' ', thread_id, interrupt_id), ', ' order by interrupt_id) from agui.waiting()`)
	}
	const noted = "a t, b t, c f, d t" // d waits again if the run with its answer fails
	project(noted)
	const want = "waits a, waits b"
	if got := waiting(); got != want {
		t.Fatalf("%s waits, want %s", got, want)
	}

	tx := testdb.Begin(t, pool)
	defer tx.Rollback(context.Background())
	for _, file := range []string{"000011_waiting.down.sql", "000011_waiting.up.sql"} {
		text := testfile.Read(t, file)
		if _, err := tx.Exec(t.Context(), string(text)); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	locked := testdb.Ask[[]string](t, tx, `
		select array_agg(distinct relation::regclass::text)
		from pg_locks join pg_class on pg_class.oid = relation
		where pid = pg_backend_pid() and relkind = 'r' and relnamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace)`)
	if !slices.Equal(locked, []string{"agui.projected_interrupt"}) {
		t.Errorf("the migration locks %v, which appends may need", locked)
	}
	must.Do(t, tx.Commit(t.Context()))
	if got := waiting(); got != want {
		t.Errorf("after the upgrade %s waits, want %s", got, want)
	}
	project(noted)
	if got := waiting(); got != want {
		t.Errorf("after the job %s waits, want %s", got, want)
	}
}

// What runs of an older version mean by the rules of this one is found by the jobs after the upgrade, and verify finds nothing before,
// between and behind.
func TestAnUpgradeFindsWhatTheRulesChange(t *testing.T) {
	t.Parallel()
	address := testdb.Empty(t)
	pool := testdb.Connect(t, address)
	installReleased(t, address, 2)
	for _, run := range [][3]string{
		{"failed", "r", `[{"type":"RUN_STARTED"},{"type":"RUN_ERROR","message":"boom"},{"type":"STATE_SNAPSHOT","snapshot":{"late":1}},{"type":"RUN_FINISHED"}]`},
		{"asks by an event", "r", `[{"type":"RUN_STARTED"},{"type":"CUSTOM","name":"on_interrupt","value":"Sure?"},{"type":"RUN_FINISHED"}]`},
		{"asks by a call", "r", `[{"type":"RUN_STARTED"},{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"erase"},{"type":"TOOL_CALL_END","toolCallId":"c"},{"type":"RUN_FINISHED"}]`},
		{"answer failed", "r1", `[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[{"id":"i"}]}}]`},
		{"answer failed", "r2", `[{"type":"RUN_STARTED","parentRunId":"r1","input":{"threadId":"answer failed","runId":"r2","messages":[],"resume":[{"interruptId":"i","status":"resolved"}]}},{"type":"RUN_ERROR","message":"x"}]`},
		{"thinks", "r", `[{"type":"RUN_STARTED"},{"type":"THINKING_START"},{"type":"THINKING_TEXT_MESSAGE_START"},{"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"Hm"},{"type":"THINKING_TEXT_MESSAGE_END"},{"type":"THINKING_END"},{"type":"RUN_FINISHED"}]`},
	} {
		testdb.Exec(t, pool, `select agui.append($1, $2, $3)`, run[0], run[1], run[2])
	}
	verified := func(when string) {
		t.Helper()
		if found := testdb.Ask[string](t, pool, `select coalesce(string_agg(v::text, e'\n'), '') from agui.thread as thread cross join lateral agui.verify(thread.thread_id, thread.scope) as v where v.severity = 'damage'`); found != "" {
			t.Errorf("%s verify finds: %s", when, found)
		}
	}
	testdb.Exec(t, pool, `call agui.compact()`)
	verified("in the release")
	must.Do(t, schema.Up(t.Context(), address))
	verified("before the jobs")
	testdb.Exec(t, pool, `update agui_internal.setting set value = 0 where name = 'call_delay'`)
	const want = "answer failed: i, asks by a call: c, asks by an event: Sure?r"
	wait.For(t, "what waits is found", func() bool {
		testdb.Exec(t, pool, `call agui.compact()`)
		testdb.Exec(t, pool, `call agui.project()`)
		verified("between")
		return testdb.Ask[string](t, pool, `
			select coalesce(string_agg(concat(thread_id, ': ', tool_call_id, left(message, 5), left(interrupt_id, 1)), ', ' order by thread_id), '')
			from agui.waiting()`) == want
	})
	if got := testdb.Ask[string](t, pool, `select string_agg(status || ' ' || agui.state('failed'), ', ') from agui.runs('failed')`); got != "failed {}" {
		t.Errorf("a run with events behind RUN_ERROR is %s", got)
	}
	if got := testdb.Ask[string](t, pool, `select string_agg(role || ' ' || (message ->> 'content'), ', ') from agui.messages('thinks')`); got != "reasoning Hm" {
		t.Errorf("the messages of a run that thinks are %s", got)
	}
	verified("behind the jobs")
}

// upWhileALongTransactionReads upgrades to a release that changes the table of the log, while a long transaction reads it: the upgrade
// waits for the reader, and the writers continue meanwhile.
func upWhileALongTransactionReads(t *testing.T, address string, pool *pgxpool.Pool, next release) {
	t.Helper()
	reader := testdb.Begin(t, pool)
	testdb.Exec(t, reader, `select from agui.batch limit 1`)
	upgraded := make(chan error, 1)
	go func() { upgraded <- schema.Up(t.Context(), address, next.migrations()) }()
	const isWaiting = `select exists (select from pg_locks where not granted and mode = 'AccessExclusiveLock' and relation = 'agui.batch'::regclass)`
	for range 2 { // it tries more than once
		for _, waiting := range []bool{true, false} {
			wait.For(t, fmt.Sprintf("the upgrade to wait: %t", waiting), func() bool {
				select {
				case err := <-upgraded:
					t.Fatalf("the upgrade did not wait for the reader: %v", err)
				default:
				}
				return testdb.Ask[bool](t, pool, isWaiting) == waiting
			})
		}
		before := testdb.Ask[int](t, pool, `select count(*) from agui.batch`)
		wait.For(t, "the writers to append 20 batches", func() bool {
			return testdb.Ask[int](t, pool, `select count(*) from agui.batch`) >= before+20
		})
	}
	must.Do(t, reader.Rollback(t.Context()))
	must.Do(t, <-upgraded)
}
