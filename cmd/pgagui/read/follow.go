package read

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pgagui/pgagui"
)

func (p *program) follow(ctx context.Context, store *pgagui.Store, threadID string, options pgagui.FollowOptions, null bool) error {
	out := newEventWriter(p.Out, null, "pgagui events")
	for event, err := range store.Follow(ctx, threadID, options) {
		if err != nil {
			return err
		}
		text := []byte(event.JSON)
		if p.JSON {
			if text, err = followedJSON(event); err != nil {
				return err
			}
		}
		if err := out.write(text, "event %d of thread %q (run %q)", event.Seq, threadID, event.RunID); err != nil {
			return err
		}
		// The next event may arrive much later.
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// followedJSON encodes an event with its seq, run, type and time.
func followedJSON(event pgagui.Event) ([]byte, error) {
	return withPayload(struct {
		Seq        int64     `json:"seq,omitempty"`
		RunID      string    `json:"runId"`
		Type       string    `json:"type"`
		RecordedAt time.Time `json:"recordedAt,omitzero"`
	}{event.Seq, event.RunID, event.Type, event.RecordedAt}, event.JSON)
}

// withPayload encodes a struct as JSON and adds the payload, byte for byte, as its last member.
func withPayload(fields any, payload []byte) ([]byte, error) {
	text, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	text = append(text[:len(text)-1], `,"payload":`...)
	text = append(text, payload...)
	return append(text, '}'), nil
}
