// Package bench compares pgagui with its peers: plain tables, the compaction of the official
// client, and the PostgreSQL checkpointer of LangGraph. All figures of a comparison come from the
// same machine in the same minutes. The two sides are measured alternately, several times, and each
// pair gives a ratio. The result is the median of the ratios, with the smallest and the largest.
//
// Each phase has its own file: append.go, storage.go, read.go, history.go, compact.go, restore.go,
// threads.go, tenants.go, guards.go, patch.go, turns.go, sizing.go, facts.go, live.go, serve.go, speed.go, rest.go, large.go, scale.go, stores.go.
package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/pgagui/pgagui/bench/corpus"
	"github.com/pgagui/pgagui/bench/peers"
)

// Options select what to measure. The zero value measures everything except the long phases and the
// peers that need Node.
type Options struct {
	// DatabaseURL is the address of a database on the server to measure. Its user must have the
	// right to create databases: each phase creates its own and drops them.
	DatabaseURL string
	// Phases are the phases to run. If empty, all phases run except the long ones: facts, sizing, peers, large, scale-….
	Phases []string
	// Repeat is the number of pairs to measure; 0 means 5.
	Repeat int
	// Quick uses tiny conversations, for tests. The figures mean nothing.
	Quick bool
	// Share is the part of their size that the phases facts and scale-… use, above 0 and at most 1; 0 means
	// 1.
	Share float64
	// LargeEvents and SmallEvents are the sizes of the two stores of the phase large; 0 means 100 million and 1 million.
	LargeEvents, SmallEvents int
	// Mixed is how long the phase large writes to the large store at the end; 0 means an hour.
	Mixed time.Duration
	// Tokens is the number of tokens of each agent in the phase speed; 0 means 2,000.
	Tokens int
	// Profiles is a folder for profiles of the server process in the phase speed. None if empty.
	Profiles string
	// Peers is the folder of the peers that run in Node (bench/peers, after npm ci). If empty, they
	// are not measured.
	Peers string
	// PythonPeers is the folder of the peers that run in Python (bench/peers/python, with its venv), which the phase peers needs.
	PythonPeers string
	// Conversations is how many conversations of each kind the phase peers weighs; 0 means 40. A tenth of them have an image.
	Conversations int
	// Progress, if not nil, receives messages about the progress.
	Progress func(string)
}

type phase struct {
	name string
	run  func(*bench, context.Context) error
	// isLong excludes the phase unless Options.Phases names it.
	isLong bool
}

var phases = []phase{
	{name: "append", run: (*bench).append},
	{name: "storage", run: (*bench).storage},
	{name: "snapshots", run: (*bench).snapshots},
	{name: "read", run: (*bench).read},
	{name: "history", run: (*bench).history},
	{name: "pages", run: (*bench).pages},
	{name: "explorer", run: (*bench).explorer},
	{name: "compact", run: (*bench).compact},
	{name: "restore", run: (*bench).restore},
	{name: "checkpoints", run: (*bench).checkpoints},
	{name: "threads", run: (*bench).threads},
	{name: "tenants", run: (*bench).tenants},
	{name: "guards", run: (*bench).guards},
	{name: "patch", run: (*bench).patch},
	{name: "turns", run: (*bench).turns},
	{name: "sizing", run: (*bench).sizing, isLong: true},
	{name: "facts", run: (*bench).facts, isLong: true},
	{name: "peers", run: (*bench).stores, isLong: true},
	{name: "live", run: (*bench).live},
	{name: "serve", run: (*bench).serve},
	{name: "speed", run: (*bench).speed},
	{name: "rest", run: (*bench).rest},
	{name: "cluster", run: (*bench).cluster},
	{name: "large", run: (*bench).large, isLong: true},
	{name: "scale-events", run: (*bench).scaleEvents, isLong: true},
	{name: "scale-runs", run: (*bench).scaleRuns, isLong: true},
	{name: "scale-threads", run: (*bench).scaleThreads, isLong: true},
}

// Phases returns the names for Options.Phases, in the order in which the phases run.
func Phases() []string {
	names := make([]string, len(phases))
	for i, phase := range phases {
		names[i] = phase.name
	}
	return names
}

// bench is one run of the benchmark.
type bench struct {
	Options
	sizes  sizes
	corpus *corpus.Corpus
	peers  *peers.Process // nil if the peers are not measured
	folder string         // has the files that the peers read
	server *server
	report *Report
}

