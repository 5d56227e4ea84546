package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/server/internal/livefilter"
)

// frame is a part of a stream: an event, a position alone, or a heartbeat.
type frame struct {
	position pgagui.Position // zero: the event has none of its own
	event    json.RawMessage // nil: a position alone, or a heartbeat
}

// stream sends a client the runs of a thread, one after the other: the history of a run as a
// snapshot, then its events as they are stored.
type stream struct {
	server   *Server
	from     tenant
	threadID string
	// isFixed ends the stream with its run. Otherwise the head of the thread comes next, if that is
	// another run by then.
	isFixed bool
	// stays waits for later runs.
	stays bool
	// isAwaited says that the run may not have begun, and recorded is started.recorded.
	isAwaited bool
	recorded  <-chan struct{}

	runID    string          // the run that is sent; empty: none
	position pgagui.Position // of the last event that was examined
	history  []json.RawMessage
	isOver   bool // the run had ended at the position
	filter   *livefilter.Filter

	to     frames
	isLeft bool
}

// frames receives a stream. Both methods return false if it takes no more.
type frames interface {
	// write takes a frame, and may keep it until flush.
	write(frame) bool
	flush() bool
}

var (
	errUnrecorded = errors.New("the run could not be recorded")
	errClaimEnded = errors.New("the process that accepted the run is gone: repeat the request")
)

const (
	// claimInterval is how often the server checks whether a run has begun that another request has
	// been accepted for.
	claimInterval = 500 * time.Millisecond
	// endTimeout bounds how long a stream continues after this process has recorded its run.
	endTimeout = 30 * time.Second
)

// runStream returns the stream of a run that a client started: its events from the first one.
func (s *Server) runStream(from tenant, run *started) *stream {
	return &stream{
		server: s, from: from, threadID: run.run.ThreadID, runID: run.run.RunID, isFixed: true, isAwaited: true, recorded: run.recorded,
		filter: livefilter.New(livefilter.Run{ThreadID: run.run.ThreadID, RunID: run.run.RunID}, 0),
	}
}

// connectOptions say what a client that connects to a thread receives.
type connectOptions struct {
	// runID is the run to connect to. If empty, the head, and then the heads that follow.
	runID string
	// after resumes behind an event. If zero, the client receives the history first.
	after pgagui.Position
	// stays waits for later runs.
	stays bool
}

// connect reads the history of a thread, or the place to resume at.
func (s *Server) connect(ctx context.Context, from tenant, threadID string, options connectOptions) (*stream, error) {
	sent := &stream{server: s, from: from, threadID: threadID, isFixed: options.runID != "" && !options.stays, stays: options.stays}
	if options.after.Seq > 0 {
		isFound, err := sent.resume(ctx, options.after)
		if err != nil || isFound {
			return sent, err
		}
		s.metrics.rewound.Inc() // what the client has seen is not in the log: it receives what is
	}
	return sent, sent.attach(ctx, options.runID)
}

// attach makes the stream continue with the history of a run, or of the head.
func (s *stream) attach(ctx context.Context, runID string) error {
	attached, err := s.from.Attach(ctx, s.threadID, pgagui.AttachOptions{At: pgagui.At{RunID: runID}})
	if err != nil {
		return err
	}
	s.position, s.history = attached.Position, attached.Events
	s.isOver = attached.Status != pgagui.Running
	s.enter(attached.RunID)
	return nil
}

// enter prepares the filter for the events of a run.
func (s *stream) enter(runID string) {
	run := livefilter.Run{ThreadID: s.threadID, RunID: runID}
	s.runID = runID
	switch {
	case runID == "": // the thread has no run yet
		return
	case s.filter == nil:
		s.filter = livefilter.New(run, 0)
		return
	}
	for _, event := range s.filter.Begin(run) {
		s.emit(frame{event: event})
	}
}

// resume makes the stream continue behind an event that the client has seen. It returns false if
// the log does not have that event.
func (s *stream) resume(ctx context.Context, after pgagui.Position) (isFound bool, err error) {
	page, err := s.from.History(ctx, s.threadID, pgagui.HistoryOptions{AfterSeq: after.Seq - 1, Limit: 1, Raw: true})
	if err != nil || len(page.Events) == 0 {
		return false, err
	}
	seen := page.Events[0]
	if seen.Seq != after.Seq || !after.RecordedAt.IsZero() && !after.RecordedAt.Equal(seen.CreatedAt) {
		return false, nil
	}
	// The filter must know what is open there.
	attached, err := s.from.Attach(ctx, s.threadID, pgagui.AttachOptions{At: pgagui.At{RunID: seen.RunID, Seq: after.Seq}})
	if err != nil {
		return false, err
	}
	s.position = after
	s.enter(seen.RunID)
	for _, event := range attached.Events {
		s.filter.Push(event)
	}
	if s.filter.Holding() { // the client has the end of the run: only that frame has its position
		s.filter.End("")
	}
	return true, nil
}

