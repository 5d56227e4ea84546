package crash

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/devpg/cluster"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/pooler"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/sql/schema"
)

var (
	testFor  = flag.Duration("for", 0, "how long to go on with rounds; 0: one short round of each variant")
	testOnly = flag.String("only", "", "a regular expression of what happens, such as 'jobs killed|job backends ended'; empty: all")
	testSeed = flag.Uint64("seed", 0, "what decides the first round, as far as processes allow; the next has the next seed; 0: any")
)

// variant is a way in which writers and followers reach the database.
type variant struct {
	pooled  bool // through PgBouncer in transaction mode
	relaxed bool // commits do not wait for the disk
}

func (v variant) String() string {
	words := []string{"direct"}
	if v.pooled {
		words[0] = "pooled"
	}
	if v.relaxed {
		words = append(words, "relaxed")
	}
	return strings.Join(words, " ")
}

// Whichever process is killed: what the database confirmed to writers is stored once, in order, and followers see the log as it is.
func TestWhoeverIsKilledWritersAndFollowersKnowTheLog(t *testing.T) {
	seed := *testSeed
	if seed == 0 {
		seed = rand.Uint64N(1_000_000)
	}
	if testing.Short() {
		t.Skip("it kills all kinds of processes")
	}
	if *testFor == 0 {
		for _, variant := range []variant{{}, {pooled: true, relaxed: true}} {
			t.Run(variant.String(), func(t *testing.T) {
				t.Parallel()
				playRound(t, variant, seed, 0)
			})
		}
		return
	}
	rounds, total := 0, map[string]int{}
	for end := time.Now().Add(*testFor); time.Now().Before(end) && !t.Failed(); seed++ {
		random := rand.New(rand.NewPCG(seed, 0))
		variant := variant{pooled: random.IntN(2) == 0, relaxed: random.IntN(2) == 0}
		t.Run(fmt.Sprintf("%s, seed %d", variant, seed), func(t *testing.T) {
			for what, count := range playRound(t, variant, seed, 10+random.IntN(30)) {
				total[what] += count
			}
		})
		rounds++
	}
	t.Logf("%d rounds: %v", rounds, total)
}

const (
	writers          = 2
	threadsPerWriter = 25
	followers        = 2
	// leaseTime is short, so that the runs of writers that were killed do not keep their threads for long. A slow machine may cut
	// off living ones now and then, which does no harm.
	leaseTime = time.Second
	// lateTime is how long after a run's end an error comes at most: about as long as jobs take until they are at the run.
	lateTime = 50 * time.Millisecond
)

// round is a server with writers and followers, and what these were told.
type round struct {
	t       testing.TB
	variant variant
	random  *rand.Rand
	disk    *disk // of the server; nil: there is no small one
	server  *cluster.Cluster
	pool    *pgxpool.Pool // the test's own, without the pooler
	url     string        // the writers' and the followers'
	threads []string

	writers     [writers]*process
	followers   [followers]*process
	jobs        *process
	generations int // of processes that were started

	mu           sync.Mutex // guards what follows, which is heard from the processes
	writerLines  []writerLine
	killed       map[string]bool // writers, by name
	seen         [followers][]chain
	rewoundTimes int

	counts map[string]int // of what was done and found
}

// chain is what a reader has seen, over the lives of its process.
type chain struct {
	reader
	sightings []sighting
}

// playRound lets processes stream while all that can happen to them does, each once and so many times more, checks what comes of it, and
// returns how much it was.
func playRound(t *testing.T, variant variant, seed uint64, more int) (counts map[string]int) {
	t.Logf("seed %d", seed)
	r := &round{
		t: t, variant: variant, random: rand.New(rand.NewPCG(seed, 1)),
		killed: map[string]bool{}, counts: map[string]int{},
	}
	r.startServer()
	for i := range writers * threadsPerWriter {
		r.threads = append(r.threads, fmt.Sprint("t", i))
	}
	for i := range followers {
		for n, thread := range r.threads {
			r.seen[i] = append(r.seen[i], chain{reader: reader{Thread: thread}})
			if n%5 == 0 {
				r.seen[i] = append(r.seen[i], chain{reader: reader{Thread: thread, Slow: true}})
			}
		}
		r.startFollower(i)
	}
	for i := range writers {
		r.startWriter(i)
	}
	r.startJobs()
	stopReads := r.startReads()
	r.cause(more)
	stopReads()

	for _, writer := range r.writers {
		writer.finish()
	}
	r.closeStaleRuns(`true`)
	r.jobs.finish()
	r.checkJobs()
	r.eraseOddThreads()
	log := r.readLog()
	r.waitForFollowers(log)
	for _, follower := range r.followers {
		follower.finish()
	}
	r.check(log)
	return r.counts
}

