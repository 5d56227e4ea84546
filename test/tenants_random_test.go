package test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction/compactiontest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/jobs"
)

// Functions that move threads from one node of a cluster to another.
var functionsOfMoves = []string{"begin_move", "begin_move_step", "fence_threads", "forget_moved_threads", "hand_over_buckets", "keep_threads_of_scope", "pin_scope", "pins", "readers_of_thread", "receive_buckets", "receive_readers", "receive_thread", "remove_moved_thread", "take_back_thread", "threads_elsewhere", "threads_here", "threads_of_scope_elsewhere"}

var tenantCalls = flag.Int("tenant-calls", 400, "how many random calls two tenants make under row-level security")

// Two tenants call every function at random, for their own threads and for those of the other. What a tenant is answered is what it would be
// answered in a database that has nothing but its own threads and no row-level security: its threads are as without it, those of the other do not
// exist. A change of the other's threads is refused, always in the same words.
func TestTenantsAreAloneInRandomCalls(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	owner := testdb.Connect(t, url)
	// What says itself how row-level security is set, or returns a key to who may not use it. Statistics have bytes on disk, without it only.
	functions := callable(t, owner, "stats", "has_row_security", "monitored_keys", "webhook_states", "database_identity", "own_keys", "own_erased_keys", "own_key", "own_thread_key", "visible_key", "visible_thread_key",
		"refuse_foreign", "refuse_unless_operator", "scope_refusal", "key_to_change", "checked_thread_key", "key_on_this_node", "pool_first_key", "pool_last_key", "note_uptime")
	random := rand.New(rand.NewPCG(*firstSeed, 0))

	tenants := []*randomTenant{{scope: "a"}, {scope: "b"}}
	for i, tenant := range tenants {
		tenant.role = newRole(t, owner, "random_"+tenant.scope)
		aloneURL := testdb.New(t)
		tenant.aloneOwner = testdb.Connect(t, aloneURL)
		for _, database := range []*pgxpool.Pool{owner, tenant.aloneOwner} {
			testdb.Exec(t, database, `update agui_internal.erasure_salt set salt = '\x00'`) // or the keys of agui.erasure differ
		}
		settings := []string{`set lock_timeout = '20s'`}
		if i == 0 {
			testdb.Exec(t, owner, fmt.Sprintf(`select agui.map_tenant('%s', 'a')`, tenant.role))
		} else {
			testdb.Exec(t, owner, fmt.Sprintf(`select agui.map_pool('%s')`, tenant.role))
			settings = append(settings, `set agui.scope = 'b'`)
		}
		tenant.together = connectOne(t, asRole(t, url, tenant.role, settings...))
		tenant.alone = connectOne(t, asRole(t, aloneURL, tenant.role, settings...))
	}
	testdb.Exec(t, owner, `call agui.enable_row_security()`)

	called, refused, foreign := map[string]int{}, 0, 0
	for n := range *tenantCalls {
		tenant := tenants[random.IntN(2)]
		scope := tenants[random.IntN(2)].scope
		f := functions[n%len(functions)]
		for n >= len(functions) && !f.namesThreads() && random.IntN(5) > 0 {
			f = functions[random.IntN(len(functions))]
		}
		if n >= len(functions) && random.IntN(3) == 0 { // as often as all others together, so that there is something to see
			often := []string{"append", "append_many", "save_session_state", "save_checkpoint"}[random.IntN(4)]
			f = functions[slices.IndexFunc(functions, func(f calledFunction) bool { return f.name == often })]
		}
		call, names := f.call(random, scope)
		got := saidTo(t.Context(), tenant.together, call)
		called[f.name]++
		if slices.Contains([]string{"set_setting", "project", "project_step", "rebuild_facts", "enable_search", "disable_search", "map_usage", "unmap_usage"}, f.name) || strings.Contains(f.name, "webhook") || slices.Contains(functionsOfMoves, f.name) { // for operators
			if !strings.HasPrefix(got, "error 42501|role ") {
				t.Fatalf("call %d of %s: %s: %s", n, tenant.scope, call, got)
			}
			continue
		}
		if f.name == "own_keys_in" { // about what the caller has
			continue
		}
		if scope != tenant.scope && names {
			foreign++
		}
		if scope != tenant.scope && names && f.changes {
			refused++
			if !f.isRefused(got, tenant.role) {
				t.Fatalf("call %d of %s changes scope %s: %s\nis answered\n%s", n, tenant.scope, scope, call, got)
			}
			continue
		}
		if want := saidTo(t.Context(), tenant.alone, call); got != want {
			t.Fatalf("call %d: %s calls %s\nand is answered\n%s\nalone it is answered\n%s", n, tenant.scope, call, got, want)
		}
	}
	t.Logf("%d functions, %d calls for the other's threads, %d of them changes", len(called), foreign, refused)
	for _, tenant := range tenants {
		for _, table := range relations(t, owner) {
			if strings.HasPrefix(table, "agui_internal.") && table != "agui_internal.job_note" || table == "agui.tenant" || table == "agui.setting" {
				continue
			}
			together := rowsOf(t, tenant.together, table)
			if alone := rowsOf(t, tenant.alone, table); together != alone {
				t.Errorf("%s has in %s\n%s\nalone\n%s", tenant.scope, table, together, alone)
			}
		}
		if problems := testdb.List[string](t, owner, `select problem from agui.thread cross join lateral agui.verify(thread_id, scope) where severity = 'damage'`); len(problems) > 0 {
			t.Errorf("damage: %s", problems)
		}
	}
}

