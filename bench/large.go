package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/devpg/cluster"
	"github.com/pgagui/pgagui/jobs"
)

// largeStore is one of the two stores of the phase large.
type largeStore struct {
	*database
	threads     int
	events      int64
	firstChange int64 // the transaction before that of the first thread
	born        int   // threads and runs that the measurements began
	taken       map[int]bool
}

// large measures one ordinary database at its size beside a small one in the same server.
type large struct {
	*bench
	private *cluster.Cluster
	server  *server
	stores  [2]*largeStore // the large one, the small one
	// hasPages says that the server counts the pages that a call touches (pg_stat_statements).
	hasPages bool
}

// large fills two stores, measures calls and jobs in turns, and then writes to the large one for a while. It has a server of its own,
// which is made for its size.
func (b *bench) large(ctx context.Context) (err error) {
	sizes := [2]int{b.sizes.largeEvents, b.sizes.smallEvents}
	for i, events := range []int{b.LargeEvents, b.SmallEvents} {
		if events > 0 {
			sizes[i] = events
		}
	}
	l := &large{bench: b}
	sharedBuffers, walSize := "4GB", "8GB"
	if b.Quick {
		sharedBuffers, walSize = "128MB", "1GB"
	}
	if l.private, err = cluster.Start(ctx, cluster.Options{Settings: map[string]string{
		"shared_buffers": sharedBuffers, "max_wal_size": walSize, "maintenance_work_mem": "512MB", "checkpoint_timeout": "15min",
		// For the fill alone: see restart.
		"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off", "wal_level": "minimal", "max_wal_senders": "0", "autovacuum": "off",
		"gin_pending_list_limit": "64MB",
	}}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.private.Stop()) }()
	if l.server, err = openServer(ctx, l.private.URL("postgres")); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.server.close()) }()
	if err := l.fill(ctx, sizes); err != nil {
		return err
	}
	if err := l.restart(ctx); err != nil {
		return err
	}
	for _, measure := range []func(context.Context) error{l.verify, l.sizesOnDisk, l.reads, l.writes, l.upkeep, l.mixed, l.verify} {
		if err := measure(ctx); err != nil {
			return err
		}
	}
	for _, store := range l.stores {
		if err := store.drop(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (l *large) fill(ctx context.Context, events [2]int) error {
	models, err := l.server.create(ctx, 4)
	if err != nil {
		return err
	}
	l.Progress("large: make the models")
	counts := modelCounts{done: l.sizes.largeModels, waiting: max(1, l.sizes.largeModels/20), running: max(1, l.sizes.largeModels/40)}
	if err := models.fillModels(ctx, counts); err != nil {
		return err
	}
	for i := range l.stores {
		copied, err := l.server.copy(ctx, models)
		if err != nil {
			return err
		}
		store := &largeStore{database: copied, threads: events[i] / eventsAThread, taken: map[int]bool{}}
		l.stores[i] = store
		begun := time.Now()
		what := fmt.Sprintf("large: fill %s threads", number3(float64(store.threads)))
		l.Progress(what)
		if err := store.fillCopies(ctx, counts, func(done string) { l.Progress(what + ": " + done) }); err != nil {
			return err
		}
		l.report.addFigure("large", fmt.Sprintf("fill of %s events", number3(float64(store.events))), "s", time.Since(begun).Seconds())
	}
	return models.drop(ctx)
}

// restart gives the server the settings of an installation, and the module that counts pages if it has it.
func (l *large) restart(ctx context.Context) error {
	settings := map[string]string{
		"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "wal_level": "replica", "autovacuum": "on", "gin_pending_list_limit": "4MB",
	}
	if err := l.server.connection.QueryRow(ctx, "select exists (select from pg_available_extensions where name = 'pg_stat_statements')").Scan(&l.hasPages); err != nil {
		return err
	}
	if l.hasPages {
		settings["shared_preload_libraries"] = "pg_stat_statements"
	}
	for name, value := range settings {
		if _, err := l.server.connection.Exec(ctx, fmt.Sprintf("alter system set %s = '%s'", name, value)); err != nil {
			return err
		}
	}
	if _, err := l.server.connection.Exec(ctx, "checkpoint"); err != nil {
		return err
	}
	for _, store := range l.stores {
		store.Close()
	}
	err := l.server.connection.Close(ctx)
	if err == nil {
		err = l.private.Restart(ctx)
	}
	if err == nil {
		l.server.connection, err = pgx.Connect(ctx, l.private.URL("postgres"))
	}
	for _, store := range l.stores {
		if err == nil {
			err = store.open(ctx, 12)
		}
	}
	if err == nil && l.hasPages {
		_, err = l.server.connection.Exec(ctx, "create extension pg_stat_statements")
	}
	return err
}

// verify checks a sample of the threads.
func (l *large) verify(ctx context.Context) error {
	for _, store := range l.stores {
		l.Progress(fmt.Sprintf("large: verify some of %s threads", number3(float64(store.threads))))
		var problems []string
		found, err := jobs.Verify(ctx, store.Pool, jobs.VerifyOptions{SampleThreads: l.sizes.largeVerified, Report: func(thread jobs.VerifiedThread) {
			for _, problem := range thread.Problems {
				problems = append(problems, fmt.Sprintf("%s in %s: %s", thread.ThreadID, thread.Scope, problem.Problem))
			}
		}})
		if err == nil && (found.Problems > 0 || found.Threads == 0) {
			err = fmt.Errorf("%d problems in %d threads: %s", found.Problems, found.Threads, strings.Join(problems, "; "))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sizesOnDisk reports what the tables take.
func (l *large) sizesOnDisk(ctx context.Context) error {
	var sizes [2]map[string]float64
	var order []string
	for i, store := range l.stores {
		sizes[i] = map[string]float64{}
		rows, err := store.Query(ctx, `
			select relname, pg_table_size(oid), pg_indexes_size(oid)
			from pg_class
			where relnamespace = 'agui'::regnamespace and relkind = 'r' and pg_table_size(oid) > 0
			order by pg_total_relation_size(oid) desc`)
		if err != nil {
			return err
		}
		for rows.Next() {
			var table string
			var heap, indexes int64
			if err := rows.Scan(&table, &heap, &indexes); err != nil {
				return err
			}
			sizes[i][table], sizes[i][table+", indexes"] = float64(heap), float64(indexes)
			sizes[i]["all tables and indexes"] += float64(heap + indexes)
			if i == 0 && heap > 1<<20 {
				order = append(order, table, table+", indexes")
			}
		}
		if err := rows.Err(); err != nil {
			return err
		}
	}
	for _, what := range append([]string{"all tables and indexes"}, order...) {
		ours, against := sizes[0][what]/float64(l.stores[0].events), sizes[1][what]/float64(l.stores[1].events)
		if ours == 0 || against == 0 {
			continue
		}
		l.report.add(Measurement{
			Phase: "large", What: "on disk: " + what, Unit: "bytes/event", Ours: Side{Name: l.stores[0].name()}, Against: Side{Name: l.stores[1].name()},
		}, []float64{ours}, []float64{against})
	}
	return nil
}

func (s *largeStore) name() string { return "of " + number3(float64(s.events)) }

// place is where a call is made: a thread, and what an earlier step of the same chain left for it.
type place struct {
	n             int
	scope, thread string
	store         *pgagui.Store // of the scope
	run           pgagui.RunRef
	cursor        string
	threads       []string
	scopes        []string
	seqs          []int64
}

// pick returns a thread at random that no other place has: none whose run is in progress, none that was erased.
func (s *largeStore) pick(besides map[int]bool) *place {
	_, running := modelCounts{}.of(s.threads)
	for {
		n := 1 + rand.IntN(s.threads-running)
		if besides[n] || s.taken[n] {
			continue
		}
		besides[n] = true
		return s.place(n)
	}
}

func (s *largeStore) place(n int) *place {
	scope, thread := fmt.Sprint("scope-", n%(s.threads/threadsAScope)), fmt.Sprint("thread-", n)
	return &place{n: n, scope: scope, thread: thread, store: s.store.InScope(scope), run: pgagui.RunRef{ThreadID: thread}}
}

// step is a call of a chain. All places make it before the next step begins.
type step struct {
	what string // empty: not measured
	unit string // of what a call handles: "run"; empty: the call
	// isFirst marks a read of what may not be in the cache. It has no ratio.
	isFirst bool
	do      func(ctx context.Context, s *largeStore, at *place) (units int, err error)
}

// read is a chain: a first call, which brings what it reads into the cache, and a second one.
func read(what string, do func(ctx context.Context, s *largeStore, at *place) error) []step {
	once := func(ctx context.Context, s *largeStore, at *place) (int, error) { return 1, do(ctx, s, at) }
	return []step{{what: what, isFirst: true, do: once}, {what: what, do: once}}
}

// pagesRead are the pages that the statements of a database have touched, and those of them that were not in shared_buffers.
type pagesRead struct{ touched, missed float64 }

func (l *large) pages(ctx context.Context, s *largeStore) (sum pagesRead, err error) {
	if l.hasPages {
		err = l.server.connection.QueryRow(ctx, `
			select coalesce(sum(shared_blks_hit + shared_blks_read), 0)::float8, coalesce(sum(shared_blks_read), 0)::float8
			from pg_stat_statements(false)
			where dbid = (select oid from pg_database where datname = $1)`, s.database.name).Scan(&sum.touched, &sum.missed)
	}
	return sum, err
}

// measure makes a number of calls a round of each step, in both stores in turns: a few here, a few there. A figure is the median of the
// calls of a round; pages are their mean.
func (l *large) measure(ctx context.Context, calls int, steps []step) error {
	const turns = 4
	type round struct {
		delays []float64
		pages  pagesRead
		units  int
	}
	type figures struct{ ms, touched, missed []float64 }
	measured := make([][2]figures, len(steps))
	for number := range 1 + l.Repeat {
		l.Progress(fmt.Sprintf("large: %s, round %d of %d", steps[len(steps)-1].what, number, l.Repeat))
		rounds := make([][2]round, len(steps))
		for turn := range turns {
			for i := range l.stores {
				side := (i + turn + number) % 2
				store := l.stores[side]
				besides, places := map[int]bool{}, make([]*place, max(1, calls/turns))
				for i := range places {
					places[i] = store.pick(besides)
				}
				for i, step := range steps {
					of := &rounds[i][side]
					before, err := l.pages(ctx, store)
					if err != nil {
						return err
					}
					for _, place := range places {
						begun := time.Now()
						units, err := step.do(ctx, store, place)
						if err != nil {
							return fmt.Errorf("%s, %s in %s: %w", step.what, place.thread, place.scope, err)
						}
						if units > 0 {
							of.delays = append(of.delays, 1000*time.Since(begun).Seconds()/float64(units))
							of.units += units
						}
					}
					after, err := l.pages(ctx, store)
					if err != nil {
						return err
					}
					of.pages.touched += after.touched - before.touched
					of.pages.missed += after.missed - before.missed
				}
			}
		}
		if number == 0 {
			continue
		}
		for i := range steps {
			for side, round := range rounds[i] {
				if round.units == 0 {
					return fmt.Errorf("%s: nothing was done", steps[i].what)
				}
				of := &measured[i][side]
				of.ms = append(of.ms, SpreadOf(round.delays).Median)
				of.touched = append(of.touched, round.pages.touched/float64(round.units))
				of.missed = append(of.missed, round.pages.missed/float64(round.units))
			}
		}
	}
	for i, step := range steps {
		ours, against := measured[i][0], measured[i][1]
		add := func(what, unit string, ours, against []float64, target *Target) {
			if step.unit != "" {
				unit += "/" + step.unit
			}
			l.report.add(Measurement{Phase: "large", What: what, Unit: unit, Ours: Side{Name: l.stores[0].name()}, Against: Side{Name: l.stores[1].name()}, Target: target}, ours, against)
			// A run takes hours, and may be interrupted before its report.
			added := l.report.Measurements[len(l.report.Measurements)-1]
			l.Progress(fmt.Sprintf("large: %s: %s %s beside %s, ratio %s", what, number3(added.Ours.Median), unit, number3(added.Against.Median), ratioText(added.Ratio.Median)))
		}
		if step.what == "" {
			continue
		}
		what := step.what
		if step.isFirst {
			what += ", the first time"
			l.report.Figures = append(l.report.Figures, Figure{Phase: "large", What: what, Unit: "ms", Values: ours.ms, Spread: SpreadOf(ours.ms)})
		}
		if l.hasPages {
			l.report.Figures = append(l.report.Figures, Figure{Phase: "large", What: what + ", not in shared_buffers", Unit: "pages", Values: ours.missed, Spread: SpreadOf(ours.missed)})
		}
		if !step.isFirst {
			add(step.what, "ms", ours.ms, against.ms, atMost("L", largeTarget))
			if l.hasPages && SpreadOf(against.touched).Min > 0 {
				add(step.what+", pages touched", "pages", ours.touched, against.touched, atMost("L", largeTarget))
			}
		}
	}
	return nil
}

// largeTarget is how many times as much a call may cost in the large store.
const largeTarget = 1.2

// reads measures calls that read.
func (l *large) reads(ctx context.Context) error {
	month := time.Now().AddDate(0, -1, 0)
	list := func(options pgagui.ThreadsOptions) func(context.Context, *largeStore, *place) error {
		return func(ctx context.Context, _ *largeStore, at *place) error {
			_, err := at.store.Threads(ctx, options)
			return err
		}
	}
	query := func(sql string) func(context.Context, *largeStore, *place) error {
		return func(ctx context.Context, s *largeStore, _ *place) error {
			_, err := s.Exec(ctx, sql)
			return err
		}
	}
	changes := func(position func(s *largeStore, at *place) int64, limit int, allScopes bool) func(context.Context, *largeStore, *place) error {
		return func(ctx context.Context, s *largeStore, at *place) error {
			var epoch string
			if err := s.QueryRow(ctx, "select agui_internal.epoch()").Scan(&epoch); err != nil {
				return err
			}
			after := fmt.Sprintf("%s changed %d 00000000-0000-0000-0000-000000000000 0", epoch, position(s, at))
			_, err := at.store.Changes(ctx, pgagui.ChangesOptions{After: after, AllScopes: allScopes, Limit: limit})
			return err
		}
	}
	chains := [][]step{
		read("restore of a thread", func(ctx context.Context, _ *largeStore, at *place) error {
			_, err := at.store.Restore(ctx, at.thread, pgagui.At{})
			return err
		}),
		read("lineage of the head", func(ctx context.Context, _ *largeStore, at *place) error {
			_, err := at.store.Lineage(ctx, at.run)
			return err
		}),
		read("history, first page", func(ctx context.Context, _ *largeStore, at *place) error {
			_, err := at.store.History(ctx, at.thread, pgagui.HistoryOptions{})
			return err
		}),
		read("threads of a scope, first page of 20", list(pgagui.ThreadsOptions{Limit: 20})),
		append([]step{{do: func(ctx context.Context, _ *largeStore, at *place) (int, error) {
			page, err := at.store.Threads(ctx, pgagui.ThreadsOptions{Limit: 60})
			at.cursor = page.Cursor
			return 1, err
		}}}, read("threads of a scope, fourth page of 20", func(ctx context.Context, _ *largeStore, at *place) error {
			_, err := at.store.Threads(ctx, pgagui.ThreadsOptions{Limit: 20, Cursor: at.cursor})
			return err
		})...),
		read("threads whose runs failed in the last month", list(pgagui.ThreadsOptions{Limit: 20, Status: pgagui.Failed, Since: month})),
		read("threads of an agent with metadata", list(pgagui.ThreadsOptions{Limit: 20, Agent: "agent-1", Metadata: []byte(`{"team":"team-1"}`)})),
		read("threads with a word in the title", list(pgagui.ThreadsOptions{Limit: 20, Title: "import"})),
		read("archived threads", list(pgagui.ThreadsOptions{Limit: 20, Archived: pgagui.OnlyArchived})),
		read("failed runs of the last month", func(ctx context.Context, _ *largeStore, at *place) error {
			_, err := at.store.ListRuns(ctx, pgagui.ListRunsOptions{Since: month})
			return err
		}),
		read("what waits in a scope", func(ctx context.Context, _ *largeStore, at *place) error {
			_, err := at.store.Facts().Waiting(ctx, pgagui.WaitingOptions{})
			return err
		}),
		read("search in a scope", func(ctx context.Context, _ *largeStore, at *place) error {
			_, err := at.store.Search(ctx, spokenWords[at.n%len(spokenWords)], pgagui.SearchOptions{})
			return err
		}),
		read("changes of a scope, up to date", changes(func(s *largeStore, _ *place) int64 { return s.firstChange + int64(s.threads) - 100 }, 100, false)),
		read("lag", query("select * from agui.lag()")),
		read("stats", query("select * from agui.stats()")),
	}
	// What takes many milliseconds, and questions whose answers grow with the store.
	long := [][]step{
		read("report of a scope, last month", func(ctx context.Context, _ *largeStore, at *place) error {
			_, err := at.store.Facts().Report(ctx, month)
			return err
		}),
		append([]step{{do: func(ctx context.Context, s *largeStore, at *place) (int, error) {
			return 1, s.fillPoll(ctx, at, l.sizes.largePolled)
		}}},
			read(fmt.Sprintf("poll of %s quiet threads", number3(float64(l.sizes.largePolled))), func(ctx context.Context, s *largeStore, at *place) error {
				_, err := s.Exec(ctx, "select * from agui.poll($1, $2, scopes => $3)", at.threads, at.seqs, at.scopes)
				return err
			})...),
		read("page of 1,000 changes", changes(func(s *largeStore, at *place) int64 { return s.firstChange + int64(at.n)*9/10 }, 1000, true)),
		read("verify of a thread", func(ctx context.Context, _ *largeStore, at *place) error {
			_, err := at.store.Maintenance().Verify(ctx, at.thread)
			return err
		}),
		read("what waits in all scopes, the first 100", func(ctx context.Context, s *largeStore, _ *place) error {
			_, err := s.store.FactsOfAllScopes().Waiting(ctx, pgagui.WaitingOptions{})
			return err
		}),
		read("changes of a scope behind a tenth of the store", changes(func(s *largeStore, _ *place) int64 { return s.firstChange + int64(s.threads)*9/10 }, 100, false)),
	}
	for _, chain := range chains {
		if err := l.measure(ctx, l.sizes.largeCalls, chain); err != nil {
			return err
		}
	}
	for _, chain := range long {
		if err := l.measure(ctx, l.sizes.largeCalls/10, chain); err != nil {
			return err
		}
	}
	return nil
}

// fillPoll chooses threads at random, and the ends of their logs.
func (s *largeStore) fillPoll(ctx context.Context, at *place, count int) error {
	ns := make([]int, count)
	for i := range ns {
		ns[i] = 1 + rand.IntN(s.threads)
	}
	return s.QueryRow(ctx, `
		select array_agg(place.scope), array_agg(place.id), array_agg(coalesce(last.seq, 0))
		from (select 'scope-' || n % $2::int as scope, 'thread-' || n as id from unnest($1::int[]) as n) as place
		cross join lateral (
			select max(batch.first_seq + batch.n - 1) as seq
			from agui.batch as batch
			where batch.thread_key = agui.thread_key(place.scope, place.id)
		) as last`, ns, s.threads/threadsAScope).Scan(&at.scopes, &at.threads, &at.seqs)
}

// begin returns the next run that the measurements begin.
func (s *largeStore) begin() (*spokenThread, spokenRun) {
	s.born++
	spoken := newSpokenThread("born-"+strconv.Itoa(s.born), rand.Uint64())
	run := spoken.run()
	run.id = "run-born-" + strconv.Itoa(s.born)
	return spoken, run
}

// bear appends a thread of one run in a scope at random.
func (s *largeStore) bear(ctx context.Context, at *place) (int, error) {
	spoken, run := s.begin()
	return 1, spoken.append(ctx, at.store, run, len(run.events))
}

// writes measures appends and claims.
func (l *large) writes(ctx context.Context) error {
	warm := step{do: func(ctx context.Context, _ *largeStore, at *place) (int, error) {
		_, err := at.store.Runs(ctx, at.thread)
		return 1, err
	}}
	continuing := func(what string, count int) step {
		return step{what: what, do: func(ctx context.Context, s *largeStore, at *place) (int, error) {
			s.born++
			events := message(fmt.Sprint("message-", s.born), max(3, count))[:count]
			_, err := at.store.Append(ctx, at.run, events, pgagui.AppendOptions{})
			return 1, err
		}}
	}
	for _, chain := range [][]step{
		{{what: "birth of a thread, a whole run", do: func(ctx context.Context, s *largeStore, at *place) (int, error) { return s.bear(ctx, at) }}},
		{
			warm,
			{what: "next run of a thread, its beginning", do: func(ctx context.Context, s *largeStore, at *place) (int, error) {
				_, run := s.begin()
				at.run.RunID = run.id
				_, err := at.store.Append(ctx, at.run, run.events[:1], pgagui.AppendOptions{Input: run.input})
				return 1, err
			}},
			continuing("append of 100 events", 100),
			continuing("append of 1 event", 1),
			{what: "end of a run", do: func(ctx context.Context, _ *largeStore, at *place) (int, error) {
				_, err := at.store.Append(ctx, at.run, []json.RawMessage{runFinished}, pgagui.AppendOptions{})
				return 1, err
			}},
		},
		{
			warm,
			{what: "claim and its release", do: func(ctx context.Context, s *largeStore, at *place) (int, error) {
				s.born++
				claim, err := at.store.Claim(ctx, pgagui.RunRef{ThreadID: at.thread, RunID: fmt.Sprint("claimed-", s.born)}, pgagui.ClaimOptions{})
				if err == nil {
					err = at.store.ReleaseClaim(ctx, claim)
				}
				return 1, err
			}},
		},
	} {
		if err := l.measure(ctx, l.sizes.largeCalls, chain); err != nil {
			return err
		}
	}
	return nil
}

// upkeep measures the jobs, each for some of the runs that were written just before.
func (l *large) upkeep(ctx context.Context) error {
	count := l.sizes.largeJobRuns
	inSQL := func(call string) func(context.Context, *largeStore, *place) (int, error) {
		return func(ctx context.Context, s *largeStore, _ *place) (int, error) {
			return count, s.AcquireFunc(ctx, func(connection *pgxpool.Conn) error {
				// The job in SQL also repacks what ended a while ago.
				for _, statement := range []string{"set agui.repack_after = '1 day'", fmt.Sprintf(call, count), "reset agui.repack_after"} {
					if _, err := connection.Exec(ctx, statement); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	if err := l.measure(ctx, 1, []step{
		{do: func(ctx context.Context, s *largeStore, at *place) (int, error) {
			for range 2 * count {
				if _, err := s.bear(ctx, s.pick(map[int]bool{})); err != nil {
					return 0, err
				}
			}
			return 1, nil
		}},
		{what: "compaction in Go", unit: "run", do: func(ctx context.Context, s *largeStore, _ *place) (int, error) {
			done, err := jobs.Compact(ctx, s.Pool, jobs.CompactOptions{MaxRuns: count, Workers: 1})
			return done.Runs, err
		}},
		{what: "compaction in SQL", unit: "run", do: inSQL("call agui.compact(max_runs => %d)")},
		{what: "repack in Go", unit: "run", do: func(ctx context.Context, s *largeStore, _ *place) (int, error) {
			done, err := jobs.Repack(ctx, s.Pool, jobs.RepackOptions{MaxRuns: count, OlderThan: new(time.Duration)})
			return done.Runs, err
		}},
		{what: "repack in SQL", unit: "run", do: inSQL("call agui.repack(max_runs => %d, older_than => '0')")},
		{what: "projection, with search", unit: "run", do: func(ctx context.Context, s *largeStore, _ *place) (int, error) {
			done, err := jobs.Project(ctx, s.Pool, jobs.ProjectOptions{})
			return done.Runs, err
		}},
	}); err != nil {
		return err
	}
	if err := l.measure(ctx, 4, []step{{what: "reap with nothing to do", do: func(ctx context.Context, s *largeStore, _ *place) (int, error) {
		_, err := s.Exec(ctx, "call agui.reap()")
		return 1, err
	}}}); err != nil {
		return err
	}
	return l.measure(ctx, l.sizes.largeCalls/2, []step{
		{do: func(ctx context.Context, _ *largeStore, at *place) (int, error) {
			_, err := at.store.Restore(ctx, at.thread, pgagui.At{})
			return 1, err
		}},
		{what: "erasure of a thread", do: func(ctx context.Context, s *largeStore, at *place) (int, error) {
			s.taken[at.n] = true
			_, err := at.store.Erase(ctx, at.thread, pgagui.EraseOptions{})
			return 1, err
		}},
	})
}
