package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/eventjson"
	"github.com/pgagui/pgagui/compaction"
)

const (
	liveRun       = "run-9"
	livePrompt    = "Thanks! What is the neighbourhood like?"
	liveAnswer    = "Alfama is the oldest quarter: lanes too narrow for cars, tiles on every wall, fado from open doors in the evening, and a tram that rattles by."
	liveWordEvery = 15 * time.Millisecond
)

// live records an agent while it runs, attaches to its run and stops it, each as a separate process
// would.
func (d *demonstration) live(ctx context.Context) error {
	d.title("Record an agent while it runs, attach in the middle, stop it (pgagui events THREAD --follow, pgagui stop THREAD)")
	recorder := d.store.NewRecorder(&pgagui.RecorderConfig{CheckEvery: 100 * time.Millisecond})
	recording, err := recorder.Begin(ctx, pgagui.RunRef{ThreadID: demoThread, RunID: liveRun}, pgagui.BeginOptions{})
	if err != nil {
		return errors.Join(err, recorder.Close(ctx))
	}
	ended := make(chan error, 1)
	go func() { ended <- talk(ctx, recording) }()
	if err = d.watch(ctx); err != nil {
		err = errors.Join(err, recording.Close(ctx)) // which cancels the agent's context
	}
	return errors.Join(err, <-ended, recorder.Close(ctx))
}

// talk is the agent: it streams words until its context is cancelled.
func talk(ctx context.Context, recording *pgagui.Recording) error {
	emit := func(format string, arguments ...any) error {
		return recording.Record(ctx, fmt.Appendf(nil, format, arguments...))
	}
	if err := emit(`{"type":"RUN_STARTED","threadId":%q,"runId":%q,"input":{"messages":[{"id":"user-of-%s","role":"user","content":%q}]}}`,
		demoThread, liveRun, liveRun, livePrompt); err != nil {
		return err
	}
	if err := emit(`{"type":"TEXT_MESSAGE_START","messageId":"reply-live","role":"assistant"}`); err != nil {
		return err
	}
	words := strings.Fields(liveAnswer)
	for n := 0; recording.Context().Err() == nil; n++ {
		if err := emit(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"reply-live","delta":%q}`, words[n%len(words)]+" "); err != nil {
			return err
		}
		select {
		case <-time.After(liveWordEvery):
		case <-recording.Context().Done():
		}
	}
	if err := emit(`{"type":"TEXT_MESSAGE_END","messageId":"reply-live"}`); err != nil {
		return err
	}
	if err := emit(`{"type":"RUN_FINISHED","threadId":%q,"runId":%q}`, demoThread, liveRun); err != nil {
		return err
	}
	return recording.Close(ctx)
}

// watch is a page that the user loads while the agent streams, and a user who stops the run.
func (d *demonstration) watch(ctx context.Context) error {
	const wordsBefore, wordsUntilStop = 12, 12
	store := d.p.Store(d.pool) // a separate Store, which sees the agent only through the database
	received := 0
	for event, err := range store.Follow(ctx, demoThread, pgagui.FollowOptions{RunID: liveRun, NoLineage: true, Stay: true}) {
		if err != nil {
			return err
		}
		if event.Type == "TEXT_MESSAGE_CONTENT" {
			if received++; received == wordsBefore {
				break
			}
		}
	}

	var historyEvents, words int
	var text strings.Builder
	var stopped time.Time
	for event, err := range store.Follow(ctx, demoThread, pgagui.FollowOptions{RunID: liveRun, History: compaction.SnapshotShape}) {
		if err != nil {
			return err
		}
		if words == 0 {
			historyEvents++
		}
		if event.Type == "MESSAGES_SNAPSHOT" {
			var list struct {
				Messages []struct{ Content json.RawMessage }
			}
			if err := json.Unmarshal(event.JSON, &list); err != nil {
				return err
			}
			text.WriteString(eventjson.TextOf(list.Messages[len(list.Messages)-1].Content)) // the message in progress
		}
		if event.Type != "TEXT_MESSAGE_CONTENT" {
			continue
		}
		var content struct{ Delta string }
		if err := json.Unmarshal(event.JSON, &content); err != nil {
			return err
		}
		text.WriteString(content.Delta)
		if words++; words == wordsUntilStop {
			stopped = time.Now()
			if _, err := store.RequestStop(ctx, pgagui.RunRef{ThreadID: demoThread, RunID: liveRun}, pgagui.RequestStopOptions{Reason: "the user has read enough"}); err != nil {
				return err
			}
		}
	}
	fmt.Fprintf(d.p.Out, "  attached in the middle of %s: its history in %s, then word by word\n", liveRun, cli.CountText(historyEvents, "event"))
	d.table("  user\t"+livePrompt, "  assistant\t"+cli.Shorten(text.String(), demoWidth))
	fmt.Fprintf(d.p.Out, "  stop requested: the agent and its follower ended %s later\n", cli.DurationText(time.Since(stopped)))
	return nil
}
