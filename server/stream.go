package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/server/internal/livefilter"
)

// place is a place in a stream, the id of a frame: the position of an event, and how the stream of
// its run began.
type place struct {
	pgagui.Position
	// base is the seq where the history ended that the client received of the run. 0: the client
	// received the events of the run from the first one.
	base int64
}

// String returns the place as text: the position, and a dot and the base unless it is 0.
func (p place) String() string {
	if p.base == 0 {
		return p.Position.String()
	}
	return p.Position.String() + "." + strconv.FormatInt(p.base, 10)
}

// readPlace reads what String writes.
func readPlace(text string) (p place, err error) {
	position, base, hasBase := strings.Cut(text, ".")
	if hasBase {
		p.base, err = strconv.ParseInt(base, 10, 64)
	}
	if err == nil {
		err = p.UnmarshalText([]byte(position))
	}
	if err != nil || p.base < 0 || p.base > p.Seq {
		return place{}, problemf(http.StatusBadRequest, "%.100q is not the id of an event of a stream", text)
	}
	return p, nil
}

// frame is a part of a stream: an event, a place alone, or a heartbeat.
type frame struct {
	place place           // zero: the event has none of its own
	event json.RawMessage // nil: a place alone, or a heartbeat
}

// stream sends a client the runs of a thread, one after the other: the history of a run as a
// snapshot, then its events as they are stored.
type stream struct {
	server   *Server
	from     tenant
	threadID string
	clients  livefilter.Clients
	// onlySeq makes the ids of its frames seqs alone, for the Events API. They do not name the base of
	// a place, so a client cannot resume this stream with them.
	onlySeq bool
	// goal is the run that comes next, after the rest of an earlier run of its lineage. Empty: none.
	goal string
	// isFixed ends the stream with its run, if it has no goal. Otherwise the head of the thread comes
	// next, if that is another run by then.
	isFixed bool
	// stays waits for later runs.
	stays bool
	// isAwaited is true if the run may not have begun yet. recorded is started.recorded.
	isAwaited bool
	recorded  <-chan struct{}

	runID    string          // the run that is sent; empty: none
	position pgagui.Position // of the last event that was examined
	base     int64           // see place
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
	sent := &stream{
		server: s, from: from, threadID: run.run.ThreadID, clients: run.clients, isFixed: true, isAwaited: true, recorded: run.recorded,
	}
	sent.enter(run.run.RunID)
	return sent
}

// connectOptions say what a client that connects to a thread receives.
type connectOptions struct {
	// runID is the run to connect to. If empty, the head, and then the heads that follow.
	runID string
	// after resumes behind an event: first comes the rest of the run of that event. If zero, or if
	// runID does not continue from that run, the client receives the history first.
	after place
	// stays waits for later runs.
	stays bool
	// clients are those that the stream must be valid for.
	clients livefilter.Clients
}

// clientsOf returns the versions of the official client that a stream must be valid for. protocol
// is the version that a client names. Those before 1.0.0 name none.
func clientsOf(protocol string) livefilter.Clients {
	if protocol == "" {
		return 0 // all
	}
	return livefilter.Client1
}

// connect reads the history of a thread, or the place to resume at.
func (s *Server) connect(ctx context.Context, from tenant, threadID string, options connectOptions) (*stream, error) {
	sent := &stream{server: s, from: from, threadID: threadID, clients: options.clients, isFixed: options.runID != "" && !options.stays, stays: options.stays}
	if options.after.Seq > 0 {
		way := routeOf(ctx)
		way.hasSeen(threadID, options.after.Seq)
		isFound, err := sent.resume(ctx, options.after, options.runID)
		if err == nil && !isFound && way.moveToPrimary() { // only the primary says that the log was rewound
			isFound, err = sent.resume(ctx, options.after, options.runID)
		}
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
	s.position, s.history, s.base = attached.Position, attached.Events, attached.Position.Seq
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
		s.filter = livefilter.New(run, s.clients)
		return
	}
	for _, event := range s.filter.Begin(run) {
		s.emit(frame{event: event})
	}
}

// resume makes the stream continue behind an event that the client has seen, and then with a run,
// unless runID is empty. It returns false if the log does not have that event.
func (s *stream) resume(ctx context.Context, after place, runID string) (isFound bool, err error) {
	page, err := s.from.History(ctx, s.threadID, pgagui.HistoryOptions{AfterSeq: after.Seq - 1, Limit: 1, Raw: true})
	if err != nil || len(page.Events) == 0 {
		return false, err
	}
	seen := page.Events[0]
	if seen.Seq != after.Seq || !after.RecordedAt.IsZero() && !after.RecordedAt.Equal(seen.CreatedAt) {
		return false, nil
	}
	if runID != "" && runID != seen.RunID {
		lineage, err := s.from.Lineage(ctx, pgagui.RunRef{ThreadID: s.threadID, RunID: runID})
		if err != nil {
			return false, err
		}
		if !slices.ContainsFunc(lineage, func(run pgagui.Run) bool { return run.ID == seen.RunID }) {
			return true, s.attach(ctx, runID)
		}
		s.goal = runID
	}
	s.position, s.base = after.Position, after.base
	s.enter(seen.RunID)
	return true, s.catchUp(ctx)
}