func (r *round) startServer() {
	r.t.Helper()
	settings := map[string]string{
		"fsync": "off", "full_page_writes": "off", // the machine does not crash, only the server
		"shared_buffers": "32MB", "agui.repack_after": "0",
		"min_wal_size": "32MB", "max_wal_size": "64MB", // the disk is small
	}
	folder := ""
	if r.disk = newDisk(r.t); r.disk != nil {
		folder = r.disk.folder
	}
	if r.variant.relaxed {
		// What makes it likely that a crash takes back what was committed.
		settings["wal_writer_delay"], settings["wal_writer_flush_after"], settings["wal_buffers"] = "10s", "1GB", "16MB"
	}
	var err error
	if r.server, err = cluster.Start(r.t.Context(), cluster.Options{Settings: settings, Folder: folder}); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		must.Report(r.t, r.server.Stop())
	})
	r.url = r.server.URL("postgres")
	must.Do(r.t, schema.Up(r.t.Context(), r.url))
	if r.pool, err = pgxpool.New(r.t.Context(), r.url); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(r.pool.Close)
	r.execute(`select agui.set_setting('lease', '` + leaseTime.String() + `')`)
	if r.variant.pooled {
		r.url = pooler.Start(r.t, r.url) + "&default_query_exec_mode=exec"
	}
}

func (r *round) startWriter(i int) {
	r.generations++
	name := fmt.Sprint("writer", r.generations)
	r.writers[i] = start(r.t, "writer", name, writerTask{
		URL: r.url, Name: name, Threads: r.threads[i*threadsPerWriter : (i+1)*threadsPerWriter],
		Seed: r.random.Uint64(), Relaxed: r.variant.relaxed,
	}, func(line writerLine) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if line.Problem != "" {
			r.t.Errorf("run %s of thread %s: %s", line.Run, line.Thread, line.Problem)
			return
		}
		r.writerLines = append(r.writerLines, line)
	})
}

// startFollower starts a follower that continues where its predecessor was.
func (r *round) startFollower(i int) {
	r.generations++
	task := followerTask{URL: r.url}
	for _, chain := range r.seen[i] {
		reader := chain.reader
		if len(chain.sightings) > 0 {
			reader.After = chain.sightings[len(chain.sightings)-1].position()
		}
		task.Readers = append(task.Readers, reader)
	}
	name := fmt.Sprint("follower", r.generations)
	r.followers[i] = start(r.t, "follower", name, task, func(line followerLine) {
		r.mu.Lock()
		defer r.mu.Unlock()
		chain := &r.seen[i][line.Reader]
		switch {
		case line.Problem != "":
			r.t.Errorf("%s: thread %s: %s", name, chain.Thread, line.Problem)
		case line.Rewound:
			chain.sightings = nil
			r.rewoundTimes++
			if !r.variant.relaxed {
				r.t.Errorf("%s: thread %s was rewound, although every commit waited for the disk", name, chain.Thread)
			}
		default:
			chain.sightings = append(chain.sightings, line.sighting)
		}
	})
}

func (r *round) startJobs() {
	r.generations++
	name := fmt.Sprint("jobs", r.generations)
	r.jobs = start(r.t, "jobs", name, jobsTask{URL: r.url}, func(line jobsLine) { r.t.Errorf("%s: %s", name, line.Problem) })
}

