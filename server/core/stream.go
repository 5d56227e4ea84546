package core

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/internal/panics"
	"github.com/pgagui/pgagui/server/accept"
	"github.com/pgagui/pgagui/server/access"
	"github.com/pgagui/pgagui/server/door"
	"github.com/pgagui/pgagui/server/internal/jsontext"
	"github.com/pgagui/pgagui/server/problem"
)

// Place is a place in a stream, the id of a frame: the position of an event, and how the stream of
// its run began.
type Place struct {
	pgagui.Position
	// base is the seq where the history ended that the client received of the run. 0: the client
	// received the events of the run from the first one.
	base int64
}

// String returns the place as text: the position, and a dot and the base unless it is 0.
func (p Place) String() string { return string(p.Append(nil)) }

// Append appends what String returns.
func (p Place) Append(text []byte) []byte {
	text, _ = p.AppendText(text)
	if p.base != 0 {
		text = append(text, '.')
		text = strconv.AppendInt(text, p.base, 10)
	}
	return text
}

// ReadPlace reads what String writes.
func ReadPlace(text string) (p Place, err error) {
	position, base, hasBase := strings.Cut(text, ".")
	if hasBase {
		p.base, err = strconv.ParseInt(base, 10, 64)
	}
	if err == nil {
		err = p.UnmarshalText([]byte(position))
	}
	if err != nil || p.base < 0 || p.base > p.Seq {
		return Place{}, problem.Errorf(http.StatusUnprocessableEntity, "%.100q is not the id of an event of a stream", text)
	}
	return p, nil
}

// Frame is a part of a stream: an event, a place alone, or a heartbeat.
type Frame struct {
	Place Place           // zero: the event has none of its own
	ID    string          // of an event that is in no thread, in place of Place
	Event json.RawMessage // nil: a place alone, or a heartbeat
}

// Stream sends a client the runs of a thread, one after the other: the history of a run as a
// snapshot, then its events as they are stored.
type Stream struct {
	server   *Server
	from     Tenant
	ThreadID string
	clients  accept.Clients
	// goal is the run that comes next, after the rest of an earlier run of its lineage. Empty: none.
	goal string
	// isFixed ends the stream with its run, if it has no goal. Otherwise the head of the thread comes
	// next, if that is another run by then.
	isFixed bool
	// stays waits for later runs.
	stays bool
	// isAwaited is true if the run may not have begun yet. recorded is Started.recorded.
	isAwaited bool
	recorded  <-chan struct{}
	// lacksHistory is Started.LacksHistory, until the client has it.
	lacksHistory bool

	runID    string          // the run that is sent; empty: none
	position pgagui.Position // of the last event that was examined
	base     int64           // see place
	history  []json.RawMessage
	nextPart int                 // behind history. 0: none
	custom   pgagui.CustomEvents // see ConnectOptions
	isOver   bool                // the run had ended at the position
	filter   *accept.Filter
	thinking compaction.Thinking
	event    json.RawMessage // that the filter takes, and its seq
	seq      int64
	folded   *foldedRun // nil: no event of the run is in doubt

	to     Frames
	isLeft bool
}

// Frames receives a stream. Both methods return false if it takes no more.
type Frames interface {
	// Write takes a frame, and may keep it until Flush.
	Write(Frame) bool
	Flush() bool
}

// The causes of the end of a stream.
var (
	// ErrExpired means that the client must reconnect with a new token.
	ErrExpired error = problem.Errorf(http.StatusUnauthorized, "the token has expired or was withdrawn")
	// ErrShutdown means that the server shuts down. New runs end with it, too.
	ErrShutdown error = problem.Errorf(http.StatusServiceUnavailable, "the server shuts down")

	errUnrecorded = errors.New("the run could not be recorded")
	errClaimEnded = errors.New("the process that accepted the run is gone: repeat the request")
)

const (
	// claimInterval is how often the server checks whether a run has begun that another request has
	// been accepted for.
	claimInterval = 500 * time.Millisecond
	// endTimeout bounds how long a stream continues after this process has recorded its run.
	endTimeout = 30 * time.Second
	// recheckInterval is how often the token of a stream is checked at least.
	recheckInterval = 30 * time.Second
)

