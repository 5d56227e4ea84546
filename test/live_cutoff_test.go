package test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/testdb"
)

// A writer whose run was ended in its place while it was away repeats the calls whose answers it lost. What the log has of them is
// answered with its seqs; what it does not have comes too late, and is never taken for a conflict of two writers.
func TestAWriterThatWasCutOff(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	db := testdb.Acquire(t, pool)
	g := &callGenerator{Rand: rand.New(rand.NewPCG(*firstSeed, 3))}
	answered := map[string]int{}
	for number := range 25 {
		thread := fmt.Sprint("t", number)
		call := func(after int64, events ...string) appendAnswer {
			return appendOne(t, db, appendCall{thread: &thread, run: new("r"), after: &after, events: new("[" + strings.Join(events, ",") + "]")}, false)
		}
		mustAppend := func(run string, events ...string) {
			t.Helper()
			answer := appendOne(t, db, appendCall{thread: &thread, run: &run, events: new("[" + strings.Join(events, ",") + "]"), parallel: new(true)}, false)
			if answer.code != "" {
				t.Fatal(answer)
			}
		}
		// The events that the writer appended, and their seqs: another run writes between them.
		sent, seqs := []string{`{"type":"RUN_STARTED","parentRunId":"root"}`}, []int64{0}
		mustAppend("root", `{"type":"RUN_STARTED"}`, `{"type":"RUN_FINISHED"}`)
		mustAppend("other", `{"type":"RUN_STARTED","parentRunId":"root"}`)
		mustAppend("r", sent[0])
		for range 1 + g.IntN(6) {
			if g.chance(50) {
				mustAppend("other", g.event())
			}
			events := []string{g.event()}
			if g.chance(50) {
				events = append(events, g.event())
			}
			if g.chance(50) {
				events = append(events, fmt.Sprintf(`{"type":"TEXT_MESSAGE_START","messageId":"m%d"}`, len(sent)))
			}
			mustAppend("r", events...)
			sent = append(sent, events...)
		}
		testdb.Exec(t, pool, `select agui.abandon($1, 'r', null)`, thread)
		if g.chance(50) {
			mustAppend("other", g.event())
		}
		var last int64
		for _, event := range logOf(t, pool, thread, "") {
			if event.run == "r" {
				last = event.seq
				if len(seqs) <= len(sent) {
					seqs = append(seqs, event.seq) // seqs[n] is that of the nth event, seqs[0] is 0
				}
			}
		}
		before := storedLog(t, pool)
		for range 15 {
			known := g.IntN(len(sent) + 1)
			upTo := known + g.IntN(len(sent)-known+1)
			events := slices.Clone(sent[known:upTo])
			late := g.IntN(3)
			if len(events) == 0 {
				late = 1
			}
			for range late {
				events = append(events, g.event())
			}
			want := appendAnswer{seq: seqs[upTo]}
			if late > 0 {
				want = appendAnswer{0, "UI016", fmt.Sprintf(`run "r" of thread "%s" was cut off (its writer is gone): event %d of the call is too late`, thread, upTo-known+1)}
			}
			got := call(seqs[known], events...)
			answered[got.code]++
			if got != want {
				t.Fatalf("-seed %d: after seq %d, %s answered %s, want %s; the run's events are\n%s", *firstSeed, seqs[known], events, got, want, strings.Join(sent, "\n"))
			}
		}
		// Its end in the log is as late; a seq behind that end is one that the log has lost.
		if got := call(seqs[len(sent)], `{"type":"RUN_FINISHED"}`); got.code != "UI016" {
			t.Errorf("-seed %d: the end of the run answered %s, want UI016", *firstSeed, got)
		}
		if got := call(last, g.event()); got.code != "UI016" {
			t.Errorf("-seed %d: after seq %d, its last: answered %s, want UI016", *firstSeed, last, got)
		}
		if got := call(last+1, g.event()); got.code != "UI017" {
			t.Errorf("-seed %d: after seq %d, behind its last: answered %s, want UI017", *firstSeed, last+1, got)
		}
		if after := storedLog(t, pool); !slices.Equal(before, after) {
			t.Fatalf("-seed %d: late calls changed the log to\n%s", *firstSeed, strings.Join(after, "\n"))
		}
	}
	if answered[""] < 50 || answered["UI016"] < 50 {
		t.Errorf("-seed %d: %v", *firstSeed, answered)
	}
}
