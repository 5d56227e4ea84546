package jobs_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/compaction/compactiontest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/jobs"
)

var (
	changes   = flag.Int("changes", 80, "how many changes are planted in chained logs")
	firstSeed = flag.Uint64("seed", 1, "which ones, and what else is random")
)

// chainProblems are what is wrong with the chains, and how many notes there are about them.
func chainProblems(t *testing.T, pool *pgxpool.Pool, options jobs.VerifyOptions) (problems []string, notes int) {
	t.Helper()
	options.Chain = true
	options.Report = func(thread jobs.VerifiedThread) {
		for _, problem := range thread.Problems {
			if strings.HasPrefix(problem.Problem.Problem, "chain: ") {
				problems = append(problems, thread.ThreadID+": "+problem.Problem.Problem)
			}
		}
		for _, note := range thread.Notes {
			if strings.HasPrefix(note.Problem, "chain: ") {
				notes++
			}
		}
	}
	must.Have(jobs.Verify(t.Context(), pool, options))(t)
	return problems, notes
}

func headsOf(t *testing.T, pool *pgxpool.Pool) (heads []jobs.Head) {
	t.Helper()
	err := jobs.Heads(t.Context(), pool, nil, func(head jobs.Head) error {
		heads = append(heads, head)
		return nil
	})
	must.Do(t, err)
	return heads
}

// writeEveryWay fills threads in all the ways in which a log is written.
func writeEveryWay(t *testing.T, pool *pgxpool.Pool) (threads []string) {
	t.Helper()
	store := pgagui.New(pool, nil)
	text := func(events []json.RawMessage) string { return string(compactiontest.Batch(events)) }
	call := func(query string, arguments ...any) {
		t.Helper()
		testdb.Exec(t, pool, query, arguments...)
	}

	// Tokens and batches, in parallel in two runs, in a tree.
	appendInBatches(t, store, "tree", "r1", "", 1, message("m", 8)...)
	call(`select agui.append('tree', 'left', '[{"type":"RUN_STARTED","parentRunId":"r1"}]', 0, input => '{"messages":[]}')`)
	call(`select agui.append('tree', 'right', '[{"type":"RUN_STARTED"}]', 0, parallel => true, parent_run_id => 'r1')`)
	for n := range 6 {
		call(fmt.Sprintf(`select agui.append('tree', %s, '[{"type":"CUSTOM","name":"%d"}]')`, []string{"'left'", "'right'"}[n%2], n))
	}
	call(`select agui.append('tree', 'left', '[{"type":"RUN_FINISHED"}]'), agui.append('tree', 'left', '[{"type":"RUN_ERROR","message":"late"}]')`)
	call(`select agui.abandon('tree', 'right', 'test')`)

	// As others may write it: with white space in between, and with odd characters within.
	for i, events := range []string{
		"[ {\"type\":\"RUN_STARTED\"} ,\n\t{\"type\":\"CUSTOM\",\"name\":\"} , {\"}]",
		"\n[{\"type\":\"CUSTOM\",\"name\":\"a\"},\r\n{\"type\":\"CUSTOM\", \"name\":\"b\" } ]",
		`[{"type":"CUSTOM","value":{"a":[{ },{}], "ü":"\u0000\ud83d"}}]`,
		`[{"type":"CUSTOM"},{"type":"RUN_FINISHED"}] `,
	} {
		call(`select agui.append('spaces', 'r', $1, $2)`, events, []int64{0, 2, 4, 5}[i])
	}

	// Many calls at once.
	call(`
		select agui.append_many(array['many','many','many 2','many'], array['r','r','r','r'], array[
			'[{"type":"RUN_STARTED"}]','[{"type":"CUSTOM"},{"type":"CUSTOM"}]','[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]','[{"type":"CUSTOM"}]']::json[])`)
	call(`select agui.append_many(array['many'], array['r'], array['[{"type":"CUSTOM", "n":1}, {"type":"CUSTOM"}]']::json[])`)
	call(`select agui.append_many(array['many'], array['r'], array['[{"type":"RUN_FINISHED"}]']::json[])`)

	// Imported, with times that lie hours apart.
	imported := []json.RawMessage{json.RawMessage(`{"type":"RUN_STARTED"}`)}
	for n := range 12 {
		at := time.Now().Add(time.Duration(n-13) * 9 * time.Minute).UnixMilli()
		imported = append(imported, json.RawMessage(fmt.Sprintf(`{"type":"CUSTOM","name":"%d","timestamp":%d}`, n, at)))
	}
	call(`select agui.import_events('imported', 'r', $1)`, text(append(imported, json.RawMessage(`{"type":"RUN_FINISHED"}`))))

	threads = []string{"tree", "spaces", "many", "many 2", "imported"}
	random := rand.New(rand.NewPCG(1, 2))
	for seed := range 6 {
		thread := fmt.Sprint("generated ", seed)
		events := []json.RawMessage{json.RawMessage(`{"type":"RUN_STARTED"}`)}
		for _, event := range compactiontest.Stream(uint64(seed), compactiontest.Options{Wild: true, Unicode: true, Numbers: true, Proposals: true}) {
			if !strings.HasPrefix(compaction.EventType(event), "RUN_") {
				events = append(events, event)
			}
		}
		events = append(events, json.RawMessage(`{"type":"RUN_FINISHED"}`))
		var seq int64
		for n := 0; n < len(events); {
			to := min(len(events), n+1+random.IntN(7))
			must.Do(t, pool.QueryRow(t.Context(), `select agui.append($1, 'r', $2, $3)`, thread, text(events[n:to]), seq).Scan(&seq))
			n = to
		}
		threads = append(threads, thread)
	}
	return threads
}