// StreamContext returns the context of a stream, which ends with the server and with the token of
// the client. The context's cause says why it ended.
func (s *Server) StreamContext(request context.Context) (_ context.Context, end func()) {
	s.metrics.streams.Inc()
	ctx, cancel := context.WithCancelCause(request)
	stopWaiting := context.AfterFunc(s.streaming, panics.Task(s.Options.Logger, func() { cancel(ErrShutdown) }, nil))
	stopWatching := s.watchToken(ctx, cancel)
	return ctx, sync.OnceFunc(func() {
		s.metrics.streams.Dec()
		stopWatching()
		stopWaiting()
		cancel(nil)
	})
}

// watchToken cancels the context of a stream when the token of its client is not valid any more. stop ends the watch.
func (s *Server) watchToken(ctx context.Context, cancel context.CancelCauseFunc) (stop func() bool) {
	who, _ := access.IdentityFrom(ctx)
	pause := func() time.Duration {
		most := min(s.Options.Heartbeat, recheckInterval)
		if who.Expires.IsZero() {
			return most
		}
		return min(most, time.Until(who.Expires))
	}
	// Not a goroutine, with which an idle stream would take 3 KB more.
	var timer *time.Timer
	timer = time.AfterFunc(math.MaxInt64, panics.Task(s.Options.Logger, func() {
		hasExpired := !who.Expires.IsZero() && !time.Now().Before(who.Expires)
		switch {
		case ctx.Err() != nil:
		case hasExpired || access.Recheck(ctx) != nil:
			cancel(ErrExpired)
		default:
			timer.Reset(pause())
		}
	}, cancel))
	timer.Reset(pause())
	return timer.Stop
}

// RunStream returns the stream of a run that a client started: its events from the first one. A client that does not have the
// conversation before gets the history up to the first event in its place, or it would show its question before what is older.
func (s *Server) RunStream(from Tenant, run *Started) *Stream {
	sent := &Stream{
		server: s, from: from, ThreadID: run.Run.ThreadID, clients: run.clients, isFixed: true, isAwaited: true, recorded: run.recorded,
		lacksHistory: run.LacksHistory,
	}
	sent.enter(run.Run.RunID)
	return sent
}

// ConnectOptions say what a client that connects to a thread receives.
type ConnectOptions struct {
	// RunID is the run to connect to. If empty, the head, and then the heads that follow.
	RunID string
	// After resumes behind an event: first comes the rest of the run of that event. If zero, or if
	// RunID does not continue from that run, the client receives the history first.
	After Place
	// Stays waits for later runs.
	Stays bool
	// Custom says of which runs the history repeats the CUSTOM events. Those of the run if empty.
	Custom pgagui.CustomEvents
	// Clients are those that the stream must be valid for.
	Clients accept.Clients
}

// ClientsOf returns the versions of the official client that a stream must be valid for. protocol
// is the version that a client names. Those before 1.0.0 name none.
func ClientsOf(protocol string) accept.Clients {
	if protocol == "" {
		return 0 // all
	}
	return accept.Client1
}

// Connect reads the history of a thread, or the place to resume at.
func (s *Server) Connect(ctx context.Context, from Tenant, threadID string, options ConnectOptions) (*Stream, error) {
	sent := &Stream{server: s, from: from, ThreadID: threadID, clients: options.Clients, isFixed: options.RunID != "" && !options.Stays, stays: options.Stays, custom: options.Custom}
	if options.After.Seq > 0 {
		way := routeOf(ctx)
		way.hasSeen(threadID, options.After.Seq)
		isFound, err := sent.resume(ctx, options.After, options.RunID)
		if err == nil && !isFound && way.moveToPrimary() { // only the primary says that the log was rewound
			isFound, err = sent.resume(ctx, options.After, options.RunID)
		}
		if err != nil || isFound {
			return sent, err
		}
		s.metrics.rewound.Inc() // what the client has seen is not in the log: it receives what is
	}
	return sent, sent.attach(ctx, options.RunID)
}

