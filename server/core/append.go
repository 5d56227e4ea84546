package core

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/rawjson"
	"github.com/pgagui/pgagui/server/door"
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
	return s.appends.Take(ctx, 0)
}

// admitSoon is Admit, but waits a while if too many appends are in progress: the runners of the
// platform do not retry.
func (s *Server) admitSoon(ctx context.Context) (release func(), err error) {
	return s.appends.Take(ctx, admitTimeout)
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
	Held *door.Holding
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
		var refused error
		if at := refusedAt(err, events); at > 0 {
			refused, events = inStream(err, events, count), events[:at]
			seq, err = s.Append(ctx, to, run, events, options) // what stands before it is good
		}
		for _, event := range batch {
			event.Held.Release()
		}
		if err != nil {
			return lastSeq, count, inStream(err, events, count)
		}
		lastSeq, count = seq, count+int64(len(events))
		if refused != nil {
			return lastSeq, count, refused
		}
		options.AfterSeq, options.ParentRunID, options.NoParent = &lastSeq, "", false
	}
	return lastSeq, count, nil
}

// refusedAt returns the index of the event for which a call was refused, -1 if it was for no single one.
func refusedAt(err error, events []json.RawMessage) int {
	refusal, ok := errors.AsType[*pgagui.Error](err)
	if !ok {
		return -1
	}
	if refusal.Event > 0 || !errors.Is(err, pgagui.ErrInvalidEvents) {
		return refusal.Event - 1
	}
	return slices.IndexFunc(events, func(event json.RawMessage) bool { return !json.Valid(event) })
}

// inStream says of a refusal how many events are stored, and where in the stream the event is that it names.
func inStream(err error, events []json.RawMessage, before int64) error {
	refusal, ok := errors.AsType[*pgagui.Error](err)
	if !ok {
		return err
	}
	at := refusedAt(err, events)
	located := *refusal
	stored := before + int64(max(at, 0))
	place := fmt.Sprintf("event %d of the stream", stored+1)
	if at < 0 || json.Valid(events[at]) {
		located.Message = strings.Replace(located.Message, fmt.Sprintf("event %d of the call", refusal.Event), place, 1)
	} else {
		located.Message = fmt.Sprintf("%s is not valid JSON: %v", place, rawjson.WhyInvalid(events[at]))
	}
	located.Message += fmt.Sprintf(" (events stored before it: %d)", stored)
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