// serve sends the stream until it ends, ctx ends or the receiver takes no more. After an error the
// client must not take the stream for complete.
func (s *stream) serve(ctx context.Context, to frames) error {
	s.to = to
	if s.isAwaited {
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
		go s.watch(ctx, cancel)
	}
	for {
		if err := s.serveRun(ctx); err != nil || s.isLeft || s.isFixed {
			if cause := context.Cause(ctx); err != nil && cause != nil {
				return cause
			}
			return err
		}
		if next, err := s.next(ctx); err != nil || !next {
			return err
		}
	}
}

// serveRun sends the history and the rest of a run.
func (s *stream) serveRun(ctx context.Context) error {
	if s.runID == "" {
		return nil
	}
	for i, event := range s.history {
		var position pgagui.Position
		if i == len(s.history)-1 {
			position = s.position
		}
		s.pass(event, position)
	}
	s.history = nil
	if !s.isOver {
		options := pgagui.FollowOptions{
			RunID: s.runID, NoLineage: true, After: s.position, Stay: s.isAwaited, Heartbeat: s.server.options.Heartbeat, OnIdle: s.flush,
		}
		for event, err := range s.from.Follow(ctx, s.threadID, options) {
			switch {
			case err != nil:
				return err
			case event.IsHeartbeat():
				s.emit(frame{})
			default:
				s.position = event.Position()
				s.pass(event.JSON, s.position)
			}
			if s.isLeft {
				return nil
			}
		}
	}
	ends := s.filter.End("the run ended without RUN_FINISHED or RUN_ERROR")
	for i, event := range ends {
		ending := frame{event: event}
		if i == len(ends)-1 {
			ending.position = s.position
		}
		s.emit(ending)
	}
	s.flush()
	return nil
}

// pass sends an event through the filter. While the filter holds the end of the run, frames have no
// position: a client that resumes there would miss the end.
func (s *stream) pass(event json.RawMessage, position pgagui.Position) {
	before, sent := s.filter.Push(event)
	for _, added := range before {
		s.emit(frame{event: added})
	}
	if s.filter.Holding() {
		position = pgagui.Position{}
	}
	switch {
	case sent != nil:
		s.emit(frame{position, sent})
	case position.Seq > 0:
		s.emit(frame{position: position})
	}
}

func (s *stream) emit(f frame) { s.isLeft = s.isLeft || !s.to.write(f) }

func (s *stream) flush() { s.isLeft = s.isLeft || !s.to.flush() }

// next waits for the run that follows, if there is one, and makes the stream continue with it.
func (s *stream) next(ctx context.Context) (found bool, err error) {
	seen := s.position
	for {
		isPending := s.stays
		if !isPending { // before the status: the claim ends when the run begins
			claims, err := s.from.Claims(ctx, s.threadID)
			if err != nil {
				return false, err
			}
			isPending = len(claims) > 0
		}
		head, err := s.from.Status(ctx, pgagui.RunRef{ThreadID: s.threadID})
		switch {
		case errors.Is(err, pgagui.ErrUnknownThread) && (s.runID == "" || s.stays):
		case err != nil:
			return false, err
		case head.RunID != s.runID:
			// With its history, although the client may have most of it: the input of the run is not
			// in its events.
			return true, s.attach(ctx, head.RunID)
		}
		if !isPending {
			return false, nil
		}
		if seen, err = s.wait(ctx, seen); err != nil || s.isLeft {
			return false, err
		}
	}
}

// wait waits for an event behind a position, and returns its position. Without stays it waits for
// claimInterval at most.
func (s *stream) wait(ctx context.Context, seen pgagui.Position) (pgagui.Position, error) {
	if !s.stays {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, claimInterval, errNothingYet)
		defer cancel()
	}
	options := pgagui.FollowOptions{After: seen, Stay: true, Heartbeat: s.server.options.Heartbeat, OnIdle: s.flush}
	for event, err := range s.from.Follow(ctx, s.threadID, options) {
		switch {
		case err != nil && errors.Is(context.Cause(ctx), errNothingYet):
			return seen, nil
		case err != nil:
			return seen, err
		case !event.IsHeartbeat():
			return event.Position(), nil
		}
		if s.emit(frame{}); s.isLeft {
			return seen, nil
		}
	}
	return seen, nil
}

var errNothingYet = errors.New("nothing was appended yet")

// watch ends a stream whose run does not begin, or whose end cannot be recorded.
func (s *stream) watch(ctx context.Context, cancel context.CancelCauseFunc) {
	if s.recorded != nil {
		select {
		case <-s.recorded:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(endTimeout):
			cancel(errUnrecorded)
		case <-ctx.Done():
		}
		return
	}
	run := pgagui.RunRef{ThreadID: s.threadID, RunID: s.runID}
	for {
		// In this order: the claim ends when the run begins.
		claims, err := s.from.Claims(ctx, s.threadID)
		if err == nil && !slices.ContainsFunc(claims, func(claim pgagui.Claim) bool { return claim.Run.RunID == s.runID }) {
			_, err = s.from.Status(ctx, run)
			if err == nil {
				return // Follow ends with it
			}
			if errors.Is(err, pgagui.ErrNotFound) {
				cancel(errClaimEnded)
				return
			}
		}
		if err != nil {
			cancel(fmt.Errorf("run %q: %w", s.runID, err))
			return
		}
		select {
		case <-time.After(claimInterval):
		case <-ctx.Done():
			return
		}
	}
}