// sizes are the sizes of the measurements.
type sizes struct {
	appendFor                      time.Duration // of a slice; a round has appendSlices slices per side
	everydayThreads, everydayRuns  int
	shortThreads                   int // of one short run
	allTypesThreads, allTypesRuns  int
	growingRuns, growingState      int
	deltaRuns, branches            int
	historyRuns                    int           // runs of the thread whose history is read
	pageRuns                       int           // runs of the thread that is shown a page at a time
	textInTokens, textInLargePiece int           // characters in the threads of 50 runs
	threads, scopes                int           // in the lists of threads
	reads                          int           // reads of a thread per measurement
	liveFor, liveSlice             time.Duration // of runs in progress: at a fixed pace, and at full speed
	liveThreads, liveFollowers     int           // followed threads, and followers of each
	liveRuns                       int           // runs that one process records
	servedRuns, servedTokens       int           // runs through a server at once, and tokens of each
	servedIdle                     int           // followers of quiet threads
	turns                          int           // of a conversation whose history comes with each
	sizingThreads                  int           // conversations of ten such turns
	graphThreads, graphTurns       int           // threads of the checkpointers, and turns of each
	restRate                       float64       // reads per second over HTTP
	restFor                        time.Duration // of such reads
	slowReaders, slowAnswer        int           // clients that do not read, and the bytes of the answer

	conversations, conversationTurns     int // that stores of conversations are measured with
	movedThreads                         int // from one node of a cluster to another
	factThreads                          int // in a store whose conversations are asked all at once
	scaleEvents, scaleRuns, scaleThreads int

	largeEvents, smallEvents   int           // in the two stores of the phase large
	largeModels, largeVerified int           // threads that they are copied from; threads that are verified
	largeCalls, largeJobRuns   int           // calls a round, and runs for each job
	largePolled                int           // threads
	mixed                      time.Duration // of writes, reads and jobs at a fixed pace
}

var (
	fullSize = sizes{
		appendFor: 150 * time.Millisecond, everydayThreads: 16, everydayRuns: 10, shortThreads: 500, allTypesThreads: 16, allTypesRuns: 12,
		growingRuns: 290, growingState: 400_000, deltaRuns: 150, branches: 1000, historyRuns: 65, pageRuns: 1000, textInTokens: 67_000, textInLargePiece: 160_000, threads: 1_000_000, scopes: 10_000, reads: 20,
		liveFor: time.Second, liveSlice: 600 * time.Millisecond, liveThreads: 100, liveFollowers: 10, liveRuns: 300,
		servedRuns: 100, servedTokens: 100, servedIdle: 5000, turns: 200, sizingThreads: 1000,
		conversations: 40, conversationTurns: 50,
		graphThreads: 40, graphTurns: 10, restRate: 2000, restFor: 5 * time.Second, slowReaders: 200, slowAnswer: 12 << 20,
		scaleEvents: 2_000_000, scaleRuns: 20_000, scaleThreads: 200_000, factThreads: 100_000, movedThreads: 1000,
		largeEvents: 100_000_000, smallEvents: 1_000_000, largeModels: 500, largeVerified: 100, largeCalls: 80, largeJobRuns: 20, largePolled: 1000, mixed: time.Hour,
	}
	quickSize = sizes{
		appendFor: 5 * time.Millisecond, everydayThreads: 2, everydayRuns: 2, shortThreads: 3, allTypesThreads: 1, allTypesRuns: 3,
		growingRuns: 3, growingState: 5_000, deltaRuns: 3, branches: 3, historyRuns: 4, pageRuns: 5, textInTokens: 2_000, textInLargePiece: 4_000, threads: 2000, scopes: 20, reads: 2,
		liveFor: 60 * time.Millisecond, liveSlice: 10 * time.Millisecond, liveThreads: 3, liveFollowers: 2, liveRuns: 4,
		servedRuns: 2, servedTokens: 5, servedIdle: 10, turns: 10, sizingThreads: 3,
		conversations: 2, conversationTurns: 3,
		graphThreads: 2, graphTurns: 2, restRate: 200, restFor: 100 * time.Millisecond, slowReaders: 5, slowAnswer: 1 << 20,
		scaleEvents: 400, scaleRuns: 10, scaleThreads: 10, movedThreads: 20, factThreads: 50,
		largeEvents: 20_000, smallEvents: 10_000, largeModels: 20, largeVerified: 10, largeCalls: 8, largeJobRuns: 2, largePolled: 10, mixed: 2 * time.Second,
	}
)

