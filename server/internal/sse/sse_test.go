package sse_test

import (
	"bufio"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	oracle "github.com/tmaxmax/go-sse"

	"github.com/pgagui/pgagui/server/internal/sse"
)

// read returns the data of a stream, and whether it ended well.
func read(stream io.Reader, maxBytes int) (data []string, err error) {
	for event, err := range sse.Read(stream, maxBytes) {
		if err != nil {
			return data, err
		}
		data = append(data, string(event))
	}
	return data, nil
}

// expected is what another reader makes of the stream.
func expected(stream string) (data []string, isWhole bool) {
	for event, err := range oracle.Read(strings.NewReader(stream), nil) {
		if err != nil {
			return data, false
		}
		if event.Data != "" {
			data = append(data, event.Data)
		}
	}
	return data, true
}

func check(t *testing.T, stream string) {
	t.Helper()
	want, isWhole := expected(stream)
	for name, reader := range map[string]io.Reader{
		"at once": strings.NewReader(stream), "byte by byte": iotest.OneByteReader(strings.NewReader(stream)),
	} {
		if got, err := read(reader, 1<<16); !slices.Equal(got, want) || (err == nil) != isWhole {
			t.Errorf("%q, %s: %q, %v; expected %q, whole: %t", stream, name, got, err, want, isWhole)
		}
	}
}

func TestStreamsAreReadAsByAnotherReader(t *testing.T) {
	t.Parallel()
	parts := []string{"\n", "\n\n", "\r\n", "\r", "\r\r", "data: x", "data:y", "data:  z", "data", "data:", "data ", "dat: a", "event: b", "id: 1", ": c", ":", "x"}
	random := rand.New(rand.NewPCG(1, 2))
	for range 5_000 {
		var stream strings.Builder
		for range random.IntN(12) {
			stream.WriteString(parts[random.IntN(len(parts))])
		}
		check(t, stream.String())
		check(t, "\uFEFFdata: first\n"+stream.String())
	}
}

func TestALargeEventIsRefused(t *testing.T) {
	t.Parallel()
	const limit = 10_000
	text := strings.Repeat("x", limit)
	for stream, isRefused := range map[string]bool{
		"data: " + text + "\r\n\r\n":             false,
		"data: " + text + "x\n\n":                true,
		"data: a\n\ndata: " + text + "x":         true,
		"data: " + text[1:] + "\ndata:\n\n":      false,
		"data: " + text + "\ndata:\n\n":          true,
		": a\n\ndata: " + text + "\n\nid: 1\n\n": false,
	} {
		if _, err := read(strings.NewReader(stream), limit); errors.Is(err, bufio.ErrTooLong) != isRefused {
			t.Errorf("a stream of %d bytes: %v", len(stream), err)
		}
	}
}

func TestAStreamThatBreaksOff(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for stream, want := range map[string]error{"data: x\n\ndata: y\n": broken, "data: x\n\ndata: y": broken, "data: x\n\n": broken} {
		got, err := read(io.MultiReader(strings.NewReader(stream), iotest.ErrReader(broken)), 100)
		if !slices.Equal(got, []string{"x"}) || !errors.Is(err, want) {
			t.Errorf("%q: %q, %v", stream, got, err)
		}
	}
	if got, err := read(strings.NewReader("data: x\n\ndata: y"), 100); !slices.Equal(got, []string{"x"}) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%q, %v", got, err)
	}
}

// An event takes one allocation: that of its data.
func TestAnEventIsAllocatedOnce(t *testing.T) {
	const events = 1000
	stream := strings.Repeat("data: {\"type\":\"TEXT_MESSAGE_CONTENT\"}\n\n", events)
	allocations := testing.AllocsPerRun(5, func() {
		for _, err := range sse.Read(strings.NewReader(stream), 1<<16) {
			if err != nil {
				t.Error(err)
			}
		}
	})
	if allocations > 1.05*events {
		t.Errorf("%.0f allocations for %d events", allocations, events)
	}
}