// The chain holds whatever writes the log, and repack changes neither it nor its heads.
func TestTheChainHoldsWhateverWritesTheLog(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	testdb.Exec(t, pool, `select agui.enable_chain()`)
	threads := writeEveryWay(t, pool)
	if problems, notes := chainProblems(t, pool, jobs.VerifyOptions{}); len(problems) > 0 || notes > 0 {
		t.Fatalf("%d notes, problems: %q", notes, problems)
	}
	heads := headsOf(t, pool)
	if len(heads) != len(threads) {
		t.Errorf("%d heads of %d threads", len(heads), len(threads))
	}
	before := count(t, pool, `select count(*) from agui.batch`)
	must.Have(jobs.Repack(t.Context(), pool, jobs.RepackOptions{OlderThan: new(time.Duration)}))(t)
	if after := count(t, pool, `select count(*) from agui.batch`); after > before/2 {
		t.Errorf("%d of %d batches are left", after, before)
	}
	if now := headsOf(t, pool); fmt.Sprint(now) != fmt.Sprint(heads) {
		t.Errorf("heads: %v, before %v", now, heads)
	}
	if problems, notes := chainProblems(t, pool, jobs.VerifyOptions{Heads: heads}); len(problems) > 0 || notes > 0 {
		t.Errorf("after repack: %d notes, problems: %q", notes, problems)
	}
	// What follows continues from there.
	appendRun(t, pgagui.New(pool, nil), "tree", "later", "", message("m", 3)...)
	if problems, _ := chainProblems(t, pool, jobs.VerifyOptions{Heads: heads}); len(problems) > 0 {
		t.Errorf("later: %q", problems)
	}
}

