package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
)

// bareTable has one row per event and nothing but the primary key.
const bareTable = `create table bare (thread_id text, seq bigint, payload json, primary key (thread_id, seq))`

func (b *bench) append(ctx context.Context) error {
	const writers = 8
	database, err := b.server.create(ctx, writers)
	if err != nil {
		return err
	}
	if _, err := database.Exec(ctx, plainTable+";"+bareTable); err != nil {
		return err
	}

	bodies, taken := b.bodies(), cpuOf(database)
	ours := func(writers, batch int) side {
		return taken.rate(b.appending("pgagui", database, newStreams(writers, batch, bodies)))
	}
	plain := func(writers, batch int) side {
		streams, insert := newStreams(writers, batch, bodies), insertPlain(batch)
		return taken.rate(side{"plain table", func(ctx context.Context) (float64, error) {
			return appendRate(ctx, b.sizes.appendFor, streams, func(ctx context.Context, s *stream, call call) error {
				arguments := make([]any, 0, plainColumns*batch)
				for i, event := range call.events {
					arguments = append(arguments, s.threadID, call.runID, call.firstSeq+int64(i), call.types[i], []byte(event))
				}
				_, err := database.Exec(ctx, insert, arguments...)
				return err
			})
		}})
	}
	bare := func(writers int) side {
		streams := newStreams(writers, 1, bodies)
		return taken.rate(side{"bare insert", func(ctx context.Context) (float64, error) {
			return appendRate(ctx, b.sizes.appendFor, streams, func(ctx context.Context, s *stream, call call) error {
				_, err := database.Exec(ctx, "insert into bare (thread_id, seq, payload) values ($1, $2, $3)",
					s.threadID, call.firstSeq, []byte(call.events[0]))
				return err
			})
		}})
	}

	for _, comparison := range []struct {
		what          string
		ours, against side
		rate, cpu     *Target
	}{
		{"append 100 events a call, 8 writers", ours(writers, 100), plain(writers, 100), atLeast("1", 2), atMost("1", 0.75)},
		{"append 1 event a commit, 1 writer", ours(1, 1), bare(1), atLeast("2", 0.65), atMost("2", 2)},
		{"append 1 event a commit, 8 writers", ours(writers, 1), bare(writers), atLeast("2", 0.55), atMost("2", 2)},
	} {
		measured, err := b.slicedRounds(ctx, comparison.what, appendSlices, comparison.ours, comparison.against)
		if err != nil {
			return err
		}
		m := Measurement{
			Phase: "append", What: comparison.what, Unit: "events/s",
			Ours: Side{Name: comparison.ours.name}, Against: Side{Name: comparison.against.name}, Target: comparison.rate,
		}
		b.report.add(m, measured[comparison.ours.name], measured[comparison.against.name])
		m.Target = comparison.cpu
		taken.add(b.report, m, appendSlices)
		clear(taken.taken)
	}
	return database.drop(ctx)
}

// appending is a side that appends to a pgagui database, in events per second.
func (b *bench) appending(name string, database *database, streams []*stream) side {
	return side{name, func(ctx context.Context) (float64, error) {
		return appendRate(ctx, b.sizes.appendFor, streams, func(ctx context.Context, s *stream, call call) error {
			_, err := database.store.Append(ctx, pgagui.RunRef{ThreadID: s.threadID, RunID: call.runID}, call.events, pgagui.AppendOptions{})
			return err
		})
	}}
}

// appendRate writes all streams concurrently for the duration, and returns the committed events per
// second.
func appendRate(ctx context.Context, duration time.Duration, streams []*stream, write func(context.Context, *stream, call) error) (float64, error) {
	begin := time.Now()
	counts := make([]int, len(streams))
	group, ctx := errgroup.WithContext(ctx)
	for i, stream := range streams {
		group.Go(func() error {
			for time.Since(begin) < duration {
				call := stream.next()
				if err := write(ctx, stream, call); err != nil {
					return err
				}
				counts[i] += len(call.events)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	total := 0
	for _, count := range counts {
		total += count
	}
	return float64(total) / time.Since(begin).Seconds(), nil
}

// stream is a thread of one writer: runs of 1,000 everyday events, in calls of the same size.
type stream struct {
	threadID string
	body     body
	batch    int

	written int64 // events
	runs    int
}

// body has the events that the runs of a stream repeat.
type body struct {
	events []json.RawMessage
	types  []string
}

type call struct {
	runID    string
	firstSeq int64
	body
}

const (
	eventsPerRun = 1000
	appendSlices = 10
)

// bodies returns the events of some everyday conversations.
func (b *bench) bodies() []body {
	var bodies []body
	for _, conversation := range b.everyday() {
		var events body
		for _, run := range conversation.Runs {
			for _, event := range run.Events[1 : len(run.Events)-1] {
				events.events = append(events.events, event)
				events.types = append(events.types, compaction.EventType(event))
			}
		}
		bodies = append(bodies, events)
	}
	return bodies
}

// newStreams creates one stream per writer. Both sides of a comparison get the same streams.
func newStreams(writers, batch int, bodies []body) []*stream {
	streams := make([]*stream, writers)
	for i := range streams {
		streams[i] = &stream{threadID: fmt.Sprintf("thread_%024d_%d_%d", i, writers, batch), body: bodies[i%len(bodies)], batch: batch}
	}
	return streams
}

func (s *stream) next() call {
	inRun := s.written % eventsPerRun
	if inRun == 0 {
		s.runs++
	}
	next := call{
		runID: fmt.Sprintf("%s-run-%d", s.threadID, s.runs), firstSeq: s.written + 1,
		body: body{make([]json.RawMessage, s.batch), make([]string, s.batch)},
	}
	for i := range next.events {
		at := (s.written + int64(i)) % int64(len(s.body.events))
		next.events[i], next.types[i] = s.body.events[at], s.body.types[at]
	}
	setBoundary := func(i int, eventType string) {
		next.types[i] = eventType
		next.events[i] = fmt.Appendf(nil, `{"type":%q,"threadId":%q,"runId":%q}`, eventType, s.threadID, next.runID)
	}
	if inRun == 0 {
		setBoundary(0, "RUN_STARTED")
	}
	if inRun+int64(s.batch) == eventsPerRun {
		setBoundary(s.batch-1, "RUN_FINISHED")
	}
	s.written += int64(s.batch)
	return next
}
