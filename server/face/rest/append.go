package rest

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

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/panics"
	"github.com/pgagui/pgagui/server/core"
	"github.com/pgagui/pgagui/server/door"
	"github.com/pgagui/pgagui/server/face"
	"github.com/pgagui/pgagui/server/internal/jsontext"
	"github.com/pgagui/pgagui/server/internal/sse"
	"github.com/pgagui/pgagui/server/problem"
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
		return problem.Errorf(http.StatusBadRequest, "the list of events is missing")
	case b.AfterSeq != nil && *b.AfterSeq < 0:
		return problem.Errorf(http.StatusBadRequest, "afterSeq is %d (expected the last seq of the run that the writer has seen, 0 for a new run)", *b.AfterSeq)
	case orNil(b.Input) != nil && !jsontext.IsObject(b.Input):
		return problem.Errorf(http.StatusBadRequest, "input is no object")
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

// postEvents appends events to a run, for writers in any language. The body is a JSON object, or a
// stream of events, which is appended as it arrives.
func (s handler) postEvents(w http.ResponseWriter, r *http.Request) error {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch media {
	case "text/event-stream":
		return s.postStream(w, r, sseEvents)
	case "application/x-ndjson":
		return s.postStream(w, r, lineEvents)
	}
	var body struct {
		appendBody
		Strict bool
	}
	q := face.QueryOf(r)
	for name, member := range map[string]string{"after_seq": "afterSeq", "parent_run": "parentRunId", "parallel": "parallel", "strict": "strict"} {
		if q.Has(name) {
			return problem.Errorf(http.StatusUnprocessableEntity,
				"%s is for a stream (Content-Type: application/x-ndjson or text/event-stream); a JSON object has the member %s", name, member)
		}
	}
	if err := errors.Join(q.Check(), face.ReadObject(r, &body)); err != nil {
		return err
	}
	if err := body.check(); err != nil {
		return err
	}
	release, err := s.Admit(r.Context())
	if err != nil {
		return err
	}
	defer release()
	options := pgagui.AppendOptions{AfterSeq: body.AfterSeq, Input: orNil(body.Input), Parallel: body.Parallel, Strict: body.Strict}
	options.ParentRunID, options.NoParent = body.parent()
	seq, err := s.Append(r.Context(), s.Tenant(r.Context()), runOf(r), body.Events, options)
	if err != nil {
		return err
	}
	return face.Answer(w, appended{LastSeq: seq})
}

// appended is the answer to an append.
type appended struct {
	LastSeq int64 `json:"lastSeq,omitempty"`
	// Error says why one of several appends was refused.
	Error *problem.Details `json:"error,omitempty"`
}

// postAppend appends to several runs in one commit. Each call names the last seq of its run that the
// writer has seen, so that the request can be retried.
func (s handler) postAppend(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Appends []struct {
			appendBody
			ThreadID, RunID string
		}
		Strict bool
	}
	if err := errors.Join(face.QueryOf(r).Check(), face.ReadObject(r, &body)); err != nil {
		return err
	}
	to := s.Tenant(r.Context())
	calls := make([]pgagui.AppendCall, len(body.Appends))
	if body.Appends == nil {
		return problem.Errorf(http.StatusBadRequest, "the body has no list of appends")
	}
	for i, call := range body.Appends {
		if call.ThreadID == "" || call.RunID == "" || call.AfterSeq == nil {
			return problem.Errorf(http.StatusBadRequest, "appends[%d] needs threadId, runId and afterSeq (0 for a new run)", i)
		}
		if err := call.check(); err != nil {
			return problem.Errorf(http.StatusBadRequest, "appends[%d]: %v", i, err)
		}
		calls[i] = pgagui.AppendCall{
			Run: pgagui.RunRef{ThreadID: call.ThreadID, RunID: call.RunID}, Events: call.Events, AfterSeq: *call.AfterSeq,
			Input: orNil(call.Input), Parallel: call.Parallel,
		}
		calls[i].ParentRunID, calls[i].NoParent = call.parent()
	}
	release, err := s.Admit(r.Context())
	if err != nil {
		return err
	}
	defer release()
	results, err := to.AppendMany(r.Context(), calls, pgagui.AppendManyOptions{Strict: body.Strict})
	if err != nil {
		return err
	}
	answers := make([]appended, len(results))
	for i, result := range results {
		if answers[i].LastSeq = result.LastSeq; result.Err != nil {
			answers[i].Error, _ = problem.Of(result.Err)
		} else {
			to.Wake(calls[i].Run.ThreadID)
		}
	}
	return answerList(s, w, r, "results", answers)
}

// maxStreamedEvent bounds an event of a stream that is appended, in bytes.
const maxStreamedEvent = 8 << 20

