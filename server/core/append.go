package core

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/pgagui/pgagui"
)

const (
	// admitTimeout bounds how long a push waits for others.
	admitTimeout = 5 * time.Second
	// maxStreamedBatch bounds what is appended of a stream in one call, in bytes.
	maxStreamedBatch = 1 << 20
)

// Admit counts an append until release is called. Call it when the body of the request has arrived: a
// slow client does not stop the appends of others.
func (s *Server) Admit(ctx context.Context) (release func(), err error) {
	return s.appends.take(ctx, 0)
}

// admitSoon is Admit, but waits a while if too many appends are in progress: the runners of the
// platform do not retry.
func (s *Server) admitSoon(ctx context.Context) (release func(), err error) {
	return s.appends.take(ctx, admitTimeout)
}

// Append appends events to a run. Followers in this process get them at once.
func (s *Server) Append(
	ctx context.Context, to Tenant, run pgagui.RunRef, events []json.RawMessage, options pgagui.AppendOptions,
) (lastSeq int64, err error) {
	lastSeq, err = to.Append(ctx, run, events, options)
	if err == nil {
		to.Wake(run.ThreadID)
	}
	return lastSeq, err
}

// Arrival is an event of a stream that is appended, with the memory that it takes.
type Arrival struct {
	JSON json.RawMessage
	Held *Holding
}

// AppendStream appends events as they arrive, until there are no more.
func (s *Server) AppendStream(
	ctx context.Context, to Tenant, run pgagui.RunRef, arrived <-chan Arrival, options pgagui.AppendOptions,
) (lastSeq, count int64, err error) {
	for batch := range batches(ctx, arrived) {
		events := make([]json.RawMessage, len(batch))
		for i, event := range batch {
			events[i] = event.JSON
		}
		seq, err := s.Append(ctx, to, run, events, options)
		for _, event := range batch {
			event.Held.Release()
		}
		if err != nil {
			return lastSeq, count, inStream(err, events, count)
		}
		lastSeq, count = seq, count+int64(len(batch))
		options.AfterSeq, options.ParentRunID, options.NoParent = &lastSeq, "", false
	}
	return lastSeq, count, nil
}

// inStream says of events that were refused where in the stream they are, behind those that are stored.
func inStream(err error, events []json.RawMessage, stored int64) error {
	var refusal *pgagui.Error
	if !errors.Is(err, pgagui.ErrInvalidEvents) || !errors.As(err, &refusal) {
		return err
	}
	located := *refusal
	if i := slices.IndexFunc(events, func(event json.RawMessage) bool { return !json.Valid(event) }); i >= 0 {
		located.Message = fmt.Sprintf("event %d of the stream is not valid JSON", stored+int64(i)+1)
	} else if stored > 0 {
		located.Message += fmt.Sprintf(" (the call began behind event %d of the stream)", stored)
	}
	return &located
}

// batches joins what has arrived at the same time, until there is no more or ctx ends.
func batches(ctx context.Context, arrived <-chan Arrival) iter.Seq[[]Arrival] {
	return func(yield func([]Arrival) bool) {
		for {
			var batch []Arrival
			select {
			case first, isOpen := <-arrived:
				if !isOpen {
					return
				}
				batch = append(batch, first)
			case <-ctx.Done():
				return
			}
			for size := len(batch[0].JSON); size < maxStreamedBatch && len(arrived) > 0; {
				event := <-arrived
				batch, size = append(batch, event), size+len(event.JSON)
			}
			if !yield(batch) {
				return
			}
		}
	}
}
