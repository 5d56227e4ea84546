package rest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/server/access"
	"github.com/pgagui/pgagui/server/core"
	"github.com/pgagui/pgagui/server/face"
	"github.com/pgagui/pgagui/server/problem"
)

// feedInterval is how often a stream of changes looks for new ones.
const feedInterval = time.Second

// getFeed returns the runs of all threads that changed: a page as lines, or a stream.
func (s handler) getFeed(w http.ResponseWriter, r *http.Request) error {
	q := face.QueryOf(r)
	options := pgagui.ChangesOptions{After: cmp.Or(r.Header.Get("Last-Event-ID"), q.Text("last_event_id"), q.Text("after")), Limit: q.Limit()}
	consumer := q.Text("consumer")
	if err := q.Check(); err != nil {
		return err
	}
	if consumer != "" && options.After != "" && q.Has("after") {
		return problem.Errorf(http.StatusUnprocessableEntity, "after and consumer exclude each other: a consumer has a place")
	}
	store := s.Tenant(r.Context())
	read := func(ctx context.Context) (changes []pgagui.Change, err error) {
		if consumer != "" && options.After == "" {
			changes, err = store.Consumer(consumer).Changes(ctx, options.Limit)
		} else {
			changes, err = store.Changes(ctx, options)
		}
		if len(changes) > 0 {
			options.After = changes[len(changes)-1].Position
		}
		return changes, err
	}
	changes, err := read(r.Context())
	if err != nil {
		return err
	}
	if !face.Accepts(r, "text/event-stream") {
		return answerLines(w, changes)
	}
	s.WriteFrames(w, r, "", face.FrameFormat{}, func(ctx context.Context, to core.Frames) error {
		next, heartbeat := time.NewTicker(feedInterval), time.NewTicker(s.Options.Heartbeat)
		defer next.Stop()
		defer heartbeat.Stop()
		for {
			for _, change := range changes {
				text, err := json.Marshal(change)
				if err != nil {
					return err
				}
				if !to.Write(core.Frame{ID: change.Position, Event: text}) {
					return nil
				}
			}
			if len(changes) > 0 {
				if !to.Flush() {
					return nil
				}
			} else {
				select {
				case <-ctx.Done():
					return context.Cause(ctx)
				case <-heartbeat.C:
					if !to.Write(core.Frame{}) || !to.Flush() {
						return nil
					}
				case <-next.C:
				}
			}
			var err error
			if changes, err = read(ctx); err != nil {
				return cmp.Or(context.Cause(ctx), err)
			}
		}
	})
	return nil
}

// answerLines answers with a line for each item.
func answerLines[T any](w http.ResponseWriter, items []T) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	for _, item := range items {
		if err := encoder.Encode(item); err != nil {
			return err
		}
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(text.Bytes()) // the client may be gone
	return nil
}

// getConsumers returns the consumers of the scope.
func (s handler) getConsumers(w http.ResponseWriter, r *http.Request) error {
	who, _ := access.IdentityFrom(r.Context())
	places, err := s.Tenant(r.Context()).Consumers(r.Context())
	if err != nil {
		return err
	}
	own := []pgagui.ConsumerPlace{}
	for _, place := range places {
		if !place.AllScopes && place.Scope == who.Scope {
			own = append(own, place)
		}
	}
	return face.Answer(w, map[string]any{"consumers": own})
}

// putConsumer moves a consumer.
func (s handler) putConsumer(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Position string `json:"position"`
	}
	if err := face.ReadObject(r, &body); err != nil {
		return err
	}
	if err := s.Tenant(r.Context()).Consumer(r.PathValue("consumer")).Move(r.Context(), body.Position); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// deleteConsumer removes a consumer. It is the same if there is none.
func (s handler) deleteConsumer(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.Tenant(r.Context()).Consumer(r.PathValue("consumer")).Remove(r.Context()); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