// postStream appends a stream of events as they arrive. If it breaks off, the writer can send it a
// second time with the same after_seq: the log takes each event once.
func (s handler) postStream(w http.ResponseWriter, r *http.Request, read func(io.Reader) iter.Seq2[json.RawMessage, error]) error {
	q := face.QueryOf(r)
	options := pgagui.AppendOptions{Parallel: q.Is("parallel", false), Strict: q.Is("strict", false), ParentRunID: q.Text("parent_run")}
	if q.Has("after_seq") {
		options.AfterSeq = new(q.Number("after_seq"))
	}
	options.NoParent = q.Has("parent_run") && options.ParentRunID == ""
	if err := q.Check(); err != nil {
		return err
	}
	closeStream, ok := s.Guard.OpenStream(w, r)
	if !ok {
		return nil
	}
	defer closeStream()

	ctx, end := s.StreamContext(r.Context())
	defer end()
	control := http.NewResponseController(w)
	_ = control.EnableFullDuplex() // a refusal goes out while the writer still sends
	partial := &partialEvent{Reader: face.WholeBody(r), held: s.Memory.Hold(ctx)}
	defer partial.held.Release()
	arrived := make(chan core.Arrival, 64)
	failed := make(chan error, 1)
	drained := make(chan struct{})
	receive := func() error {
		for event, err := range read(partial) {
			held := s.Memory.Hold(ctx)
			if err == nil {
				partial.size = 0
				err = held.Resize(len(event))
			}
			if err != nil {
				return err
			}
			select {
			case arrived <- core.Arrival{JSON: event, Held: held}:
			case <-ctx.Done():
				held.Release()
			}
		}
		return nil
	}
	go panics.Task(s.Options.Logger, func() {
		defer close(drained)
		if err := panics.Catch(s.Options.Logger, receive); err != nil {
			failed <- err
		}
		close(arrived)
		// A writer whose connection is reset while it sends does not see the answer.
		_, _ = io.CopyN(io.Discard, partial.Reader, face.MaxDrained)
	}, nil)()
	lastSeq, count, err := s.AppendStream(ctx, s.Tenant(r.Context()), runOf(r), arrived, options)
	if err == nil {
		select {
		case cause := <-failed:
			var known *problem.Details
			switch {
			case errors.As(cause, &known):
			case errors.Is(cause, bufio.ErrTooLong):
				known = problem.Errorf(http.StatusRequestEntityTooLarge, "an event has more than %d bytes", maxStreamedEvent)
			default:
				known = problem.Errorf(http.StatusUnprocessableEntity, "%v", cause)
			}
			err = problem.Errorf(known.Status, "the stream ended after %d events, which are stored: %s", count, known.Detail)
		default:
		}
	}
	switch {
	case context.Cause(ctx) != nil:
		err = context.Cause(ctx)
	case err == nil && count == 0:
		err = problem.Errorf(http.StatusUnprocessableEntity, "the stream has no event")
	case err == nil:
		return face.Answer(w, map[string]int64{"lastSeq": lastSeq, "events": count})
	}
	w.Header().Set("Connection", "close")
	s.AnswerError(w, r, err)
	_ = control.Flush()
	end()
	_ = control.SetReadDeadline(time.Now().Add(face.DrainTimeout))
	<-drained
	for event := range arrived {
		event.Held.Release()
	}
	return nil
}

// partialEvent reads a stream. What has arrived of an event counts, too.
type partialEvent struct {
	io.Reader
	held *door.Holding
	size int // since the last event
}

func (p *partialEvent) Read(into []byte) (int, error) {
	n, err := p.Reader.Read(into)
	p.size += n
	if full := p.held.Resize(p.size); full != nil {
		return n, full
	}
	return n, err
}

// sseEvents reads the data of server-sent events. As in files, blank data and [DONE] are no events.
func sseEvents(stream io.Reader) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		for data, err := range sse.Read(stream, maxStreamedEvent) {
			text := bytes.TrimSpace(data)
			if err == nil && (len(text) == 0 || string(text) == "[DONE]") {
				continue
			}
			if !yield(data, err) {
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

// postFork makes a new branch from a run, or before a message.
func (s handler) postFork(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		RunID           string
		ParentRunID     *string // empty: the branch is a new root
		BeforeMessageID string
	}
	if err := errors.Join(face.QueryOf(r).Check(), face.ReadObject(r, &body)); err != nil {
		return err
	}
	switch {
	case body.RunID == "":
		return problem.Errorf(http.StatusBadRequest, "the body has no runId (the id of the new run)")
	case (body.ParentRunID == nil) == (body.BeforeMessageID == ""):
		return problem.Errorf(http.StatusUnprocessableEntity, "the body needs one of parentRunId and beforeMessageId")
	}
	run := pgagui.RunRef{ThreadID: r.PathValue("thread"), RunID: body.RunID}
	var status *pgagui.RunStatus
	var err error
	if body.ParentRunID != nil {
		status, err = s.Fork(r.Context(), s.Tenant(r.Context()), run, *body.ParentRunID)
	} else {
		status, err = s.ForkBefore(r.Context(), s.Tenant(r.Context()), run, body.BeforeMessageID)
	}
	if err != nil {
		return err
	}
	return face.Answer(w, status)
}

// postAbandon ends a run whose writer will not come back.
func (s handler) postAbandon(w http.ResponseWriter, r *http.Request) error {
	body := struct{ Reason string }{"abandoned by a request"}
	if err := errors.Join(face.QueryOf(r).Check(), face.ReadObject(r, &body)); err != nil {
		return err
	}
	to, run := s.Tenant(r.Context()), runOf(r)
	seq, err := to.Abandon(r.Context(), run, pgagui.AbandonOptions{Reason: body.Reason})
	if err != nil {
		return err
	}
	to.Wake(run.ThreadID)
	return face.Answer(w, appended{LastSeq: seq})
}
