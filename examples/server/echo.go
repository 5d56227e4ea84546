package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// echo is an agent that repeats the last message, word by word.
func echo(ctx context.Context, input json.RawMessage, emit func(json.RawMessage) error) error {
	var request struct {
		RunID    string
		Messages []struct{ Content string }
	}
	if err := json.Unmarshal(input, &request); err != nil || len(request.Messages) == 0 {
		return errors.Join(errors.New("the input has no messages"), err)
	}
	for word := range strings.FieldsSeq("You said: " + request.Messages[len(request.Messages)-1].Content) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
		event := map[string]string{"type": "TEXT_MESSAGE_CHUNK", "messageId": "a-" + request.RunID, "role": "assistant", "delta": word + " "}
		text, err := json.Marshal(event)
		if err := errors.Join(err, emit(text)); err != nil {
			return err
		}
	}
	return nil
}