// White space before, between or after plain events is found wherever it is; none is assumed where there is none.
func TestDenseCallsAreDistinguishedFromOthers(t *testing.T) {
	t.Parallel()
	pool := testdb.Connect(t, testdb.New(t))
	events := []string{
		`{"type":"CUSTOM","value":{"a":[{},{}]}}`,
		`{"type":"CUSTOM","name":"} , {","value":[{},{"typ":1}]}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"\"},{\"type\":\"ü"}`,
		`{"type":"CUSTOM","value":[ ]}`,
	}
	nested := `{"type":"CUSTOM","value":[{"type":"text"},{"type":"image"}]}`
	check := func(parts []string, want bool) {
		t.Helper()
		call := strings.Join(parts, "")
		var plain, dense bool
		err := pool.QueryRow(t.Context(), `
			select plain.n is not null, coalesce(agui_internal.is_dense_call($1, plain.n), false)
			from (select agui_internal.plain_event_count($1) as n) as plain`, json.RawMessage(call)).Scan(&plain, &dense)
		if err != nil {
			t.Fatalf("%q: %v", call, err)
		}
		if !plain || dense != want {
			t.Errorf("%q: plain %v, dense %v; want true and %v", call, plain, dense, want)
		}
	}
	for _, of := range [][]string{events, events[:2], events[2:3], {nested}} {
		parts := []string{"", "["}
		for i, event := range of {
			if i > 0 {
				parts = append(parts, "", ",")
			}
			parts = append(parts, "", event)
		}
		parts = append(parts, "", "]", "")
		check(parts, true)
		for gap := 0; gap < len(parts); gap += 2 {
			for _, space := range []string{" ", "\t", "\n", "\r\n"} {
				spaced := slices.Clone(parts)
				spaced[gap] = space
				check(spaced, false)
			}
		}
	}
}

// A thread is chained from the first run on that begins once the chain of its scope is enabled, and stays so.
func TestTheChainBeginsWithARun(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	appendInBatches(t, store, "t", "r1", "", 2, message("m", 3)...)
	testdb.Exec(t, pool, `select agui.append('t', 'r2', '[{"type":"RUN_STARTED"}]')`)
	testdb.Exec(t, pool, `select agui.enable_chain('')`)
	testdb.Exec(t, pool, `select agui.append('t', 'r2', '[{"type":"CUSTOM"}]')`)
	if n := count(t, pool, `select count(*) from agui.batch where hash is not null`); n != 0 {
		t.Errorf("%d batches of a run from before are chained", n)
	}
	testdb.Exec(t, pool, `select agui.append('t', 'r3', '[{"type":"RUN_STARTED"}]', parallel => true, parent_run_id => 'r1'), agui.append('t', 'r2', '[{"type":"RUN_FINISHED"}]')`)
	testdb.Exec(t, pool, `select agui.append('other', 'r', '[{"type":"RUN_STARTED"}]', scope => 'b')`)
	if n := count(t, pool, `select count(*) from agui.batch where hash is not null`); n != 2 {
		t.Errorf("%d batches are chained, want 2", n)
	}
	if problems, notes := chainProblems(t, pool, jobs.VerifyOptions{}); len(problems) > 0 || notes != 1 {
		t.Errorf("%d notes, want one on what precedes the chain; problems: %q", notes, problems)
	}
	testdb.Exec(t, pool, `select agui.disable_chain('')`)
	testdb.Exec(t, pool, `select agui.append('t', 'r3', '[{"type":"RUN_FINISHED"}]'), agui.append('new', 'r', '[{"type":"RUN_STARTED"}]')`)
	appendInBatches(t, store, "t", "r4", "", 2, message("n", 3)...)
	if n := count(t, pool, `select count(*) from agui.batch join agui.thread using (thread_key) where thread_id <> 't' and hash is not null`); n != 0 {
		t.Errorf("%d batches of other threads are chained", n)
	}
	if problems, _ := chainProblems(t, pool, jobs.VerifyOptions{}); len(problems) > 0 {
		t.Errorf("problems: %q", problems)
	}
}

// A thread that is erased is known to be; one that is gone otherwise is missed.
func TestHeadsMissThreadsThatAreGone(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	testdb.Exec(t, pool, `select agui.enable_chain()`)
	for _, thread := range []string{"erased", "gone", "there"} {
		appendRun(t, store, thread, "r", "", message("m", 3)...)
	}
	heads := headsOf(t, pool)
	testdb.Exec(t, pool, `select agui.erase('erased')`)
	damage(t, pool, `
		with gone as (select agui.thread_key('', 'gone') as key),
			batches as (delete from agui.batch using gone where thread_key = key),
			activity as (delete from agui.thread_activity using gone where thread_key = key),
			runs as (delete from agui.run using gone where thread_key = key)
		delete from agui.thread using gone where thread_key = key`)
	problems, notes := chainProblems(t, pool, jobs.VerifyOptions{Heads: heads})
	if notes != 1 || len(problems) != 1 || !strings.HasPrefix(problems[0], "gone: chain: the thread is gone") {
		t.Errorf("%d notes, problems: %q", notes, problems)
	}
}