// attach makes the stream continue with the history of a run, or of the head.
func (s *Stream) attach(ctx context.Context, runID string) error {
	attached, err := s.from.AttachPart(ctx, s.ThreadID, pgagui.PartOptions{At: pgagui.At{RunID: runID}, Custom: s.custom})
	if err != nil {
		return err
	}
	s.take(attached)
	if s.nextPart > 0 && s.clients == accept.Client1 {
		s.history = s.replacing(s.history) // the list of the first part has not all kinds of messages
	}
	s.isOver = attached.Status != pgagui.Running
	s.enter(attached.RunID)
	return nil
}

func (s *Stream) take(attached *pgagui.Attachment) {
	s.position, s.base = attached.Position, attached.Position.Seq
	s.history, s.nextPart = attached.Events, attached.NextPart
}

// begin sends the history up to the first event of the run, in place of that event. A list of messages puts what the client does not
// have behind what it has, so its own messages go first.
func (s *Stream) begin(ctx context.Context, first pgagui.Event) error {
	s.lacksHistory = false
	routeOf(ctx).hasSeen(s.ThreadID, first.Seq)
	s.base = first.Seq
	attached, err := s.part(ctx, 1)
	if err != nil {
		return err
	}
	s.take(attached)
	s.history = s.replacing(s.history)
	if err := s.sendHistory(ctx); err != nil {
		return err
	}
	if first.Type == "RUN_ERROR" {
		s.pass(s.examine(first.JSON, first.Seq), true)
	}
	return nil
}

// enter prepares the filter for the events of a run.
func (s *Stream) enter(runID string) {
	run := accept.Run{ThreadID: s.ThreadID, RunID: runID}
	s.forget()
	s.runID, s.thinking = runID, compaction.Thinking{}
	switch {
	case runID == "": // the thread has no run yet
		return
	case s.filter == nil:
		s.filter = accept.New(run, s.clients)
		return
	}
	for _, event := range s.filter.Begin(run) {
		s.emit(Frame{Event: event})
	}
}

// resume makes the stream continue behind an event that the client has seen, and then with a run,
// unless runID is empty. It returns false if the log does not have that event.
func (s *Stream) resume(ctx context.Context, after Place, runID string) (isFound bool, err error) {
	page, err := s.from.History(ctx, s.ThreadID, pgagui.HistoryOptions{AfterSeq: after.Seq - 1, Limit: 1, Raw: true})
	if err != nil || len(page.Events) == 0 {
		return false, err
	}
	seen := page.Events[0]
	if seen.Seq != after.Seq || !after.RecordedAt.IsZero() && !after.RecordedAt.Equal(seen.CreatedAt) {
		return false, nil
	}
	if runID != "" && runID != seen.RunID {
		shared, err := s.from.MergeBase(ctx, s.ThreadID, pgagui.RunPair{A: seen.RunID, B: runID})
		if err != nil && !errors.Is(err, pgagui.ErrUnrelatedRuns) {
			return false, err
		}
		if shared != seen.RunID {
			return true, s.attach(ctx, runID)
		}
		s.goal = runID
	}
	s.position, s.base = after.Position, after.base
	s.enter(seen.RunID)
	if err := s.catchUp(ctx); err != nil {
		s.forget()
		return true, err
	}
	return true, nil
}

// catchUp gives the filter what the client has received of the run. A snapshot at the position is
// not enough: some messages are open for the client, and the snapshot has no trace of them.
func (s *Stream) catchUp(ctx context.Context) error {
	s.consult(ctx)
	if s.base > 0 {
		for part := 1; part > 0; {
			attached, err := s.part(ctx, part)
			if err != nil {
				return err
			}
			for _, event := range attached.Events {
				if s.position.Seq == s.base || compaction.EventType(event) != "RUN_ERROR" { // see sendHistory
					s.filter.Push(s.examine(event, 0))
				}
			}
			part = attached.NextPart
		}
	}
	for event, err := range s.from.Events(ctx, s.ThreadID, pgagui.EventsOptions{RunID: s.runID, NoLineage: true, AfterSeq: s.base}) {
		if err != nil {
			return err
		}
		if event.Seq > s.position.Seq {
			break
		}
		s.filter.Push(s.examine(event.JSON, event.Seq))
	}
	if s.filter.Holding() { // the client has the end of the run: only that frame has its position
		s.filter.End("")
	}
	return nil
}