// catchUp gives the filter what the client has received of the run. A snapshot at the position is
// not enough: some messages are open for the client, and the snapshot has no trace of them.
func (s *stream) catchUp(ctx context.Context) error {
	if s.base > 0 {
		attached, err := s.from.Attach(ctx, s.threadID, pgagui.AttachOptions{At: pgagui.At{RunID: s.runID, Seq: s.base}})
		if err != nil {
			return err
		}
		for _, event := range attached.Events {
			s.filter.Push(event)
		}
	}
	for event, err := range s.from.Events(ctx, s.threadID, pgagui.EventsOptions{RunID: s.runID, NoLineage: true, AfterSeq: s.base}) {
		if err != nil {
			return err
		}
		if event.Seq > s.position.Seq {
			break
		}
		s.filter.Push(event.JSON)
	}
	if s.filter.Holding() { // the client has the end of the run: only that frame has its position
		s.filter.End("")
	}
	return nil
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
		if err := s.serveRun(ctx); err != nil || s.isLeft || s.isFixed && s.goal == "" {
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
	if err := s.sendHistory(ctx); err != nil {
		return err
	}
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
				s.pass(event.JSON, true)
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
			ending.place = s.place()
		}
		s.emit(ending)
	}
	s.flush()
	return nil
}

// sendHistory sends the history of a run. It is large, and the client may be slow.
func (s *stream) sendHistory(ctx context.Context) error {
	size := 0
	for _, event := range s.history {
		size += len(event)
	}
	held := s.server.memory.hold(ctx)
	if err := held.resize(size); err != nil {
		return err
	}
	defer held.release()
	for i, event := range s.history {
		s.pass(event, i == len(s.history)-1)
	}
	s.history = nil
	if size > smallSize {
		s.flush()
	}
	return nil
}

// pass sends an event through the filter. While the filter holds the end of the run, frames have no
// place: a client that resumes there would miss the end.
func (s *stream) pass(event json.RawMessage, hasPlace bool) {
	before, sent := s.filter.Push(event)
	for _, added := range before {
		s.emit(frame{event: added})
	}
	var at place
	if hasPlace && !s.filter.Holding() {
		at = s.place()
	}
	if sent != nil || at.Seq > 0 {
		s.emit(frame{at, sent})
	}
}

// place is the place behind the last event that was examined.
func (s *stream) place() place { return place{s.position, s.base} }

func (s *stream) emit(f frame) { s.isLeft = s.isLeft || !s.to.write(f) }

func (s *stream) flush() { s.isLeft = s.isLeft || !s.to.flush() }

// next waits for the run that follows, if there is one, and makes the stream continue with it.
func (s *stream) next(ctx context.Context) (found bool, err error) {
	if goal := s.goal; goal != "" {
		s.goal = ""
		return true, s.attach(ctx, goal)
	}
	seen := s.position
	way := routeOf(ctx)
	way.hasSeen(s.threadID, seen.Seq)
	for {
		isPending, head, err := s.ahead(ctx, s.from.onPrimary())
		if refused := (*pgagui.Error)(nil); err != nil && !errors.As(err, &refused) && ctx.Err() == nil && !way.isOnPrimary() {
			isPending, head, err = s.ahead(ctx, s.from.Store) // the primary is away: nothing is new there
		}
		switch {
		case errors.Is(err, pgagui.ErrUnknownThread) && (s.runID == "" || s.stays):
		case err != nil:
			return false, err
		case head.RunID != s.runID:
			// With its history, although the client may have most of it: the input of the run is not
			// in its events.
			isOnAnotherBranch := s.runID != "" && head.ParentRunID != s.runID
			if err := s.attach(ctx, head.RunID); err != nil {
				return false, err
			}
			if isOnAnotherBranch && s.clients == livefilter.Client1 {
				s.history = replacing(s.history)
			}
			return true, nil
		}
		if !isPending {
			return false, nil
		}
		if seen, err = s.wait(ctx, seen); err != nil || s.isLeft {
			return false, err
		}
	}
}

// ahead returns whether later runs may come, and the head. The primary says so: a stream that ends
// cleanly says that nothing is in progress.
func (s *stream) ahead(ctx context.Context, from *pgagui.Store) (isPending bool, head *pgagui.RunStatus, err error) {
	isPending = s.stays
	if !isPending { // before the status: the claim ends when the run begins
		claims, err := from.Claims(ctx, s.threadID)
		if err != nil {
			return false, nil, err
		}
		isPending = len(claims) > 0
	}
	head, err = from.Status(ctx, pgagui.RunRef{ThreadID: s.threadID})
	return isPending, head, err
}

// replacing returns a history after which the client has nothing of another branch. A list of
// messages replaces the thoughts and the activities of the client only if it has some itself. So two
// lists come first in which a thought, then an activity, takes the place of the first message.
// (0.0.59 would keep these: no event removes thoughts and activities there.)
func replacing(history []json.RawMessage) []json.RawMessage {
	for i, event := range history {
		if compaction.EventType(event) != "MESSAGES_SNAPSHOT" {
			continue
		}
		var list struct{ Messages []struct{ ID string } }
		if json.Unmarshal(event, &list) != nil || len(list.Messages) == 0 {
			break
		}
		id, _ := json.Marshal(list.Messages[0].ID)
		return slices.Insert(history, i,
			json.RawMessage(fmt.Sprintf(`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":%s,"role":"reasoning","content":""}]}`, id)),
			json.RawMessage(fmt.Sprintf(`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":%s,"role":"activity","activityType":"none","content":{}}]}`, id)))
	}
	return history
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
