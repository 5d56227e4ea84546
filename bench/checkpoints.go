package bench

import (
	"context"
	"fmt"
)

// checkpoints compares the checkpointer of LangGraph on pgagui with LangGraph's own for PostgreSQL:
// the bytes that the same conversations take, and the time to read the newest checkpoint.
func (b *bench) checkpoints(ctx context.Context) error {
	if b.peers == nil {
		return nil
	}
	for _, kind := range []struct {
		what   string
		deltas bool
		words  int // of each message of a growing list that is put; 0: a graph
		bytes  *Target
	}{
		{what: "puts of a growing list, messages of 80 words", words: 80, bytes: atMost("G1", 0.25)},
		{what: "puts of a growing list, messages of 250 words", words: 250, bytes: atMost("G1", 0.25)},
		{what: "a graph"},
		{what: "a graph with a DeltaChannel", deltas: true, bytes: atMost("G1", 1.1)},
	} {
		what := fmt.Sprintf("%s, %d checkpoints", kind.what, 5*b.sizes.graphTurns)
		const ours, theirs = "pgagui", "langgraph"
		bytes, sides, databases := map[string]float64{}, []side{}, []*database{}
		for _, saver := range []string{ours, theirs} {
			database, err := b.server.create(ctx, 1)
			if err != nil {
				return err
			}
			address, err := database.url()
			if err != nil {
				return err
			}
			b.Progress(fmt.Sprintf("checkpoints: %s, %s", what, saver))
			var stored struct {
				Bytes       float64
				Checkpoints int
			}
			if err := b.peers.Do(ctx, map[string]any{
				"do": "checkpoints.put", "url": address, "saver": saver, "puts": kind.words > 0, "words": kind.words, "deltas": kind.deltas,
				"threads": b.sizes.graphThreads, "turns": b.sizes.graphTurns, // 5 checkpoints each
			}, &stored); err != nil {
				return err
			}
			bytes[saver] = stored.Bytes / float64(stored.Checkpoints)
			sides = append(sides, side{saver, func(ctx context.Context) (float64, error) {
				var answer struct{ Seconds []float64 }
				err := b.peers.Do(ctx, map[string]any{
					"do": "checkpoints.getTuple", "url": address, "saver": saver, "threads": b.sizes.graphThreads, "times": b.sizes.reads,
				}, &answer)
				if err != nil {
					return 0, err
				}
				return SpreadOf(answer.Seconds).Median, nil
			}})
			databases = append(databases, database)
		}
		b.report.add(Measurement{
			Phase: "checkpoints", What: what + ", on disk", Unit: "bytes/checkpoint",
			Ours: Side{Name: ours}, Against: Side{Name: "LangGraph's checkpointer"}, Target: kind.bytes,
		}, []float64{bytes[ours]}, []float64{bytes[theirs]})
		measured, err := b.slicedRounds(ctx, "checkpoints: "+what, 8, sides...)
		if err != nil {
			return err
		}
		b.report.add(Measurement{
			Phase: "checkpoints", What: what + ", getTuple", Unit: "ms",
			Ours: Side{Name: ours}, Against: Side{Name: "LangGraph's checkpointer"},
		}, inMilliseconds(measured[ours]), inMilliseconds(measured[theirs]))
		for _, database := range databases {
			if err := database.drop(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}
