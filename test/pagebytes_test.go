package test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// Pages that are bounded in bytes have one event at least, no more bytes than that beyond it, and together all events, each once.
func TestPagesOfBytes(t *testing.T) {
	t.Parallel()
	store := pgagui.New(testdb.Pool(t), nil)
	run := pgagui.RunRef{ThreadID: "t", RunID: "r"}
	events := []json.RawMessage{json.RawMessage(`{"type":"RUN_STARTED"}`)}
	want := map[string]string{}
	for i := range 12 { // tokens, some long ones, and events that are joined with nothing
		id := fmt.Sprint("m", i)
		events = append(events, fmt.Appendf(nil, `{"type":"TEXT_MESSAGE_START","messageId":%q,"role":"assistant"}`, id))
		for n := range 40 {
			delta := strings.Repeat(fmt.Sprint(n), 1+i*n%7*20)
			want[id] += delta
			events = append(events, fmt.Appendf(nil, `{"type":"TEXT_MESSAGE_CONTENT","messageId":%q,"delta":%q}`, id, delta))
		}
		events = append(events, fmt.Appendf(nil, `{"type":"CUSTOM","name":"n","value":%q}`, strings.Repeat("v", 300*i)))
	}
	must.Have(store.Append(t.Context(), run, events, pgagui.AppendOptions{}))(t)
	check := func(what string, sizes []int, pageBytes int) {
		t.Helper()
		size := 0
		for _, one := range sizes {
			size += one
		}
		if size > pageBytes && len(sizes) != 1 || len(sizes) == 0 {
			t.Errorf("%s: a page of %d bytes has %d events with %d", what, pageBytes, len(sizes), size)
		}
	}
	for _, pageBytes := range []int{1, 500, 3000, 1 << 20} {
		for _, raw := range []bool{true, false} {
			what := fmt.Sprintf("%d bytes, raw %t", pageBytes, raw)
			got, seqs := map[string]string{}, 0
			options := pgagui.HistoryOptions{Limit: 1000, Raw: raw, PageBytes: pageBytes}
			for pages := 0; ; pages++ {
				page := must.Have(store.History(t.Context(), "t", options))(t)
				if !page.HasMore && pages == 0 && pageBytes < 1<<20 {
					t.Errorf("%s: one page has all", what)
				}
				if page.HasMore || len(page.Events) > 0 {
					var sizes []int
					for _, event := range page.Events {
						sizes = append(sizes, len(event.JSON))
						seqs += int(event.Count)
						var of struct{ MessageID, Delta string }
						must.Do(t, json.Unmarshal(event.JSON, &of))
						got[of.MessageID] += of.Delta
					}
					check(what, sizes, pageBytes)
				}
				if !page.HasMore {
					break
				}
				options.AfterSeq = page.AfterSeq
			}
			for id, text := range want {
				if got[id] != text {
					t.Errorf("%s: message %s has %d bytes, want %d", what, id, len(got[id]), len(text))
				}
			}
			if seqs != len(events) {
				t.Errorf("%s: %d events, want %d", what, seqs, len(events))
			}
		}
		what := fmt.Sprintf("the last events in %d bytes", pageBytes)
		options, seen := pgagui.LastEventsOptions{Limit: 1000}, int64(len(events)+1)
		for {
			page := must.Have(store.LastEventPage(t.Context(), "t", options, pageBytes))(t)
			var sizes []int
			for i := len(page.Events) - 1; i >= 0; i-- {
				event := page.Events[i]
				sizes = append(sizes, len(event.JSON))
				if event.Seq != seen-1 || string(event.JSON) != string(events[event.Seq-1]) {
					t.Fatalf("%s: event %d before %d", what, event.Seq, seen)
				}
				seen = event.Seq
			}
			check(what, sizes, pageBytes)
			if !page.HasMore {
				break
			}
			options.AtSeq = seen - 1
		}
		if seen != 1 {
			t.Errorf("%s: they end with %d", what, seen)
		}
	}
}
