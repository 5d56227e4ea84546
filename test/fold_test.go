package test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/compaction/compactiontest"
	"github.com/pgagui/pgagui/internal/testdb"
)

// kindsOfStreams are the generated streams that all reducers must agree on.
var kindsOfStreams = map[string]struct {
	options compactiontest.Options
	// clientReads says that the client folds such streams too, so that it can be the judge.
	clientReads bool
}{
	"valid":             {compactiontest.Options{}, true},
	"valid, long":       {compactiontest.Options{Events: 400}, true},
	"wild":              {compactiontest.Options{Wild: true}, true},
	"wild, odd JSON":    {compactiontest.Options{Wild: true, Unicode: true, Numbers: true}, false},
	"wild, malformed":   {compactiontest.Options{Wild: true, Malformed: true, RefusedChunks: true, Proposals: true, Unicode: true}, false},
	"valid, other ways": {compactiontest.Options{Proposals: true, Unicode: true, Numbers: true}, false},
}

const streamsOfAKind = 100

// The reducer in SQL and the one in Go make the same of every stream, and so does the official client of those that it reads.
func TestReducersAgree(t *testing.T) {
	t.Parallel()
	for name, kind := range kindsOfStreams {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			var client *oracle
			if kind.clientReads {
				client = startOracle(t)
			}
			for seed := range uint64(streamsOfAKind) {
				stream := compactiontest.Stream(seed, kind.options)
				inGo := foldInGo(t, stream)
				if difference := differences(foldInSQL(t, pool, seed, stream), inGo); difference != "" {
					t.Errorf("seed %d: SQL against Go: %s", seed, difference)
				}
				if client == nil {
					continue
				}
				if folded := client.fold(t, stream); folded.Error == "" {
					if difference := differences(inGo, folded); difference != "" {
						t.Errorf("seed %d: Go against the client: %s", seed, difference)
					}
				}
			}
		})
	}
}

func foldInGo(t *testing.T, stream []json.RawMessage) meaning {
	t.Helper()
	fold := compaction.New()
	for _, event := range stream {
		fold.Apply(event)
	}
	return meaningOf(t, fold)
}

func meaningOf(t *testing.T, fold *compaction.Fold) meaning {
	t.Helper()
	folded := meaning{State: fold.State()}
	for _, message := range fold.Messages() {
		folded.Messages = append(folded.Messages, message.Body())
	}
	if err := json.Unmarshal(fold.Interrupts(), &folded.Interrupts); err != nil {
		t.Fatal(err)
	}
	return folded
}

// foldInSQL puts the stream into the log as one run, past agui.append, which would refuse some, and restores it.
func foldInSQL(t *testing.T, pool *pgxpool.Pool, seed uint64, stream []json.RawMessage) meaning {
	t.Helper()
	ctx := context.Background()
	thread := fmt.Sprint("seed-", seed)
	_, err := pool.Exec(ctx, `
		with thread as (
			insert into agui.thread (thread_key, scope, thread_id) values (agui.thread_key('', $1), '', $1) returning thread_key
		)
		insert into agui.run (thread_key, run_no, run_id, status, first_seq, last_seq, started_at, ended_at)
		select thread_key, 1, 'r', 'finished', 1, $2, now(), now() from thread`, thread, len(stream))
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(seed, 2))
	for first := 0; first < len(stream); {
		n := min(1+random.IntN(20), len(stream)-first)
		_, err := pool.Exec(ctx, `
			insert into agui.batch (thread_key, first_seq, recorded_at, n, run_no, events)
			values (agui.thread_key('', $1), $2, now(), $3, 1, $4)`,
			thread, first+1, n, json.RawMessage(compactiontest.Batch(stream[first:first+n])))
		if err != nil {
			t.Fatal(err)
		}
		first += n
	}
	return restore(t, pgagui.New(pool, nil), thread, pgagui.At{})
}

func restore(t *testing.T, store *pgagui.Store, threadID string, at pgagui.At) meaning {
	t.Helper()
	restored, err := store.Restore(context.Background(), threadID, at)
	if err != nil {
		t.Fatalf("restore %s: %v", threadID, err)
	}
	return meaning{Messages: restored.Messages, State: restored.State, Interrupts: restored.Interrupts}
}