// Serve sends the stream until it ends, ctx ends or the receiver takes no more. After an error the
// client must not take the stream for complete.
func (s *Stream) Serve(ctx context.Context, to Frames) error {
	defer s.server.metrics.filter(s)
	defer s.forget()
	if err := s.serve(ctx, to); err != nil {
		return fmt.Errorf("run %q: %w", s.runID, err)
	}
	return nil
}

func (s *Stream) serve(ctx context.Context, to Frames) error {
	s.to = to
	if s.isAwaited {
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
		go panics.Task(s.server.Options.Logger, func() { s.watch(ctx, cancel) }, cancel)()
	}
	for {
		if err := s.serveRun(ctx); err != nil || s.isLeft || s.isFixed && s.goal == "" {
			if cause := context.Cause(ctx); err != nil && cause != nil {
				return cause
			}
			return err
		}
		if next, err := s.next(ctx); err != nil || !next {
			if err == nil && s.runID == "" { // a stream without a frame may also be one that broke off
				s.emit(Frame{})
				s.flush()
			}
			return err
		}
	}
}

// serveRun sends the history and the rest of a run.
func (s *Stream) serveRun(ctx context.Context) error {
	if s.runID == "" {
		return nil
	}
	s.consult(ctx)
	if err := s.sendHistory(ctx); err != nil {
		return err
	}
	if !s.isOver {
		options := pgagui.FollowOptions{
			RunID: s.runID, NoLineage: true, After: s.position, Stay: s.isAwaited, Heartbeat: s.server.Options.Heartbeat, OnIdle: s.flush,
		}
		for event, err := range s.from.Follow(ctx, s.ThreadID, options) {
			switch {
			case err != nil:
				return err
			case event.IsHeartbeat():
				s.emit(Frame{})
			default:
				s.position = event.Position()
				if s.lacksHistory {
					if err := s.begin(ctx, event); err != nil {
						return err
					}
					continue
				}
				s.pass(s.examine(event.JSON, event.Seq), true)
			}
			if s.isLeft {
				return nil
			}
		}
	}
	ends := s.filter.End("the run ended without RUN_FINISHED or RUN_ERROR")
	for i, event := range ends {
		ending := Frame{Event: event}
		if i == len(ends)-1 {
			ending.Place = s.place()
		}
		s.emit(ending)
	}
	s.flush()
	return nil
}

// sendHistory sends the history of a run, one part after the other: it may be larger than the memory
// of the server, and the client may be slow.
func (s *Stream) sendHistory(ctx context.Context) error {
	held := s.server.Memory.Hold(ctx)
	defer held.Release()
	wait := func(size int) error { return held.Wait(ctx, size) }
	admit := held.Resize
	if s.isAwaited { // the run has begun
		admit = wait
	}
	for {
		size := 0
		for _, event := range s.history {
			size += len(event)
		}
		if err := admit(size); err != nil {
			return err
		}
		for i, event := range s.history {
			isLast := s.nextPart == 0 && i == len(s.history)-1
			if isLast && compaction.EventType(event) == "RUN_ERROR" { // the client lacks what is too large for it
				if s.isAwaited { // the run goes on
					continue
				}
				s.isOver = true
			}
			s.pass(s.examine(event, 0), isLast)
		}
		s.history = nil
		if size > door.SmallSize {
			s.flush()
		}
		held.Release()
		if s.nextPart == 0 || s.isLeft {
			return nil
		}
		attached, err := s.part(ctx, s.nextPart)
		if err != nil {
			return err
		}
		s.history, s.nextPart = attached.Events, attached.NextPart
		admit = wait // the client has received something
	}
}

// part returns a part of the history of the run, up to the base.
func (s *Stream) part(ctx context.Context, part int) (*pgagui.Attachment, error) {
	return s.from.AttachPart(ctx, s.ThreadID, pgagui.PartOptions{At: pgagui.At{RunID: s.runID, Seq: s.base}, Part: part, Custom: s.custom})
}

// pass sends an event through the filter. While the filter holds the end of the run, frames have no
// place: a client that resumes there would miss the end.
func (s *Stream) pass(event json.RawMessage, hasPlace bool) {
	before, sent := s.filter.Push(event)
	for _, added := range before {
		s.emit(Frame{Event: added})
	}
	var at Place
	if hasPlace && !s.filter.Holding() {
		at = s.place()
	}
	if sent != nil || at.Seq > 0 {
		s.emit(Frame{Place: at, Event: sent})
	}
}