// Hashes that were removed from the beginning of a log, or from all of it, are missed where the scope is chained.
func TestRemovedHashesAreMissed(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	appendInBatches(t, store, "older", "r1", "", 2, message("m", 3)...)
	testdb.Exec(t, pool, `select agui.enable_chain()`)
	for _, thread := range []string{"all", "beginning", "behind", "sound", "older"} {
		appendInBatches(t, store, thread, "r2", "", 2, message("m", 3)...)
		appendInBatches(t, store, thread, "r3", "", 2, message("n", 3)...)
	}
	damage(t, pool, `update agui.batch set hash = null, links = null where thread_key = agui.thread_key('', 'all')`)
	damage(t, pool, `update agui.batch set hash = null, links = null where thread_key = agui.thread_key('', 'beginning') and run_no = 1`)
	damage(t, pool, `update agui.batch set hash = null, links = null where thread_key = agui.thread_key('', 'older') and run_no = 2`)

	// What is chained behind them does not fit either, unless all hashes were removed or computed again.
	missed := func(thread string) (missed []string) {
		t.Helper()
		problems, _ := chainProblems(t, pool, jobs.VerifyOptions{Threads: []string{thread}})
		for _, problem := range problems {
			if strings.Contains(problem, "no hash") {
				missed = append(missed, strings.TrimPrefix(problem, thread+": chain: "))
			}
		}
		return missed
	}
	// A run that began within a minute may have seen no chain: its transaction may be older.
	if problems, notes := chainProblems(t, pool, jobs.VerifyOptions{Threads: []string{"all"}}); len(problems) > 0 || notes != 1 {
		t.Errorf("within the first minute: %d notes, problems: %q", notes, problems)
	}
	testdb.Exec(t, pool, `update agui_internal.chained_scope set since = since - interval '1 hour'`)
	testdb.Exec(t, pool, `update agui.run set started_at = started_at - interval '2 hours' where run_id = 'r1'`)
	damage(t, pool, `
		update agui.batch set hash = null, links = null
		where thread_key = agui.thread_key('', 'behind') and first_seq = (
			select max(first_seq) from agui.batch where thread_key = agui.thread_key('', 'behind')
		)`)
	older := count(t, pool, `select first_seq from agui.run where run_id = 'r2' and thread_key = agui.thread_key('', 'older')`)
	for thread, want := range map[string]string{
		"all":       "the batch at seq 1 has no hash, although its run began after agui.enable_chain",
		"beginning": "the batch at seq 1 has no hash, although its run began after agui.enable_chain",
		"older":     fmt.Sprintf("the batch at seq %d has no hash, although its run began after agui.enable_chain", older),
		"behind":    "has no hash, but what precedes it is chained",
	} {
		if got := missed(thread); len(got) != 1 || !strings.HasSuffix(got[0], want) {
			t.Errorf("%s: %q is missed", thread, got)
		}
		// agui.verify finds the same.
		if n := count(t, pool, `select count(*) from agui.verify('`+thread+`') where severity = 'damage' and problem like 'chain: %`+want+`'`); n != 1 {
			t.Errorf("%s: agui.verify finds %d", thread, n)
		}
	}
	if got := missed("sound"); len(got) > 0 || count(t, pool, `select count(*) from agui.verify('sound')`) > 0 {
		t.Errorf("in a sound log %q is missed", got)
	}
}

