package explorer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/server/access"
	"github.com/pgagui/pgagui/server/door"
	"github.com/pgagui/pgagui/server/problem"
)

const (
	// heartbeat is how often a stream without an event says that it is there.
	heartbeat = 15 * time.Second
	// recheck is how often a stream looks whether its reader may still read.
	recheck = time.Minute
)

// sendEvents tells a page that its thread has changed: a frame with the last seq, whenever it has
// caught up. The page then fetches itself, so there is one place that lays messages out.
func (h *Handler) sendEvents(q *request) error {
	id, err := q.required("id")
	if err != nil {
		return err
	}
	after, err := q.seq("after")
	if err != nil {
		return err
	}
	var position pgagui.Position
	if text := q.Header.Get("Last-Event-ID"); text != "" {
		if err := position.UnmarshalText([]byte(text)); err != nil {
			return problem.Errorf(http.StatusBadRequest, "Last-Event-ID is %.40q (expected the id of a frame)", text)
		}
	} else {
		position.Seq = after
	}
	if _, err := q.store.Thread(q.Context(), id); err != nil {
		return err
	}
	release, ok := h.door.Limits.AcquireStream(q.identity)
	if !ok {
		return &access.Refusal{Kind: access.ErrLimited, Reason: "too many open streams", RetryAfter: heartbeat}
	}
	defer release()
	header := q.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Accel-Buffering", "no")
	q.w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(q.w)
	write := func(text string) error {
		_ = control.SetWriteDeadline(time.Now().Add(h.door.WriteTimeout))
		if _, err := q.w.Write([]byte(text)); err != nil {
			return err
		}
		err := control.Flush()
		if err == nil { // in HTTP/2 the deadline would end a stream that is idle
			_ = control.SetWriteDeadline(time.Time{})
		}
		return err
	}
	ctx, cancel := context.WithCancel(door.Streaming(q.Context()))
	defer cancel()
	defer context.AfterFunc(h.closing, cancel)()
	if err := write(": here\n\n"); err != nil {
		return nil
	}
	sent, checked := position, time.Now()
	idle := func() {
		if time.Since(checked) > recheck {
			checked = time.Now()
			before := q.identity
			if h.identify(q) != nil || q.identity.Scope != before.Scope || !q.identity.Can(before.Rights) {
				cancel()
				return
			}
		}
		if position == sent {
			return
		}
		sent = position
		h.seen.now(q.identity)
		if write(fmt.Sprintf("id: %s\ndata: %d\n\n", position, position.Seq)) != nil {
			cancel()
		}
	}
	options := pgagui.FollowOptions{After: position, Stay: true, Heartbeat: heartbeat, OnIdle: idle}
	for event, err := range q.store.Follow(ctx, id, options) {
		switch {
		case err != nil && (ctx.Err() != nil || errors.Is(err, pgagui.ErrThreadErased)):
			return nil
		case err != nil:
			h.options.Logger.Info("a stream of the explorer ended", "error", err)
			return nil
		case event.IsHeartbeat():
			if write(": here\n\n") != nil {
				return nil
			}
		default:
			position = event.Position()
		}
	}
	return nil
}

// stop asks the writer of a run to stop.
func (h *Handler) stop(q *request) error {
	run := pgagui.RunRef{ThreadID: q.PostFormValue("id"), RunID: q.PostFormValue("run")}
	if run.ThreadID == "" {
		return problem.Errorf(http.StatusBadRequest, "the form lacks the id of the thread")
	}
	if _, err := q.store.RequestStop(q.Context(), run, pgagui.RequestStopOptions{Reason: "stopped in the explorer"}); err != nil {
		return err
	}
	q.redirect(link("thread", "id", run.ThreadID))
	return nil
}
