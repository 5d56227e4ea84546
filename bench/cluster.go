package bench

import (
	"context"
	"fmt"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/bench/corpus"
	"github.com/pgagui/pgagui/cluster"
)

// cluster measures what a call costs on a node of a cluster, beside the same call in an ordinary
// database, and how fast threads move from one node to another.
func (b *bench) cluster(ctx context.Context) error {
	bodies := b.bodies()
	ordinary, err := b.server.create(ctx, 1)
	if err != nil {
		return err
	}
	var nodes []*database
	var described []cluster.Node
	for _, name := range []string{"a", "b"} {
		node, err := b.server.create(ctx, 1)
		if err != nil {
			return err
		}
		address, err := b.server.urlOf(node.name)
		if err != nil {
			return err
		}
		nodes, described = append(nodes, node), append(described, cluster.Node{Name: name, URL: address})
	}
	c, err := cluster.Open(ctx, described)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Init(ctx); err != nil {
		return err
	}

	threads := make([]corpus.Conversation, b.sizes.movedThreads)
	for i := range threads {
		threads[i] = b.corpus.Everyday(uint64(i), 2)
	}
	for _, to := range []*database{ordinary, nodes[0]} {
		if err := to.load(ctx, 20, threads...); err != nil {
			return err
		}
	}
	reading := func(name string, from *database) side {
		return b.reading(name, func(ctx context.Context, i int) error {
			_, err := from.store.Messages(ctx, threads[i%len(threads)].ThreadID, pgagui.At{})
			return err
		})
	}
	measured, err := b.rounds(ctx, "cluster: read", reading("node", nodes[0]), reading("ordinary", ordinary))
	if err != nil {
		return err
	}
	b.report.add(Measurement{
		Phase: "cluster", What: "messages of a thread of two runs, on a node, beside an ordinary database", Unit: "ms",
		Ours: Side{Name: "node"}, Against: Side{Name: "ordinary"},
	}, inMilliseconds(measured["node"]), inMilliseconds(measured["ordinary"]))

	b.Progress("cluster: move")
	buckets := make([]int, cluster.Buckets)
	for i := range buckets {
		buckets[i] = i
	}
	var rates, pauses []float64
	for _, to := range []string{"b", "a", "b", "a"} {
		moved, err := c.Move(ctx, buckets, to, cluster.MoveOptions{})
		if err != nil {
			return err
		}
		rates = append(rates, float64(moved.Threads)/moved.Duration.Seconds())
		pauses = append(pauses, moved.LongestPause.Seconds()*1000)
	}
	b.report.Figures = append(b.report.Figures,
		Figure{Phase: "cluster", What: "threads of two runs moved to another node, with all buckets", Unit: "threads/s", Values: rates, Spread: SpreadOf(rates)},
		Figure{Phase: "cluster", What: "the longest time that one of them was on neither node", Unit: "ms", Values: pauses, Spread: SpreadOf(pauses)})

	for _, batch := range []int{1, 100} {
		measured, err := b.rounds(ctx, fmt.Sprintf("cluster: append of %d events", batch),
			b.appending("node", nodes[0], newStreams(1, batch, bodies)), b.appending("ordinary", ordinary, newStreams(1, batch, bodies)))
		if err != nil {
			return err
		}
		b.report.add(Measurement{
			Phase: "cluster", What: fmt.Sprintf("append of %d events on a node, beside an ordinary database", batch), Unit: "events/s",
			Ours: Side{Name: "node"}, Against: Side{Name: "ordinary"},
		}, measured["node"], measured["ordinary"])
	}

	return nil
}
