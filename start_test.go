package pgagui_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
)

// A server learns from Begin whether it may call the agent.
func TestBeginReportsARefusedStart(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	recorder := newRecorder(t, store, nil)
	first := mustBegin(t, recorder, pgagui.RunRef{ThreadID: "t", RunID: "first"}, pgagui.BeginOptions{Start: json.RawMessage(started("first"))})
	if first.Seq() != 1 {
		t.Errorf("begun with seq %d", first.Seq())
	}
	for what, test := range map[string]struct {
		thread, run string
		options     pgagui.BeginOptions
		want        error
	}{
		"a run beside it":       {"t", "second", pgagui.BeginOptions{Start: json.RawMessage(started("second"))}, pgagui.ErrRunInProgress},
		"the same run":          {"t", "first", pgagui.BeginOptions{Start: json.RawMessage(startedFrom("first", "x"))}, pgagui.ErrConflictingRepeat},
		"of an unknown parent":  {"u", "third", pgagui.BeginOptions{Start: json.RawMessage(startedFrom("third", "nobody"))}, pgagui.ErrUnknownParent},
		"a start that is wrong": {"u", "fourth", pgagui.BeginOptions{Start: json.RawMessage(`{`)}, pgagui.ErrInvalidEvents},
	} {
		recording, err := recorder.Begin(t.Context(), pgagui.RunRef{ThreadID: test.thread, RunID: test.run}, test.options)
		if !errors.Is(err, test.want) || recording != nil {
			t.Errorf("%s: %v, want %v", what, err, test.want)
		}
	}
	mustRecord(t, first, token(1), finished)
	must.Report(t, first.Close(t.Context()))
	if got := payloads(t, store, "t", "first"); len(got) != 3 {
		t.Errorf("the log has %s", got)
	}
	if err := recorder.Close(t.Context()); err != nil {
		t.Errorf("what Begin has returned is returned once more: %v", err)
	}
}

func TestFollowSendsHeartbeats(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	mustAppend(t, store, "t", "r", rawEvents(started("r")))
	mustAppend(t, store, "t", "other", rawEvents(startedFrom("other", "r")), pgagui.AppendOptions{Parallel: true, NoParent: true})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	heartbeats, seqs := 0, []int64{}
	for event, err := range store.Follow(ctx, "t", pgagui.FollowOptions{RunID: "r", Heartbeat: 50 * time.Millisecond}) {
		must.Do(t, err)
		if !event.IsHeartbeat() {
			seqs = append(seqs, event.Seq)
			continue
		}
		heartbeats++
		switch {
		case heartbeats < 5: // events of another run do not replace heartbeats
			mustAppend(t, store, "t", "other", rawEvents(token(heartbeats)))
		case heartbeats == 5:
			mustAppend(t, store, "t", "r", rawEvents(finished))
		}
	}
	if heartbeats < 5 || len(seqs) != 2 {
		t.Errorf("%d heartbeats, events %d", heartbeats, seqs)
	}
	for range store.Follow(ctx, "t", pgagui.FollowOptions{RunID: "other", After: pgagui.Position{Seq: 100}, Heartbeat: time.Millisecond}) {
		break // to leave the loop at a heartbeat or an error is possible, too
	}
}

func TestPositionIsText(t *testing.T) {
	t.Parallel()
	at := time.UnixMicro(1763841600000123)
	for text, want := range map[string]pgagui.Position{
		"0": {}, "17": {Seq: 17}, "17-1763841600000123": {Seq: 17, RecordedAt: at},
		"9223372036854775807-0": {Seq: 1<<63 - 1, RecordedAt: time.UnixMicro(0)},
	} {
		var got pgagui.Position
		if err := got.UnmarshalText([]byte(text)); err != nil || got.Seq != want.Seq || !got.RecordedAt.Equal(want.RecordedAt) {
			t.Errorf("%s is %+v, error %v", text, got, err)
		}
		if got.String() != text {
			t.Errorf("%+v is written as %s, want %s", got, got, text)
		}
		if appended, err := got.AppendText([]byte("id: ")); err != nil || string(appended) != "id: "+text {
			t.Errorf("%+v is appended as %s, error %v", got, appended, err)
		}
	}
	for _, text := range []string{"x", "-1", "1-", "1-x", "+1", " 1", "1-2-3", "9223372036854775808"} {
		got := pgagui.Position{Seq: 7}
		if err := got.UnmarshalText([]byte(text)); !errors.Is(err, pgagui.ErrInvalidArgument) || got.Seq != 7 {
			t.Errorf("%q is %+v, error %v", text, got, err)
		}
	}
	type frame struct{ After pgagui.Position }
	document, err := json.Marshal(frame{pgagui.Position{Seq: 5, RecordedAt: at}})
	var read frame
	if err != nil || string(document) != `{"After":"5-1763841600000123"}` || json.Unmarshal(document, &read) != nil || read.After.Seq != 5 {
		t.Errorf("%s, %+v, error %v", document, read, err)
	}
	if err := read.After.UnmarshalText(nil); err != nil || read.After != (pgagui.Position{}) {
		t.Errorf("an empty text is %+v, error %v", read.After, err)
	}
}
