package cluster_test

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/compaction/compactiontest"
	"github.com/pgagui/pgagui/internal/testdb"
)

var differentialThreads = flag.Int("threads", 12, "how many generated threads are compared")

// generatedThread is a thread of a few runs, whose events come in batches of any borders.
type generatedThread struct {
	scope, id string
	batches   []generatedBatch
}

type generatedBatch struct {
	run, parent string
	events      []json.RawMessage
}

func generateThread(n int, options compactiontest.Options) generatedThread {
	random := rand.New(rand.NewPCG(uint64(n), 34))
	thread := generatedThread{scope: []string{"", "it's"}[n%2], id: fmt.Sprint("thread ", n)}
	for run := range 2 + random.IntN(4) {
		batch := generatedBatch{run: fmt.Sprint("run ", run)}
		if run > 0 && random.IntN(5) > 0 {
			batch.parent = fmt.Sprint("run ", random.IntN(run))
		}
		events := slices.DeleteFunc(compactiontest.Stream(uint64(n)<<8+uint64(run), options), func(event json.RawMessage) bool {
			return slices.Contains([]string{"", "RUN_STARTED", "RUN_FINISHED", "RUN_ERROR"}, compaction.EventType(event)) // append refuses most of them
		})
		end := []string{`{"type":"RUN_FINISHED"}`, `{"type":"RUN_FINISHED"}`, `{"type":"RUN_ERROR","message":"broken"}`}[random.IntN(3)]
		events = slices.Concat([]json.RawMessage{json.RawMessage(`{"type":"RUN_STARTED"}`)}, events, []json.RawMessage{json.RawMessage(end)})
		for len(events) > 0 {
			size := min(1+random.IntN(30), len(events))
			batch.events, events = events[:size], events[size:]
			thread.batches = append(thread.batches, batch)
			batch.parent = ""
		}
	}
	return thread
}