// place is the place behind the last event that was examined.
func (s *Stream) place() Place { return Place{s.position, s.base} }

func (s *Stream) emit(f Frame) { s.isLeft = s.isLeft || !s.to.Write(f) }

func (s *Stream) flush() { s.isLeft = s.isLeft || !s.to.Flush() }

// next waits for the run that follows, if there is one, and makes the stream continue with it.
func (s *Stream) next(ctx context.Context) (found bool, err error) {
	if goal := s.goal; goal != "" {
		s.goal = ""
		return true, s.attach(ctx, goal)
	}
	seen := s.position
	way := routeOf(ctx)
	way.hasSeen(s.ThreadID, seen.Seq)
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
			if isOnAnotherBranch && s.clients == accept.Client1 {
				s.history = s.replacing(s.history)
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
func (s *Stream) ahead(ctx context.Context, from *pgagui.Store) (isPending bool, head *pgagui.RunStatus, err error) {
	isPending = s.stays
	if !isPending { // before the status: the claim ends when the run begins
		claims, err := from.Claims(ctx, s.ThreadID)
		if err != nil {
			return false, nil, err
		}
		isPending = len(claims) > 0
	}
	head, err = from.Status(ctx, pgagui.RunRef{ThreadID: s.ThreadID})
	return isPending, head, err
}

// replacing returns a history after which the client has nothing else, and what it has in the stored order. A list of messages removes
// what it does not name, and puts what is new behind the rest. So a list comes first that has the first message alone. It replaces the
// thoughts and the activities of the client only if it has some itself. So for 1.0.0 there are two, in which a thought, then an
// activity, takes the place of that message. (0.0.59 would keep these: no event removes thoughts and activities there.)
func (s *Stream) replacing(history []json.RawMessage) []json.RawMessage {
	for i, event := range history {
		if compaction.EventType(event) != "MESSAGES_SNAPSHOT" {
			continue
		}
		var list struct{ Messages []json.RawMessage }
		if json.Unmarshal(event, &list) != nil || len(list.Messages) == 0 {
			break
		}
		if s.clients != accept.Client1 {
			return slices.Insert(history, i, json.RawMessage(fmt.Sprintf(`{"type":"MESSAGES_SNAPSHOT","messages":[%s]}`, list.Messages[0])))
		}
		id := jsontext.Quote(readMessage(list.Messages[0]).id)
		return slices.Insert(history, i,
			json.RawMessage(fmt.Sprintf(`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":%s,"role":"reasoning","content":""}]}`, id)),
			json.RawMessage(fmt.Sprintf(`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":%s,"role":"activity","activityType":"none","content":{}}]}`, id)))
	}
	return history
}

// wait waits for an event behind a position, and returns its position. Without stays it waits for
// claimInterval at most.
func (s *Stream) wait(ctx context.Context, seen pgagui.Position) (pgagui.Position, error) {
	if !s.stays {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, claimInterval, errNothingYet)
		defer cancel()
	}
	options := pgagui.FollowOptions{After: seen, Stay: true, Heartbeat: s.server.Options.Heartbeat, OnIdle: s.flush}
	for event, err := range s.from.Follow(ctx, s.ThreadID, options) {
		switch {
		case err != nil && errors.Is(context.Cause(ctx), errNothingYet):
			return seen, nil
		case err != nil:
			return seen, err
		case !event.IsHeartbeat():
			return event.Position(), nil
		}
		if s.emit(Frame{}); s.isLeft {
			return seen, nil
		}
	}
	return seen, nil
}

var errNothingYet = errors.New("nothing was appended yet")

// watch ends a stream whose run does not begin, or whose end cannot be recorded.
func (s *Stream) watch(ctx context.Context, cancel context.CancelCauseFunc) {
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
	run := pgagui.RunRef{ThreadID: s.ThreadID, RunID: s.runID}
	for {
		// In this order: the claim ends when the run begins.
		claims, err := s.from.Claims(ctx, s.ThreadID)
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
