package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"mime"
	"net/http"
	"time"

	"github.com/tmaxmax/go-sse"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/events"
)

// appendBody is a call of append as its writer sends it.
type appendBody struct {
	Events      []json.RawMessage
	AfterSeq    *int64
	ParentRunID *string // empty: the run is a root
	Input       json.RawMessage
	Parallel    bool
}

// check reports what the database would not.
func (b *appendBody) check() error {
	switch {
	case b.Events == nil:
		return problemf(http.StatusBadRequest, "the list of events is missing")
	case b.AfterSeq != nil && *b.AfterSeq < 0:
		return problemf(http.StatusBadRequest, "afterSeq is %d (expected the last seq of the run that the writer has seen, 0 for a new run)", *b.AfterSeq)
	case orNil(b.Input) != nil && !isObject(b.Input):
		return problemf(http.StatusBadRequest, "input is no object")
	}
	return nil
}

func (b *appendBody) parent() (id string, isRoot bool) {
	if b.ParentRunID == nil {
		return "", false
	}
	return *b.ParentRunID, *b.ParentRunID == ""
}

// orNil returns nil for a null.
func orNil(text json.RawMessage) json.RawMessage {
	if string(text) == "null" {
		return nil
	}
	return text
}

// admit counts an append until release is called. If too many are in progress, the writer retries
// later: it would only wait for the same connections of the database.
func (s *Server) admit() (release func(), err error) {
	select {
	case s.appends <- struct{}{}:
		return func() { <-s.appends }, nil
	default:
		return nil, problemf(http.StatusTooManyRequests, "too many appends are in progress: retry with the same after_seq")
	}
}

// postEvents appends events to a run, for writers in any language. The body is a JSON object, or a
// stream of events, which is appended as it arrives.
func (s *Server) postEvents(w http.ResponseWriter, r *http.Request) error {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch media {
	case "text/event-stream":
		return s.postStream(w, r, sseEvents)
	case "application/x-ndjson":
		return s.postStream(w, r, lineEvents)
	}
	release, err := s.admit()
	if err != nil {
		return err
	}
	defer release()
	var body struct {
		appendBody
		Strict bool
	}
	if err := errors.Join(queryOf(r).check(), readObject(r, &body)); err != nil {
		return err
	}
	if err := body.check(); err != nil {
		return err
	}
	options := pgagui.AppendOptions{AfterSeq: body.AfterSeq, Input: orNil(body.Input), Parallel: body.Parallel, Strict: body.Strict}
	options.ParentRunID, options.NoParent = body.parent()
	seq, err := s.append(r.Context(), s.tenantOf(r), runOf(r), body.Events, options)
	if err != nil {
		return err
	}
	return answer(w, appended{LastSeq: seq})
}

// appended is the answer to an append.
type appended struct {
	LastSeq int64 `json:"lastSeq,omitempty"`
	// Error says why one of several appends was refused.
	Error *problem `json:"error,omitempty"`
}

// append appends events to a run. Followers in this process get them at once.
func (s *Server) append(
	ctx context.Context, to tenant, run pgagui.RunRef, events []json.RawMessage, options pgagui.AppendOptions,
) (lastSeq int64, err error) {
	lastSeq, err = to.Append(ctx, run, events, options)
	if err == nil {
		to.Wake(run.ThreadID)
	}
	return lastSeq, err
}

// postAppend appends to several runs in one commit. Each call names the last seq of its run that the
// writer has seen, so that the request can be retried.
func (s *Server) postAppend(w http.ResponseWriter, r *http.Request) error {
	release, err := s.admit()
	if err != nil {
		return err
	}
	defer release()
	var body struct {
		Appends []struct {
			appendBody
			ThreadID, RunID string
		}
		Strict bool
	}
	if err := errors.Join(queryOf(r).check(), readObject(r, &body)); err != nil {
		return err
	}
	to := s.tenantOf(r)
	calls := make([]pgagui.AppendCall, len(body.Appends))
	if body.Appends == nil {
		return problemf(http.StatusBadRequest, "the body has no list of appends")
	}
	for i, call := range body.Appends {
		if call.ThreadID == "" || call.RunID == "" || call.AfterSeq == nil {
			return problemf(http.StatusBadRequest, "appends[%d] needs threadId, runId and afterSeq (0 for a new run)", i)
		}
		if err := call.check(); err != nil {
			return problemf(http.StatusBadRequest, "appends[%d]: %v", i, err)
		}
		calls[i] = pgagui.AppendCall{
			Run: pgagui.RunRef{ThreadID: call.ThreadID, RunID: call.RunID}, Events: call.Events, AfterSeq: *call.AfterSeq,
			Input: orNil(call.Input), Parallel: call.Parallel,
		}
		calls[i].ParentRunID, calls[i].NoParent = call.parent()
	}
	results, err := to.AppendMany(r.Context(), calls, pgagui.AppendManyOptions{Strict: body.Strict})
	if err != nil {
		return err
	}
	answers := make([]appended, len(results))
	for i, result := range results {
		if answers[i].LastSeq = result.LastSeq; result.Err != nil {
			answers[i].Error, _ = problemOfError(result.Err)
		} else {
			to.Wake(calls[i].Run.ThreadID)
		}
	}
	return answerList(s, w, r, "results", answers)
}