// What generated threads mean does not depend on where they are: one database, nodes that a Store calls, and nodes behind a front say the
// same of each, also after jobs and moves, and refuse the same.
func TestGeneratedThreadsMeanTheSameInACluster(t *testing.T) {
	t.Parallel()
	plain := testdb.Pool(t)
	direct, fronted := newThree(t, nil), newThree(t, nil)
	direct.rebalance()
	fronted.rebalance()
	front := fronted.newFront()
	stores := map[string]*pgagui.Store{"one database": pgagui.New(plain, nil)}
	var list []pgagui.Node
	for _, node := range direct.nodes {
		list = append(list, pgagui.Node{Name: node.Name, Pool: direct.pools[node.Name]})
	}
	stores["a cluster"] = pgagui.NewCluster(list, nil)
	kinds := []compactiontest.Options{
		{}, {Events: 200}, {Proposals: true, Unicode: true, Numbers: true}, {Wild: true}, {Broken: true},
		{Wild: true, Malformed: true, RefusedChunks: true, Proposals: true, Unicode: true},
	}
	var threads []generatedThread
	for n := range *differentialThreads {
		threads = append(threads, generateThread(n, kinds[n%len(kinds)]))
	}
	stored, refused := 0, 0
	store := func(part func([]generatedBatch) []generatedBatch) {
		for _, thread := range threads {
			for _, batch := range part(thread.batches) {
				said := map[string]string{"a front": appended(t, front, thread, batch)}
				for name, store := range stores {
					last, err := store.InScope(thread.scope).Append(t.Context(), pgagui.RunRef{ThreadID: thread.id, RunID: batch.run}, batch.events,
						pgagui.AppendOptions{ParentRunID: batch.parent, Parallel: true})
					said[name] = fmt.Sprint(last, " ", cmp.Or(testdb.State(err), fmt.Sprint(err)))
				}
				if strings.HasSuffix(said["one database"], "<nil>") {
					stored++
				} else {
					refused++
				}
				if want := said["one database"]; said["a front"] != want || said["a cluster"] != want {
					t.Fatalf("%s, a batch of %s: %v", thread.id, batch.run, said)
				}
			}
		}
	}
	store(func(all []generatedBatch) []generatedBatch { return all[:len(all)/2] })
	// Only some nodes fold, and then half of their threads move, with and without snapshots.
	testdb.Exec(t, direct.pools["a"], `call agui.compact()`)
	testdb.Exec(t, fronted.pools["b"], `call agui.compact()`)
	for _, c := range []*three{direct, fronted} {
		for to, buckets := range map[string][]int{"b": bucketsFrom(0, 170), "c": bucketsFrom(341, 510), "a": bucketsFrom(682, 850)} {
			c.mustMove(buckets, to)
		}
	}
	store(func(all []generatedBatch) []generatedBatch { return all[len(all)/2:] })
	testdb.Exec(t, plain, `call agui.compact()`)

	if stored < 10*refused {
		t.Errorf("%d batches were stored, %d refused", stored, refused)
	}

	compared := 0
	for _, thread := range threads {
		node := testdb.Ask[string](t, direct.pools["a"], `select agui_internal.node_of(agui.thread_key($1, $2))`, thread.scope, thread.id)
		quoted := strings.NewReplacer("THREAD", thread.id, "SCOPE", strings.ReplaceAll(thread.scope, "'", "''"))
		for _, read := range []string{
			"agui.runs('THREAD', scope => 'SCOPE')", "agui.events('THREAD', scope => 'SCOPE')", "agui.history('THREAD', scope => 'SCOPE')",
			"agui.interrupts('THREAD', scope => 'SCOPE')", "agui.tool_calls('THREAD', scope => 'SCOPE')", "agui.subagents('THREAD', scope => 'SCOPE')",
			"agui.usage('THREAD', scope => 'SCOPE')", "agui.branches('THREAD', scope => 'SCOPE')", "agui.attachments('THREAD', scope => 'SCOPE')",
		} {
			call := quoted.Replace(read)
			want := maskedTimes(answer(t, plain, call))
			if !strings.HasPrefix(want, "[") {
				t.Fatalf("%s: %s", call, want)
			}
			for where, pool := range map[string]*pgxpool.Pool{"node " + node: direct.pools[node], "the front": front} {
				if got := maskedTimes(answer(t, pool, call)); got != want {
					t.Errorf("%s: %s:\n%s\non one database:\n%s", where, call, got, want)
				}
				compared++
			}
		}
		runs := []string{""}
		for _, batch := range thread.batches {
			if !slices.Contains(runs, batch.run) {
				runs = append(runs, batch.run)
			}
		}
		for _, run := range runs {
			want := restored(t.Context(), stores["one database"], thread, run)
			if got := restored(t.Context(), stores["a cluster"], thread, run); got != want {
				t.Errorf("%s %s: the cluster restores\n%s\none database\n%s", thread.id, run, got, want)
			}
			call := quoted.Replace("agui.restore('THREAD', nullif('" + run + "', ''), scope => 'SCOPE')")
			if got, want := answer(t, front, call), answer(t, plain, call); maskedTimes(got) != maskedTimes(want) {
				t.Errorf("the front: %s:\n%s\none database:\n%s", call, got, want)
			}
			compared += 2
		}
	}
	direct.checkPlaces()
	fronted.checkPlaces()
	if least := 20 * len(threads); compared < least {
		t.Errorf("only %d comparisons, want %d", compared, least)
	}
}

// bucketsFrom are the buckets from one to another, which is not among them.
func bucketsFrom(from, to int) (list []int) {
	for bucket := from; bucket < to; bucket++ {
		list = append(list, bucket)
	}
	return list
}

// appended is what a front says to a batch.
func appended(t *testing.T, front *pgxpool.Pool, thread generatedThread, batch generatedBatch) string {
	var parent *string
	if batch.parent != "" {
		parent = &batch.parent
	}
	var last int64
	err := front.QueryRow(t.Context(), `select agui.append($1, $2, $3, parent_run_id => $4, parallel => true, scope => $5)`, pgx.QueryExecModeExec,
		thread.id, batch.run, string(compactiontest.Batch(batch.events)), parent, thread.scope).Scan(&last)
	return fmt.Sprint(last, " ", cmp.Or(testdb.State(err), fmt.Sprint(err)))
}

// restored is what a Store restores of a run as JSON, or its error.
func restored(ctx context.Context, store *pgagui.Store, thread generatedThread, run string) string {
	snapshot, err := store.InScope(thread.scope).Restore(ctx, thread.id, pgagui.At{RunID: run})
	if err != nil {
		return err.Error()
	}
	text, err := json.Marshal(snapshot)
	if err != nil {
		return err.Error()
	}
	return maskedTimes(string(text))
}