type randomTenant struct {
	scope, role     string
	together, alone *pgx.Conn
	aloneOwner      *pgxpool.Pool
}

func connectOne(t *testing.T, pool *pgxpool.Pool) *pgx.Conn {
	t.Helper()
	connection := must.Have(pool.Acquire(t.Context()))(t)
	t.Cleanup(connection.Release)
	return connection.Conn()
}

// calledFunction is a function or procedure that a role may call.
type calledFunction struct {
	name, qualified  string
	isProcedure      bool
	changes          bool // it is volatile
	arguments, types []string
	required         int
}

// callable returns the functions and procedures that one of the roles may call, but for some.
func callable(t *testing.T, pool *pgxpool.Pool, except ...string) (functions []calledFunction) {
	t.Helper()
	rows, err := pool.Query(t.Context(), `
		select proc.proname, proc.pronamespace::regnamespace || '.' || proc.proname, proc.prokind = 'p', proc.provolatile = 'v',
			array(
				select coalesce(proc.proargnames[place], '')
				from unnest(coalesce(proc.proallargtypes, proc.proargtypes::oid[])) with ordinality as listed (type, place)
				where coalesce(proc.proargmodes[place], 'i') = 'i'
				order by place
			),
			array(select format_type(type, null) from unnest(proc.proargtypes::oid[]) with ordinality as argument (type, place) order by place),
			proc.pronargs - proc.pronargdefaults
		from pg_proc as proc
		where proc.pronamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace)
			and proc.prokind in ('f', 'p') and proc.prorettype not in ('trigger'::regtype, 'internal'::regtype)
			and (has_function_privilege('agui_writer', proc.oid, 'execute') or has_function_privilege('agui_worker', proc.oid, 'execute')
				or has_function_privilege('agui_maintainer', proc.oid, 'execute'))
			and proc.proname <> all ($1)
			and not exists (
				-- Values that only functions of the schema make.
				select from unnest(proc.proargtypes::oid[]) as argument (type)
				join pg_type as type on type.oid = argument.type
				left join pg_type as element on element.oid = type.typelem and type.typcategory = 'A'
				where 'agui_internal'::regnamespace in (type.typnamespace, element.typnamespace)
			)
		order by 2`, append([]string{}, except...))
	must.Do(t, err)
	var f calledFunction
	if _, err := pgx.ForEachRow(rows, []any{&f.name, &f.qualified, &f.isProcedure, &f.changes, &f.arguments, &f.types, &f.required}, func() error {
		functions = append(functions, f)
		f.arguments, f.types = nil, nil
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(functions) < 150 {
		t.Fatalf("only %d functions were found", len(functions))
	}
	return functions
}

// namesThreads reports whether the function takes threads, or their rows.
func (f calledFunction) namesThreads() bool {
	return slices.Contains(f.arguments, "scope") || slices.Contains(f.arguments, "scopes") || slices.Contains(f.types, "uuid") ||
		slices.ContainsFunc(f.types, func(kind string) bool { return strings.HasPrefix(kind, "agui.") })
}

// call makes a statement that calls the function for something of a scope, and says whether it names that scope.
func (f calledFunction) call(random *rand.Rand, scope string) (statement string, namesScope bool) {
	items := 1 + random.IntN(2)
	thread := fmt.Sprintf("t%d", 1+random.IntN(3))
	run := fmt.Sprintf("r%d", 1+random.IntN(5))
	takesScope := slices.Contains(f.arguments, "scope") || slices.Contains(f.arguments, "scopes")
	repeated := func(value string) string {
		return "'{" + strings.TrimSuffix(strings.Repeat(value+",", items), ",") + "}'"
	}
	var given []string
	for i, name := range f.arguments {
		value := ""
		switch kind := f.types[i]; {
		case name == "scope":
			value = "'" + scope + "'"
		case name == "scopes":
			value = repeated(scope)
		case name == "thread_id":
			value = "'" + thread + "'"
		case name == "thread_ids":
			value = repeated(thread)
		case name == "thread_key", name == "near", kind == "uuid" && name != "after":
			value = fmt.Sprintf("agui.thread_key('%s', '%s')", scope, thread)
			namesScope = true
		case kind == "agui.run":
			value = fmt.Sprintf("(select run from agui.run where thread_key = agui.thread_key('%s', '%s') and run_no = %d)", scope, thread, 1+random.IntN(4))
		case kind == "agui.thread":
			value = fmt.Sprintf("(select thread from agui.thread where thread_key = agui.thread_key('%s', '%s'))", scope, thread)
		case kind == "agui.checkpoint":
			value = fmt.Sprintf("(select checkpoint from agui.checkpoint where thread_key = agui.thread_key('%s', '%s') limit 1)", scope, thread)
		case kind == "agui.session_state":
			value = fmt.Sprintf("(select state from agui.session_state as state where thread_key = agui.thread_key('%s', '%s') order by key, version limit 1)", scope, thread)
		case kind == "agui.thread_activity[]":
			value = fmt.Sprintf("array(select activity from agui.thread_activity as activity where thread_key = agui.thread_key('%s', '%s'))", scope, thread)
		case i >= f.required && random.IntN(2) == 0:
			continue
		default:
			value = randomArgument(random, name, kind, run, thread, items)
		}
		given = append(given, name+" => "+value)
	}
	arguments := strings.Join(given, ", ")
	for i := range given { // of what has no names
		if strings.HasPrefix(given[i], " => ") {
			arguments = strings.ReplaceAll(arguments, " => ", "")
			break
		}
	}
	namesScope = namesScope || takesScope && !(f.name == "retry" && !strings.Contains(arguments, "thread_id"))
	if f.isProcedure {
		return fmt.Sprintf("call %s(%s)", f.qualified, arguments), false
	}
	return fmt.Sprintf("select coalesce(answer::text, '') from %s(%s) as answer", f.qualified, arguments), namesScope
}

func randomArgument(random *rand.Rand, name, kind, run, thread string, items int) string {
	pick := func(values ...string) string { return values[random.IntN(len(values))] }
	repeated := func(value string) string {
		return "'{" + strings.TrimSuffix(strings.Repeat(value+",", items), ",") + "}'"
	}
	events := func() string {
		return pick(
			`[{"type":"RUN_STARTED"}]`, `[{"type":"RUN_STARTED"},{"type":"STATE_DELTA","delta":[{"op":"add","path":"/a","value":1}]},{"type":"RUN_FINISHED"}]`,
			`[{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","role":"user","delta":"x"}]`, `[{"type":"RUN_FINISHED"}]`,
			`[{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f"}]`, `[{"type":"RUN_ERROR","message":"x"}]`,
		)
	}
	switch name {
	case "run_id", "run_a", "run_b", "parent_run_id":
		return "'" + run + "'"
	case "run_ids":
		return repeated(run)
	case "events":
		if kind == "json[]" {
			return "array[" + strings.TrimSuffix(strings.Repeat("'"+events()+"'::json,", items), ",") + "]"
		}
		return "'" + events() + "'"
	case "inputs", "parent_run_ids":
		return "null"
	case "after_seqs":
		return repeated(fmt.Sprint(random.IntN(4)))
	case "after_times":
		return "null"
	case "session":
		return fmt.Sprintf(`'{"threadId":"%s","state":{"k%d":%d}}'`, thread, random.IntN(2), random.IntN(9))
	case "sessions":
		return fmt.Sprintf(`'[{"threadId":"%s","state":{"k%d":%d}}]'`, thread, random.IntN(2), random.IntN(9))
	case "key":
		return pick("'k0'", "'k1'")
	case "checkpoint_id", "parent_id":
		return pick("'c0'", "'c1'", "'c2'")
	case "namespace":
		return "''"
	case "messages":
		if kind == "json" {
			return pick("'[]'", `'[{"id":"m","role":"user","content":"x"}]'`)
		}
		return "null"
	case "history":
		return pick("'full'", "'fill'", "'new'")
	case "delta", "patches":
		return "null"
	case "shape":
		return pick("'stream'", "'snapshot'", "'events'")
	case "name":
		return pick("'lease'", "'compact'")
	case "value":
		return "null"
	case "job":
		return pick("'compact'", "'repack'")
	case "cursor":
		return "null"
	case "status":
		if kind == "integer" { // of HTTP
			return "422"
		}
		return pick("'running'", "'finished'")
	case "to_thread_id":
		return pick("'t1'", "'t2'", "'t3'")
	case "older_than":
		return "'0'"
	case "max_time", "at_time", "since", "until", "from_at", "due_by", "max_idle":
		return "null"
	case "overwrite":
		return "true"
	case "create_if_missing":
		return "true"
	case "parallel":
		if kind == "boolean[]" {
			return "null"
		}
		return pick("true", "false")
	case "expected_version":
		return fmt.Sprint(random.IntN(3))
	case "code":
		return "'XX000'"
	}
	switch kind {
	case "text":
		return pick("'x'", "'text'", "'{}'")
	case "integer":
		return fmt.Sprint(1 + random.IntN(4))
	case "bigint":
		return fmt.Sprint(random.IntN(12))
	case "boolean":
		return pick("true", "false")
	case "json", "jsonb":
		return pick("'{}'", "'[]'", `'{"a":1}'`)
	}
	return "null"
}

var (
	maskedTimes  = regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?(\+00(:00)?)?`)
	maskedAges   = regexp.MustCompile(`\b-?(\d+ days? )?\d\d:\d\d:\d\d(\.\d+)?\b`)
	maskedCursor = regexp.MustCompile(`\b[0-9a-f]{16}(?:[0-9a-f]{16})\b`)
	maskedHashes = regexp.MustCompile(`(?:\\+x|")[0-9a-f]{64}`) // of the chain and of moved threads, which take in times
	maskedEpochs = regexp.MustCompile(`\b1[789]\d{8,}(\.\d+)?\b`)
	maskedUIDs   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`) // random ones; the keys of threads are made of their names
	maskedErased = regexp.MustCompile(`,UID,\d+\)`)                                                    // a tombstone ends with the id of its transaction
)

// saidTo is what a statement answers, without times.
func saidTo(ctx context.Context, connection *pgx.Conn, statement string) string {
	rows, err := connection.Query(ctx, statement, pgx.QueryExecModeExec)
	if err == nil {
		var lines []string
		if lines, err = pgx.CollectRows(rows, pgx.RowTo[string]); err == nil {
			slices.Sort(lines) // functions need not say in which order
			return masked(strings.Join(lines, "\n"))
		}
	}
	var failure *pgconn.PgError
	if !errors.As(err, &failure) {
		return "failure: " + err.Error()
	}
	return masked(strings.Join([]string{"error " + failure.Code, failure.Message, failure.Detail, failure.Hint}, "|"))
}

func masked(text string) string {
	text = maskedTimes.ReplaceAllString(text, "TIME")
	text = maskedCursor.ReplaceAllString(text, "CURSOR")
	text = maskedHashes.ReplaceAllString(text, "HASH")
	text = maskedEpochs.ReplaceAllString(text, "EPOCH")
	text = maskedUIDs.ReplaceAllString(text, "UID")
	text = maskedErased.ReplaceAllString(text, ",UID,XID)")
	return maskedAges.ReplaceAllString(text, "AGE")
}

// isRefused reports whether a change of another scope was refused, in words that say nothing of what there is.
func (f calledFunction) isRefused(answer, role string) bool {
	const key = `[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`
	words := fmt.Sprintf(`role "+%s"+ may not change (threads of scope "+[ab]"+|the thread with key %s)`, role, key)
	hint := `The role (has another scope \(pgagui: --scope NAME\)\.|is a pool, and agui\.scope names another scope\.)`
	if f.name == "append_many" {
		return regexp.MustCompile(`^(\(\d,,42501,"` + words + `",,"` + hint + `",\)\n?)+$`).MatchString(answer)
	}
	return regexp.MustCompile(`^error 42501\|` + words + `\|\|` + hint + `$`).MatchString(answer)
}

func rowsOf(t *testing.T, connection *pgx.Conn, relation string) string {
	t.Helper()
	lines := testdb.List[string](t, connection, `select (to_jsonb(row) - 'written_in' - '{changed_in,thread_uid,erased_in}'::text[])::text from `+relation+` as row`)
	for i := range lines {
		lines[i] = masked(lines[i])
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// Under row-level security generated streams mean to a tenant what they mean without it, whichever role compacts them, beside a tenant who has threads of the same ids.
func TestGeneratedStreamsUnderRowSecurity(t *testing.T) {
	t.Parallel()
	streamsPerKind := streamsOfAKind(5)
	total := len(kindsOfStreams) * streamsPerKind
	url := testdb.New(t)
	owner := testdb.Connect(t, url)
	tenant, neighbour, operator := newRole(t, owner, "tenant"), newRole(t, owner, "neighbour"), newRole(t, owner, "operator")
	testdb.Exec(t, owner, fmt.Sprintf(`select agui.map_tenant('%s', ''), agui.map_pool('%s'), agui.map_operator('%s')`, tenant, neighbour, operator))
	testdb.Exec(t, owner, `call agui.enable_row_security()`)
	asTenant, asOperator := asRole(t, url, tenant), asRole(t, url, operator)
	asNeighbour := asRole(t, url, neighbour, `set agui.scope = 'neighbour'`)
	judges := reducers{pool: owner, reader: asTenant}
	for n := 1; n <= total; n++ {
		testdb.Exec(t, asNeighbour, fmt.Sprintf(`select agui.append('stream-%d', 'r', '[{"type":"RUN_STARTED"},{"type":"CUSTOM"},{"type":"RUN_FINISHED"}]', scope => 'neighbour')`, n))
	}

	var streams [][]json.RawMessage
	for i, kind := range kindsOfStreams {
		for n := range streamsPerKind {
			streams = append(streams, compactiontest.Stream((*firstSeed+uint64(n))<<8+uint64(i), kind.options))
		}
	}
	for n, difference := range judges.differences(t, streams) {
		if difference != "" {
			t.Errorf("%s stream, seed %d: %s", kindsOfStreams[n/streamsPerKind].name, *firstSeed+uint64(n%streamsPerKind), difference)
		}
	}
	restored := func() []string {
		return testdb.List[string](t, asTenant, `select agui.restore(thread_id)::text from agui.thread order by thread_id`)
	}
	before := restored()
	if len(before) != total {
		t.Fatalf("the tenant sees %d threads", len(before))
	}
	compacted := func(by string, want int) {
		t.Helper()
		if after := restored(); !slices.Equal(after, before) {
			t.Errorf("compacted by %s the threads are\n%s\nbefore\n%s", by, after, before)
		}
		if n := testdb.List[string](t, owner, `select count(*)::text from agui.run where log_bytes is not null`)[0]; n != fmt.Sprint(want) {
			t.Errorf("compacted by %s: %s runs", by, n)
		}
	}
	testdb.Exec(t, asTenant, `call agui.compact()`)
	compacted("the tenant", total)
	testdb.Exec(t, owner, `delete from agui.snapshot; delete from agui.message_version; update agui.run set log_bytes = null`)
	must.Have(jobs.Compact(t.Context(), asOperator, jobs.CompactOptions{Workers: 1}))(t)
	compacted("an operator, in Go", 2*total)
	for _, problem := range testdb.List[string](t, asOperator, `select problem from agui.thread cross join lateral agui.verify(thread_id, scope) where problem ~ 'snapshot'`) { // the logs break rules that agui.append keeps
		t.Error(problem)
	}

	reader := historyReader{store: pgagui.New(asTenant, nil), pool: asTenant}
	for i, kind := range kindsOfStreams {
		log := generateLog((*firstSeed)<<8+uint64(i), kind.options)
		log.store(t, owner)
		if problem := reader.problem(t, log); problem != "" {
			t.Errorf("history of a %s log: %s", kind.name, problem)
		}
	}
}