const (
	// maxStreamedEvent bounds an event of a stream that is appended, in bytes.
	maxStreamedEvent = 8 << 20
	// maxStreamedBatch bounds what is appended of a stream in one call, in bytes.
	maxStreamedBatch = 1 << 20
	// maxDrained and drainTimeout bound what is read of a stream that was refused.
	maxDrained   = 64 << 20
	drainTimeout = 2 * time.Second
)

// postStream appends a stream of events as they arrive. If it breaks off, the writer can send it a
// second time with the same after_seq: the log takes each event once.
func (s *Server) postStream(w http.ResponseWriter, r *http.Request, read func(io.Reader) iter.Seq2[json.RawMessage, error]) error {
	q := queryOf(r)
	options := pgagui.AppendOptions{Parallel: q.is("parallel", false), Strict: q.is("strict", false), ParentRunID: q.text("parent_run")}
	if q.values.Has("after_seq") {
		options.AfterSeq = new(q.number("after_seq"))
	}
	options.NoParent = q.values.Has("parent_run") && options.ParentRunID == ""
	if err := q.check(); err != nil {
		return err
	}
	closeStream, ok := s.guard.OpenStream(w, r)
	if !ok {
		return nil
	}
	defer closeStream()

	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(s.streaming, func() { cancel(errShutdown) })()
	control := http.NewResponseController(w)
	_ = control.EnableFullDuplex() // a refusal goes out while the writer still sends
	partial := &partialEvent{Reader: r.Body.(*requestBody).whole, held: s.memory.hold(ctx)}
	defer partial.held.release()
	arrived := make(chan arrival, 64)
	failed := make(chan error, 1)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for event, err := range read(partial) {
			held := s.memory.hold(ctx)
			if err == nil {
				partial.size = 0
				err = held.resize(len(event))
			}
			if err != nil {
				failed <- err
				break
			}
			select {
			case arrived <- arrival{event, held}:
			case <-ctx.Done():
				held.release()
			}
		}
		close(arrived)
		// A writer whose connection is reset while it sends does not see the answer.
		_, _ = io.CopyN(io.Discard, partial.Reader, maxDrained)
	}()
	lastSeq, count, err := s.appendStream(ctx, s.tenantOf(r), runOf(r), arrived, options)
	if err == nil {
		select {
		case cause := <-failed:
			var known *problem
			switch {
			case errors.As(cause, &known):
			case errors.Is(cause, bufio.ErrTooLong):
				known = problemf(http.StatusRequestEntityTooLarge, "an event has more than %d bytes", maxStreamedEvent)
			default:
				known = problemf(http.StatusBadRequest, "%v", cause)
			}
			err = problemf(known.Status, "the stream ended after %d events, which are stored: %s", count, known.Detail)
		default:
		}
	}
	switch {
	case context.Cause(ctx) != nil:
		err = context.Cause(ctx)
	case err == nil && count == 0:
		err = problemf(http.StatusBadRequest, "the stream has no event")
	case err == nil:
		return answer(w, map[string]int64{"lastSeq": lastSeq, "events": count})
	}
	w.Header().Set("Connection", "close")
	s.answerError(w, r, err)
	_ = control.Flush()
	cancel(nil)
	_ = control.SetReadDeadline(time.Now().Add(drainTimeout))
	<-drained
	for event := range arrived {
		event.held.release()
	}
	return nil
}

// arrival is an event of a stream with the memory that it takes.
type arrival struct {
	json json.RawMessage
	held *holding
}

// partialEvent reads a stream. What has arrived of an event counts, too.
type partialEvent struct {
	io.Reader
	held *holding
	size int // since the last event
}

func (p *partialEvent) Read(into []byte) (int, error) {
	n, err := p.Reader.Read(into)
	p.size += n
	if full := p.held.resize(p.size); full != nil {
		return n, full
	}
	return n, err
}

// appendStream appends events as they arrive, until there are no more.
func (s *Server) appendStream(
	ctx context.Context, to tenant, run pgagui.RunRef, arrived <-chan arrival, options pgagui.AppendOptions,
) (lastSeq, count int64, err error) {
	for batch := range batches(ctx, arrived) {
		events := make([]json.RawMessage, len(batch))
		for i, event := range batch {
			events[i] = event.json
		}
		seq, err := s.append(ctx, to, run, events, options)
		for _, event := range batch {
			event.held.release()
		}
		if err != nil {
			return lastSeq, count, err
		}
		lastSeq, count = seq, count+int64(len(batch))
		options.AfterSeq, options.ParentRunID, options.NoParent = &lastSeq, "", false
	}
	return lastSeq, count, nil
}