// cause has happen all that can, in any order: each once, and so many times more.
func (r *round) cause(more int) {
	type incident struct {
		name  string
		cause func()
	}
	incidents := []incident{
		{"writers killed", func() {
			i := r.random.IntN(writers)
			r.mu.Lock()
			r.killed[r.writers[i].name] = true
			r.mu.Unlock()
			r.writers[i].kill()
			r.startWriter(i)
		}},
		{"followers killed", func() {
			i := r.random.IntN(followers)
			r.followers[i].kill()
			r.startFollower(i)
		}},
		{"jobs killed", func() {
			r.jobs.kill()
			r.startJobs()
		}},
		{"backends of jobs ended", func() {
			r.execute(`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'jobs'`)
		}},
		{"server crashes", func() {
			must.Do(r.t, r.server.Kill())
			r.pauseUpTo(300 * time.Millisecond)
			must.Do(r.t, r.server.Restart(r.t.Context()))
		}},
		{"outages longer than the lease", func() {
			must.Do(r.t, r.server.Kill())
			time.Sleep(leaseTime + time.Duration(r.random.Int64N(int64(500*time.Millisecond))))
			must.Do(r.t, r.server.Restart(r.t.Context()))
			_, _ = r.pool.Exec(r.t.Context(), `call agui.reap()`) // which may fail at a damaged thread
		}},
		{"connections cut", func() {
			r.execute(`select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and backend_type = 'client backend'`)
		}},
		{"server processes killed", func() {
			var pid int
			r.query(`
				select pid from pg_stat_activity
				where pid <> pg_backend_pid() and backend_type = 'client backend'
				order by state, random()
				limit 1`, &pid)
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				r.t.Fatal(err)
			}
			r.revive()
		}},
		{"full disks", func() {
			if r.disk == nil {
				return
			}
			r.disk.fill(r.t, time.Duration(r.random.Int64N(int64(2*leaseTime))))
			r.revive()
		}},
		{"threads damaged", r.damageThread},
		{"late errors", r.appendLateError},
		{"server processes that hang", func() {
			// Those of writers, as a rule, which give up the call, make it again, and have it done twice.
			var pids []int
			r.query(`
				select array(
					select pid from pg_stat_activity
					where pid <> pg_backend_pid() and query like '%agui.append_many%'
					order by state, state_change desc
					limit 2)`, &pids)
			for _, pid := range pids {
				if err := syscall.Kill(pid, syscall.SIGSTOP); err == nil { // else it has just ended
					defer syscall.Kill(pid, syscall.SIGCONT)
				}
			}
			time.Sleep(callTimeout + time.Duration(r.random.Int64N(int64(300*time.Millisecond))))
		}},
		{"writers stopped for longer than the lease", func() {
			late := r.writers[r.random.IntN(writers)]
			late.signal(syscall.SIGSTOP)
			r.closeStaleRuns(fmt.Sprintf(`starts_with(run_id, '%s-')`, late.name))
			late.signal(syscall.SIGCONT)
		}},
	}
	if only := regexp.MustCompile(*testOnly); *testOnly != "" {
		incidents = slices.DeleteFunc(incidents, func(incident incident) bool { return !only.MatchString(incident.name) })
		if len(incidents) == 0 {
			r.t.Fatalf("-only %q is the name of nothing that happens", *testOnly)
		}
	}
	order := r.random.Perm(len(incidents))
	for range more {
		order = append(order, r.random.IntN(len(incidents)))
	}
	for _, n := range order {
		r.pauseUpTo(400 * time.Millisecond)
		incidents[n].cause()
		r.counts[incidents[n].name]++
	}
	r.pauseUpTo(400 * time.Millisecond)
}

func (r *round) pauseUpTo(most time.Duration) {
	time.Sleep(time.Duration(r.random.Int64N(int64(most))))
}

// closeStaleRuns closes runs that have lost their writer until none of those that match is in progress, but for those of damaged threads.
func (r *round) closeStaleRuns(condition string) {
	r.t.Helper()
	wait.For(r.t, "runs whose writer is gone are closed", func() bool {
		_, _ = r.pool.Exec(r.t.Context(), `call agui.reap()`) // which may fail at a damaged thread
		var running int
		r.query(`
			select count(*) from agui.run join agui.thread using (thread_key)
			where run.status = 'running' and not `+isDamaged+` and `+condition, &running)
		return running == 0
	})
}

// revive waits until the server takes connections. If the server has given up, revive starts it.
func (r *round) revive() {
	r.t.Helper()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if r.pool.Ping(r.t.Context()) == nil {
			return
		}
	}
	r.counts["servers that gave up"]++
	must.Do(r.t, r.server.Restart(r.t.Context()))
}

// execute executes a statement, and repeats it while the server recovers.
func (r *round) execute(statement string) {
	r.t.Helper()
	r.answered(func(ctx context.Context) error {
		_, err := r.pool.Exec(ctx, statement)
		return err
	})
}

func (r *round) query(statement string, result any) {
	r.t.Helper()
	r.answered(func(ctx context.Context) error { return r.pool.QueryRow(ctx, statement).Scan(result) })
}

func (r *round) answered(call func(context.Context) error) {
	r.t.Helper()
	var err error
	// A server notices some time after one of its processes was killed, and recovers then.
	if !wait.Until(func() bool {
		err = call(r.t.Context())
		return err == nil
	}) {
		r.t.Fatal(err)
	}
}
