package face_test

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/server/core"
	"github.com/pgagui/pgagui/server/door"
	"github.com/pgagui/pgagui/server/face"
)

// client receives a stream, and counts what arrives at once.
type client struct {
	*httptest.ResponseRecorder
	writes, flushes int
}

func (c *client) Write(text []byte) (int, error) {
	c.writes++
	return c.ResponseRecorder.Write(text)
}

func (c *client) Flush() { c.flushes++ }

func frame(seq int64) core.Frame {
	at := pgagui.Position{Seq: seq, RecordedAt: time.UnixMicro(1_763_841_600_000_000)}
	return core.Frame{Place: core.Place{Position: at}, Event: []byte(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"word "}`)}
}

func TestFramesOfABurstAreWrittenTogether(t *testing.T) {
	t.Parallel()
	const frames = 10_000
	to := &client{ResponseRecorder: httptest.NewRecorder()}
	writer := (&face.HTTP{Server: &core.Server{Door: &door.Door{WriteTimeout: time.Minute}}}).BeginStream(to, face.FrameFormat{})
	var want bytes.Buffer
	for seq := range int64(frames) {
		if !writer.Write(frame(seq + 1)) {
			t.Fatal("the stream ended")
		}
		fmt.Fprintf(&want, "id: %d-1763841600000000\ndata: %s\n\n", seq+1, frame(0).Event)
	}
	if !writer.Flush() {
		t.Fatal("the stream ended")
	}
	if got := to.Body.String(); got != want.String() {
		t.Errorf("the stream has %d bytes, expected %d", len(got), want.Len())
	}
	if most := want.Len()/(32<<10) + 1; to.writes > most || to.flushes > most {
		t.Errorf("%d writes and %d flushes of %d bytes, expected %d at most", to.writes, to.flushes, want.Len(), most)
	}
}

func TestAFrameTakesNoMemory(t *testing.T) {
	to := &client{ResponseRecorder: &httptest.ResponseRecorder{}} // keeps nothing
	writer := (&face.HTTP{Server: &core.Server{Door: &door.Door{WriteTimeout: time.Minute}}}).BeginStream(to, face.FrameFormat{})
	const frames = 10_000
	allocations := testing.AllocsPerRun(5, func() {
		for seq := range int64(frames) {
			writer.Write(core.Frame{Place: core.Place{Position: pgagui.Position{Seq: seq + 1}}, Event: event})
		}
	})
	if allocations > frames/10 {
		t.Errorf("%.0f allocations for %d frames", allocations, frames)
	}
}

var event = frame(0).Event

func TestFramesOfEveryKind(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		format face.FrameFormat
		frame  core.Frame
		want   string
	}{
		"a heartbeat":          {frame: core.Frame{}, want: ": heartbeat\n\n"},
		"a heartbeat of ours":  {format: face.FrameFormat{Comment: "ping"}, want: ": ping\n\n"},
		"a place alone":        {frame: core.Frame{Place: frame(7).Place}, want: "id: 7-1763841600000000\n\n"},
		"the seq alone":        {format: face.FrameFormat{OnlySeq: true}, frame: core.Frame{Place: frame(7).Place}, want: "id: 7\n\n"},
		"an id of another":     {frame: core.Frame{ID: "x", Event: []byte("{}")}, want: "id: x\ndata: {}\n\n"},
		"an event in lines":    {frame: core.Frame{Event: []byte("{\r\n}\n")}, want: "data: {\ndata: \ndata: }\ndata: \n\n"},
		"an event without any": {frame: core.Frame{Event: []byte("{}")}, want: "data: {}\n\n"},
	} {
		to := &client{ResponseRecorder: httptest.NewRecorder()}
		writer := (&face.HTTP{Server: &core.Server{Door: &door.Door{WriteTimeout: time.Minute}}}).BeginStream(to, c.format)
		if !writer.Write(c.frame) || !writer.Flush() || to.Body.String() != c.want {
			t.Errorf("%s: %q, expected %q", name, to.Body.String(), c.want)
		}
	}
}