// What says that a thread was erased fits the head that was kept of it: it is newer, and counts the events.
func TestAnErasureFitsTheHead(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	testdb.Exec(t, pool, `select agui.enable_chain()`)
	threads := []string{"erased", "lifted", "too early", "too short", "written again"}
	for _, thread := range threads {
		appendRun(t, store, thread, "r", "", message("m", 3)...)
	}
	heads := headsOf(t, pool)
	for _, head := range heads {
		if head.RecordedAt.IsZero() {
			t.Errorf("a head without a time: %v", head)
		}
	}
	for _, thread := range threads {
		testdb.Exec(t, pool, `select agui.erase('`+thread+`')`)
	}
	testdb.Exec(t, pool, `
		update agui.erasure set erased_at = erased_at - interval '1 hour' where erased_key = agui_internal.erasure_key(agui.thread_key('', 'too early'));
		update agui.erasure set events = events - 1 where erased_key = agui_internal.erasure_key(agui.thread_key('', 'too short'));
		select agui.lift_erasure('lifted'), agui.lift_erasure('written again')`)
	appendRun(t, store, "written again", "r", "", message("m", 3)...)
	problems, notes := chainProblems(t, pool, jobs.VerifyOptions{Heads: heads})
	slices.Sort(problems)
	if notes != 3 || len(problems) != 2 ||
		!strings.HasPrefix(problems[0], "too early: chain: the thread is gone, and no erasure in agui.erasure is newer than its head") ||
		!strings.HasPrefix(problems[1], "too short: chain: the thread is gone, and no erasure in agui.erasure is newer than its head") {
		t.Errorf("%d notes, problems: %q", notes, problems)
	}
	// A log that precedes the erasure is not the one that began after it.
	testdb.Exec(t, pool, `update agui.erasure set erased_at = clock_timestamp() where erased_key = agui_internal.erasure_key(agui.thread_key('', 'written again'))`)
	damage(t, pool, `update agui.batch set events = json_build_array(events -> 0), n = 1, hash = '\x00' where thread_key = agui.thread_key('', 'written again')`)
	if problems, _ := chainProblems(t, pool, jobs.VerifyOptions{Heads: heads, Threads: []string{"written again"}}); !slices.ContainsFunc(problems, func(problem string) bool {
		return strings.Contains(problem, "head")
	}) {
		t.Errorf("problems: %q", problems)
	}
}

// Verify finds each change, exchange and removal in a chained log. Kept heads also find what the chain alone cannot: an end that was
// cut off, and a log that was replaced together with its hashes.
func TestTheChainFindsEveryChange(t *testing.T) {
	t.Parallel()
	for _, repacked := range []bool{false, true} {
		t.Run(fmt.Sprint("repacked: ", repacked), func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			testdb.Exec(t, pool, `select agui.enable_chain()`)
			threads := writeEveryWay(t, pool)
			if repacked {
				// Every second run, or little would be left to exchange.
				testdb.Exec(t, pool, `
					select agui_internal.repack_run(thread_key, run_no) from agui.run join agui.thread using (thread_key)
					where hashtext(thread_id) % 2 = 0 or thread_id = 'tree' and run_no = 1`)
			}
			heads := headsOf(t, pool)
			tables := []string{"thread", "run", "run_input", "batch"}
			for _, table := range tables {
				testdb.Exec(t, pool, fmt.Sprintf(`create table public.%[1]s_before as select * from agui.%[1]s`, table))
			}
			seed := *firstSeed
			t.Logf("-changes %d -seed %d", *changes, seed)
			planter := planter{t: t, random: rand.New(rand.NewPCG(seed, 4)), planted: map[string]int{}}
			for planted := 0; planted < *changes/2; {
				thread := threads[planter.random.IntN(len(threads))]
				var what string
				var needsHeads bool
				err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) (err error) {
					if _, err = tx.Exec(t.Context(), `select agui_internal.allow_log_change(true)`); err == nil {
						_, err = tx.Exec(t.Context(), `set local session_replication_role = replica`)
					}
					if err == nil {
						what, needsHeads, err = planter.plant(tx, thread)
					}
					return err
				})
				if err != nil {
					if refused := (*pgconn.PgError)(nil); !errors.As(err, &refused) || !strings.HasPrefix(refused.Code, "2") {
						t.Fatalf("%s: %v", what, err)
					}
					continue // no such value can be stored
				}
				if what == "" {
					continue // the thread has nothing of the kind
				}
				planted++
				planter.planted[what]++
				problems, _ := chainProblems(t, pool, jobs.VerifyOptions{Threads: []string{thread}})
				if needsHeads != (len(problems) == 0) {
					t.Errorf("thread %s: %s: found %q", thread, what, problems)
				}
				if needsHeads {
					if problems, _ = chainProblems(t, pool, jobs.VerifyOptions{Threads: []string{thread}, Heads: heads}); len(problems) == 0 {
						t.Errorf("thread %s: %s: not found with the heads", thread, what)
					}
				}
				err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
					var errs []error
					run := func(statement string) {
						_, err := tx.Exec(t.Context(), statement)
						errs = append(errs, err)
					}
					run(`select agui_internal.allow_log_change(true)`)
					run(`set local session_replication_role = replica`)
					for _, table := range tables {
						run(fmt.Sprintf(`delete from agui.%s where thread_key = agui.thread_key('', '%s')`, table, thread))
						run(fmt.Sprintf(`insert into agui.%[1]s select * from public.%[1]s_before where thread_key = agui.thread_key('', '%[2]s')`, table, thread))
					}
					return errors.Join(errs...)
				})
				must.Do(t, err)
			}
			t.Log(planter.planted)
			if problems, _ := chainProblems(t, pool, jobs.VerifyOptions{Heads: heads}); len(problems) > 0 {
				t.Errorf("the test did not put everything back: %q", problems)
			}
		})
	}
}

