package crash

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
)

// followerTask is what a follower has to do: follow threads, each with several readers, from where their predecessors were.
type followerTask struct {
	URL     string   `json:"url"`
	Readers []reader `json:"readers"`
}

func (t followerTask) databaseURL() string { return t.URL }

// reader is one of those who follow a thread.
type reader struct {
	Thread string `json:"thread"`
	// Slow readers take their time, so that they read from the database what the others got live.
	Slow  bool            `json:"slow"`
	After pgagui.Position `json:"after"`
}

// followerLine is what a follower prints: an event that a reader got, or that there is none.
type followerLine struct {
	Reader int `json:"reader"`
	sighting
	// Rewound says that the reader was told that the log was rewound, and begins again.
	Rewound bool `json:"rewound,omitempty"`
	// Problem is what must not happen.
	Problem string `json:"problem,omitempty"`
}

// sighting is an event as it was seen.
type sighting struct {
	Seq        int64     `json:"seq"`
	RecordedAt time.Time `json:"recordedAt"`
	Run        string    `json:"run"`
	Digest     uint64    `json:"digest"`
}

func (s sighting) position() pgagui.Position {
	return pgagui.Position{Seq: s.Seq, RecordedAt: s.RecordedAt}
}

func see(runID string, position pgagui.Position, payload []byte) sighting {
	digest := fnv.New64a()
	_, _ = digest.Write(payload)
	return sighting{Seq: position.Seq, RecordedAt: position.RecordedAt, Run: runID, Digest: digest.Sum64()}
}

func (s sighting) equal(other sighting) bool {
	return s.Seq == other.Seq && s.RecordedAt.Equal(other.RecordedAt) && s.Run == other.Run && s.Digest == other.Digest
}

func follow(task followerTask, pool *pgxpool.Pool, stage *stage) error {
	store := pgagui.New(pool, nil)
	var readers sync.WaitGroup
	for i, reader := range task.Readers {
		readers.Go(func() {
			for stage.finish.Err() == nil {
				err := reader.follow(store, stage, i)
				if !errors.Is(err, pgagui.ErrLogRewound) {
					if !errors.Is(err, context.Canceled) {
						stage.print(followerLine{Reader: i, Problem: fmt.Sprint("the iteration ended: ", err)})
					}
					return
				}
				reader.After = pgagui.Position{}
				stage.print(followerLine{Reader: i, Rewound: true})
			}
		})
	}
	readers.Wait()
	return nil
}

// follow prints what it sees until it is time to finish, or an error ends it.
func (r reader) follow(store *pgagui.Store, stage *stage, number int) error {
	for event, err := range store.Follow(stage.finish, r.Thread, pgagui.FollowOptions{After: r.After, Stay: true}) {
		if err != nil {
			return err
		}
		stage.print(followerLine{Reader: number, sighting: see(event.RunID, event.Position(), event.JSON)})
		if r.Slow && rand.IntN(20) == 0 {
			stage.pause(rand.N(500 * time.Millisecond))
		}
	}
	return nil
}