// Run runs the benchmark and returns its report.
func Run(ctx context.Context, options Options) (report *Report, err error) {
	selected, err := selectPhases(options.Phases)
	if err != nil {
		return nil, err
	}
	if options.Repeat <= 0 {
		options.Repeat = 5
	}
	if options.Progress == nil {
		options.Progress = func(string) {}
	}
	b := &bench{Options: options, sizes: fullSize, report: &Report{Begun: time.Now(), Repeat: options.Repeat, Quick: options.Quick}}
	if options.Quick {
		b.sizes = quickSize
	}
	if b.server, err = openServer(ctx, options.DatabaseURL); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.server.close()) }()
	if b.report.Machine, err = b.server.machine(ctx); err != nil {
		return nil, err
	}
	b.Progress("collect text for the conversations")
	if b.corpus, err = corpus.Open(ctx); err != nil {
		return nil, err
	}
	if b.folder, err = os.MkdirTemp("", "pgagui-bench-"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.folder)) }()
	if options.Peers != "" {
		if b.peers, err = peers.Start(ctx, options.Peers); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, b.peers.Close()) }()
		b.report.Machine.Peers = b.peers.Versions
	}

	for _, phase := range selected {
		if err := phase.run(b, ctx); err != nil {
			return nil, fmt.Errorf("phase %s: %w", phase.name, err)
		}
	}
	b.report.Seconds = time.Since(b.report.Begun).Seconds()
	return b.report, nil
}

func selectPhases(names []string) ([]phase, error) {
	if len(names) == 0 {
		return slices.DeleteFunc(slices.Clone(phases), func(p phase) bool { return p.isLong }), nil
	}
	for _, name := range names {
		if !slices.Contains(Phases(), name) {
			return nil, fmt.Errorf("there is no phase %q (expected %s)", name, strings.Join(Phases(), ", "))
		}
	}
	var selected []phase
	for _, phase := range phases {
		if slices.Contains(names, phase.name) {
			selected = append(selected, phase)
		}
	}
	return selected, nil
}

// side is one side of a comparison.
type side struct {
	name string
	// measure does the work once and returns the figure.
	measure func(ctx context.Context) (float64, error)
}

// figures are the figures of each side, by name and round.
type figures map[string][]float64

// rounds measures all sides alternately, Repeat times after a warm-up round that does not count.
// Each round reverses the order, because the side that is measured second finds filled caches and
// garbage of the first.
func (b *bench) rounds(ctx context.Context, what string, sides ...side) (figures, error) {
	return b.slicedRounds(ctx, what, 1, sides...)
}

// slicedRounds measures each side in many short slices per round, and uses their mean. A
// disturbance of some seconds then affects both sides.
func (b *bench) slicedRounds(ctx context.Context, what string, slicesARound int, sides ...side) (figures, error) {
	measured := figures{}
	for round := range 1 + b.Repeat {
		b.Progress(fmt.Sprintf("%s, round %d of %d", what, round, b.Repeat))
		sums := map[string]float64{}
		for slice := range slicesARound {
			order := slices.Clone(sides)
			if (round+slice)%2 == 1 {
				slices.Reverse(order)
			}
			for _, side := range order {
				runtime.GC() // frees the garbage of the other side
				figure, err := side.measure(ctx)
				if err != nil {
					return nil, fmt.Errorf("%s: %s: %w", what, side.name, err)
				}
				sums[side.name] += figure
			}
		}
		if round == 0 {
			continue
		}
		for name, sum := range sums {
			measured[name] = append(measured[name], sum/float64(slicesARound))
		}
	}
	return measured, nil
}

// timed is a side measured in seconds.
func timed(name string, work func(ctx context.Context) error) side {
	return side{name, func(ctx context.Context) (float64, error) {
		begin := time.Now()
		err := work(ctx)
		return time.Since(begin).Seconds(), err
	}}
}

// reading is a side measured in seconds per read. The argument i of read counts from 0.
func (b *bench) reading(name string, read func(ctx context.Context, i int) error) side {
	return repeated(name, b.sizes.reads, read)
}

// repeated is a side measured in seconds per call. The argument i of call counts from 0.
func repeated(name string, calls int, call func(ctx context.Context, i int) error) side {
	all := timed(name, func(ctx context.Context) error {
		for i := range calls {
			if err := call(ctx, i); err != nil {
				return err
			}
		}
		return nil
	})
	return side{name, func(ctx context.Context) (float64, error) {
		seconds, err := all.measure(ctx)
		return seconds / float64(calls), err
	}}
}

// rates converts seconds for count items into items per second.
func rates(seconds []float64, count int) []float64 {
	values := make([]float64, len(seconds))
	for i := range seconds {
		values[i] = float64(count) / seconds[i]
	}
	return values
}

// inMilliseconds converts seconds into milliseconds.
func inMilliseconds(seconds []float64) []float64 {
	values := make([]float64, len(seconds))
	for i := range seconds {
		values[i] = 1000 * seconds[i]
	}
	return values
}