// A planter changes stored logs.
type planter struct {
	t       *testing.T
	random  *rand.Rand
	planted map[string]int
}

// plant changes something in the log of a thread. what is empty where the thread has nothing of the kind.
func (p *planter) plant(tx pgx.Tx, thread string) (what string, needsHeads bool, err error) {
	ctx := p.t.Context()
	const ofThread = `thread_key = agui.thread_key('', $1)`
	const anyBatch = `(select first_seq from agui.batch where ` + ofThread + ` order by random() limit 1)`
	update := func(set, where string) error {
		tag, err := tx.Exec(ctx, `update agui.batch set `+set+` where `+ofThread+` and `+where, thread)
		if err == nil && tag.RowsAffected() == 0 {
			what = ""
		}
		return err
	}
	execute := func(statement string) error {
		tag, err := tx.Exec(ctx, statement, thread)
		if err == nil && tag.RowsAffected() == 0 {
			what = ""
		}
		return err
	}
	switch kind := p.random.IntN(20); kind {
	default: // five of twenty
		what = "a bit of a batch"
		var seq int64
		var text string
		if err := tx.QueryRow(ctx, `select first_seq, events::text from agui.batch where `+ofThread+` order by random() limit 1`, thread).Scan(&seq, &text); err != nil {
			return what, false, err
		}
		changed := []byte(text)
		changed[p.random.IntN(len(changed))] ^= 1 << p.random.IntN(8)
		_, err = tx.Exec(ctx, `update agui.batch set events = convert_from($3, 'UTF8')::json where `+ofThread+` and first_seq = $2`, thread, seq, changed)
	case 1:
		what = "the time of a batch"
		err = update(`recorded_at = recorded_at + interval '1 microsecond'`, `first_seq = `+anyBatch)
	case 2:
		what = "the time of an event"
		err = update(`earlier_us[1] = earlier_us[1] - 1`, `first_seq = (select first_seq from agui.batch where `+ofThread+` and earlier_us is not null order by random() limit 1)`)
	case 3:
		what = "batches exchanged"
		err = execute(`
			with pair as (select array_agg(first_seq) as seqs from (select first_seq from agui.batch where ` + ofThread + ` order by random() limit 2) as two)
			update agui.batch set events = other.events, n = other.n, links = other.links
			from pair, agui.batch as other
			where batch.thread_key = agui.thread_key('', $1) and other.thread_key = batch.thread_key
				and batch.first_seq = any (pair.seqs) and other.first_seq = any (pair.seqs) and batch.first_seq <> other.first_seq
				and batch.events::text <> other.events::text`)
	case 4:
		what = "events of a batch exchanged"
		err = update(`events = (
			select ('[' || string_agg(e::text, ',' order by case p when 1 then 2 when 2 then 1 else p end) || ']')::json
			from json_array_elements(events) with ordinality as item (e, p))`,
			`first_seq = (select first_seq from agui.batch where `+ofThread+` and n > 1 and (events->0)::text <> (events->1)::text order by random() limit 1)`)
	case 5:
		what = "a batch left out"
		err = execute(`
			delete from agui.batch where ` + ofThread + ` and first_seq = (select first_seq from agui.batch where ` + ofThread + `
				and first_seq < (select max(first_seq) from agui.batch where ` + ofThread + `) order by random() limit 1)`)
	case 6:
		what = "an event left out of a batch"
		err = update(`n = n - 1, links = null, events = (
			select ('[' || string_agg(e::text, ',' order by p) || ']')::json from json_array_elements(events) with ordinality as item (e, p) where p > 1)`,
			`first_seq = (select first_seq from agui.batch where `+ofThread+` and n > 1 order by random() limit 1)`)
	case 7:
		what = "an event added"
		err = update(`n = n + 1, links = null, events = (left(events::text, -1) || ',{"type":"CUSTOM"}]')::json`, `first_seq = `+anyBatch)
	case 8:
		what = "a hash"
		err = update(`hash = set_bit(hash, (random() * 255)::int, 1 - get_bit(hash, (random() * 255)::int))`, `first_seq = `+anyBatch)
		if err == nil && what != "" {
			var same bool
			err = tx.QueryRow(ctx, `select not exists (select hash from agui.batch where `+ofThread+` except select hash from public.batch_before)`, thread).Scan(&same)
			if same {
				what = ""
			}
		}
	case 9:
		what = "a hash removed"
		err = update(`hash = null`, `first_seq = (select first_seq from agui.batch where `+ofThread+` and first_seq > 1 order by random() limit 1)`)
	case 10:
		what = "the links"
		err = update(`links = links[2:] || links[1]`, `first_seq = (select first_seq from agui.batch where `+ofThread+` and links[1] <> links[2] order by random() limit 1)
			and links[2:] || links[1] <> links`)
	case 11:
		what = "the run of a batch"
		err = update(`run_no = case run_no when 1 then 2 else run_no - 1 end`, `first_seq = `+anyBatch+` and exists (select from agui.run where run.thread_key = batch.thread_key and run_no = 2)`)
	case 12:
		what = "the name of a run"
		err = execute(`update agui.run set run_id = run_id || 'x' where ` + ofThread + ` and run_no = 1`)
	case 13:
		what = "a parent"
		err = execute(`update agui.run set parent_no = null where ` + ofThread + ` and parent_no is not null`)
	case 14:
		what = "an input"
		err = execute(`update agui.run_input set input = '{"messages":[] }' where ` + ofThread)
	case 15:
		needsHeads = true
		if p.random.IntN(2) == 0 {
			what = "the end cut off"
			err = execute(`delete from agui.batch where ` + ofThread + ` and first_seq > 1 and first_seq = (select max(first_seq) from agui.batch where ` + ofThread + `)`)
			return what, needsHeads, err
		}
		what = "the end written anew with its hash"
		err = execute(`
			with part as (
				select array_agg(first_seq order by first_seq desc) as seqs from (select first_seq from agui.batch where ` + ofThread + ` order by first_seq desc limit 2) as two
			), told as (
				select ('[' || string_agg('{"type":"CUSTOM","name":"forged"}', ',') || ']')::json as events
				from agui.batch, part, generate_series(1, n) where ` + ofThread + ` and first_seq = seqs[1]
			)
			update agui.batch set events = told.events, links = null, earlier_us = null,
				hash = agui_internal.next_link(before.hash, batch.first_seq, batch.n, batch.recorded_at, run.run_id, told.events)
			from part, told, agui.batch as before, agui.run
			where batch.thread_key = agui.thread_key('', $1) and before.thread_key = batch.thread_key and run.thread_key = batch.thread_key
				and run.run_no = batch.run_no and batch.first_seq = seqs[1] and before.first_seq = seqs[2] and run.first_seq < batch.first_seq`)
	}
	return what, needsHeads, err
}