// batches joins what has arrived at the same time, until there is no more or ctx ends.
func batches(ctx context.Context, arrived <-chan arrival) iter.Seq[[]arrival] {
	return func(yield func([]arrival) bool) {
		for {
			var batch []arrival
			select {
			case first, isOpen := <-arrived:
				if !isOpen {
					return
				}
				batch = append(batch, first)
			case <-ctx.Done():
				return
			}
			for size := len(batch[0].json); size < maxStreamedBatch && len(arrived) > 0; {
				event := <-arrived
				batch, size = append(batch, event), size+len(event.json)
			}
			if !yield(batch) {
				return
			}
		}
	}
}

// sseEvents reads the data of server-sent events.
func sseEvents(stream io.Reader) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		for event, err := range sse.Read(stream, &sse.ReadConfig{MaxEventSize: maxStreamedEvent}) {
			if (event.Data != "" || err != nil) && !yield(json.RawMessage(event.Data), err) {
				return
			}
		}
	}
}

// lineEvents reads events in lines.
func lineEvents(stream io.Reader) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		lines := bufio.NewScanner(stream)
		lines.Buffer(nil, maxStreamedEvent)
		for lines.Scan() {
			line := bytes.TrimSpace(lines.Bytes())
			if len(line) > 0 && !yield(bytes.Clone(line), nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(nil, err)
		}
	}
}

// postFork makes a new branch, and so the head of the thread: an empty run with a parent. The next
// run that names no parent continues there. It is idempotent.
func (s *Server) postFork(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		RunID           string
		ParentRunID     *string // empty: the branch is a new root
		BeforeMessageID string
	}
	if err := errors.Join(queryOf(r).check(), readObject(r, &body)); err != nil {
		return err
	}
	switch {
	case body.RunID == "":
		return problemf(http.StatusBadRequest, "the body has no runId (the id of the new run)")
	case (body.ParentRunID == nil) == (body.BeforeMessageID == ""):
		return problemf(http.StatusBadRequest, "the body needs one of parentRunId and beforeMessageId")
	}
	run := pgagui.RunRef{ThreadID: r.PathValue("thread"), RunID: body.RunID}
	if body.BeforeMessageID != "" {
		before, err := s.runBefore(r, run, body.BeforeMessageID)
		if err != nil {
			return err
		}
		body.ParentRunID = &before
	}
	parent := *body.ParentRunID
	start, err := events.RunStarted{ThreadID: run.ThreadID, RunID: run.RunID, ParentRunID: parent}.Event()
	if err != nil {
		return err
	}
	end, err := events.RunFinished{ThreadID: run.ThreadID, RunID: run.RunID}.Event()
	if err != nil {
		return err
	}
	to := s.tenantOf(r)
	if _, err := to.Thread(r.Context(), run.ThreadID); err != nil { // a fork makes no thread
		return err
	}
	_, err = s.append(r.Context(), to, run, []json.RawMessage{start, end}, pgagui.AppendOptions{
		AfterSeq: new(int64(0)), ParentRunID: parent, NoParent: parent == "",
	})
	if err != nil {
		return err
	}
	status, err := to.Status(r.Context(), run)
	if err != nil {
		return err
	}
	return answer(w, status)
}

// runBefore returns the parent for a fork before a message: that of the run that brought the message.
// If the request is a repeat, the head may be on the new branch, which lacks the message. Then the
// message is on another branch from the same parent.
func (s *Server) runBefore(r *http.Request, fork pgagui.RunRef, messageID string) (string, error) {
	to := s.tenantOf(r)
	existing, err := to.Status(r.Context(), fork)
	switch {
	case errors.Is(err, pgagui.ErrUnknownRun):
		origin, err := s.originOf(r, pgagui.RunRef{ThreadID: fork.ThreadID}, messageID)
		return origin.ParentRunID, err
	case err != nil:
		return "", err
	}
	runs, err := to.Runs(r.Context(), fork.ThreadID)
	if err != nil {
		return "", err
	}
	for _, run := range runs {
		if run.ParentRunID != existing.ParentRunID || run.ID == fork.RunID {
			continue
		}
		origin, found, err := to.MessageOrigin(r.Context(), pgagui.RunRef{ThreadID: fork.ThreadID, RunID: run.ID}, messageID)
		if err != nil || found && origin.ID == run.ID {
			return existing.ParentRunID, err
		}
	}
	return "", problemf(http.StatusConflict, "run %q exists and is not a fork before message %q", fork.RunID, messageID)
}

// postAbandon ends a run whose writer will not come back.
func (s *Server) postAbandon(w http.ResponseWriter, r *http.Request) error {
	body := struct{ Reason string }{"abandoned by a request"}
	if err := errors.Join(queryOf(r).check(), readObject(r, &body)); err != nil {
		return err
	}
	to, run := s.tenantOf(r), runOf(r)
	seq, err := to.Abandon(r.Context(), run, pgagui.AbandonOptions{Reason: body.Reason})
	if err != nil {
		return err
	}
	to.Wake(run.ThreadID)
	return answer(w, appended{LastSeq: seq})
}
