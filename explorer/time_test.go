package explorer_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
)

// At every event of the recordings a step shows what restore gives: state, interrupts, and the messages by their number.
func TestStepsShowWhatRestoreGives(t *testing.T) {
	t.Parallel()
	s, store := newOpenSite(t)
	steps := 0
	for _, thread := range []string{"trip-to-lisbon", "where-to-run-on-saturday", "release-checkout-2.4", "recipe-card"} {
		runs := must.Have(store.Runs(t.Context(), thread))(t)
		for _, run := range runs {
			for seq := run.FirstSeq; seq <= run.LastSeq; seq++ {
				page := fmt.Sprintf("time?id=%s&run=%s&seq=%d", url.QueryEscape(thread), url.QueryEscape(run.ID), seq)
				got := s.get(nil, page)
				got.want(t, http.StatusOK, fmt.Sprintf("<h2>Event %d ", seq))
				restored := must.Have(store.Restore(t.Context(), thread, pgagui.At{RunID: run.ID, Seq: seq}))(t)
				root := must.Have(html.Parse(strings.NewReader(got.text)))(t)
				var state string
				messages, interrupts := map[string]bool{}, 0
				for node := range root.Descendants() {
					classes := strings.Fields(attributeOf(node, "class"))
					switch {
					case len(classes) > 0 && classes[0] == "state-text":
						state = textOf(node)
					case len(classes) > 1 && classes[0] == "part" && classes[1] == "interrupt":
						interrupts++
					case len(classes) > 0 && classes[0] == "part":
						message, _, _ := strings.Cut(attributeOf(node, "data-key"), "-")
						messages[message] = true
					}
				}
				if !sameJSON(t, state, string(restored.State)) {
					t.Errorf("%s: the state is %s, want %s", page, state, restored.State)
				}
				// The result of a tool call stands in its call, and reasoning without a text nowhere.
				if interrupts != len(restored.Interrupts) || len(messages) > len(restored.Messages) || len(messages) == 0 && len(restored.Messages) > 1 {
					t.Errorf("%s: %d interrupts and %d messages, want %d and %d", page, interrupts, len(messages), len(restored.Interrupts), len(restored.Messages))
				}
				steps++
			}
			for _, seq := range []int64{run.FirstSeq - 1, run.LastSeq + 1} {
				if got := s.get(nil, fmt.Sprintf("time?id=%s&run=%s&seq=%d", url.QueryEscape(thread), url.QueryEscape(run.ID), seq)); seq > 0 && got.StatusCode != http.StatusNotFound {
					t.Errorf("event %d is not of run %s, but the page is %s", seq, run.ID, got.Status)
				}
			}
		}
	}
	if steps < 300 {
		t.Errorf("only %d steps", steps)
	}
}

func textOf(node *html.Node) string {
	var text strings.Builder
	for inner := range node.Descendants() {
		if inner.Type == html.TextNode {
			text.WriteString(inner.Data)
		}
	}
	return text.String()
}

// What is open, and what the event changed, stand beside the state. A number of the slider leads to its event.
func TestAStep(t *testing.T) {
	t.Parallel()
	s, store := newOpenSite(t)
	appendEvents(t, store, pgagui.RunRef{ThreadID: "skipped", RunID: "r"},
		event("RUN_STARTED"), event("STATE_DELTA", "delta", []any{map[string]any{"op": "_get", "path": "/a"}}), event("RUN_FINISHED"))
	const reason = "</span> operation 1 of the patch fails by RFC 6902"
	s.get(nil, "time?id=skipped&seq=2").want(t, http.StatusOK, reason)
	if got := s.get(nil, "time?id=skipped&seq=3"); strings.Contains(got.text, reason) {
		t.Errorf("the next event has no effect either: %s", got.text)
	}
	s.get(nil, "time?id=trip-to-lisbon&run=run-1&seq=14").want(t, http.StatusOK, "<h2>Open</h2>", `<bdi class="mono">flights</bdi>`, `rel="prev"`, `rel="next"`)
	s.get(nil, "time?id=trip-to-lisbon&run=run-2&seq=77").want(t, http.StatusOK, "<bdi>/days/1/note</bdi>", `<div class="changed">`)
	s.get(nil, "time?id=trip-to-lisbon&run=run-2&n=1").want(t, http.StatusOK, "<h2>Event 50 ", `data-seq="50"`)
	for _, n := range []string{"0", "-1", "46", "x", "1e9"} {
		if got := s.get(nil, "time?id=trip-to-lisbon&run=run-2&n="+n); got.StatusCode != http.StatusNotFound {
			t.Errorf("n=%s: %s", n, got.Status)
		}
	}
}
