package crash

import (
	"encoding/json"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/wait"
)

// loggedEvent is an event as the log has it in the end.
type loggedEvent struct {
	sighting
	payload []byte
}

// loggedRun is what the log has of a run in the end.
type loggedRun struct {
	thread       string
	status       pgagui.Status
	cutOffReason string
	events       []loggedEvent
}

// readLog returns all events, by thread.
func (r *round) readLog() map[string][]loggedEvent {
	r.t.Helper()
	log := map[string][]loggedEvent{}
	rows, err := r.pool.Query(r.t.Context(), `
		select thread_id, run_id, seq, recorded_at, payload::text
		from agui.event
		order by thread_id, seq`)
	must.Do(r.t, err)
	var thread, run, payload string
	var position pgagui.Position
	_, err = pgx.ForEachRow(rows, []any{&thread, &run, &position.Seq, &position.RecordedAt, &payload}, func() error {
		log[thread] = append(log[thread], loggedEvent{see(run, position, []byte(payload)), []byte(payload)})
		return nil
	})
	must.Do(r.t, err)
	return log
}

// waitForFollowers waits until every reader has seen the end of the log.
func (r *round) waitForFollowers(log map[string][]loggedEvent) {
	r.t.Helper()
	wait.For(r.t, "followers see the end of the log", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		for i := range r.seen {
			for _, chain := range r.seen[i] {
				events := log[chain.Thread]
				if last := len(chain.sightings) - 1; len(events) > 0 && (last < 0 || chain.sightings[last].Seq < events[len(events)-1].Seq) {
					return false
				}
			}
		}
		return true
	})
}

// check compares what everybody was told with the log.
func (r *round) check(log map[string][]loggedEvent) {
	r.t.Helper()
	r.checkFollowers(log)
	runs := r.checkRuns(log)
	r.checkWriters(log, runs)

	r.counts["runs"] = len(runs)
	for _, thread := range r.threads {
		r.counts["events"] += len(log[thread])
		if len(log[thread]) == 0 {
			r.t.Errorf("thread %s has no events", thread)
			continue
		}
		r.verify(thread)
	}
	r.t.Log(r.counts)
}

// verify checks that nothing is wrong with a thread: its snapshots mean what its log does.
func (r *round) verify(thread string) {
	r.t.Helper()
	problems := must.Have(pgagui.New(r.pool, nil).Maintenance().Verify(r.t.Context(), thread))(r.t)
	for _, problem := range problems {
		if problem.Severity == pgagui.Note {
			r.counts["notes"]++
			continue
		}
		r.t.Errorf("thread %s: run %s: %s", thread, problem.RunID, problem.Problem)
	}
}

// checkFollowers checks that each reader has seen every event once and in order.
func (r *round) checkFollowers(log map[string][]loggedEvent) {
	for i := range r.seen {
		for _, chain := range r.seen[i] {
			events := log[chain.Thread]
			for n := range max(len(events), len(chain.sightings)) {
				if n < len(events) && n < len(chain.sightings) && chain.sightings[n].equal(events[n].sighting) {
					continue
				}
				var seen, want any
				if n < len(chain.sightings) {
					seen = chain.sightings[n]
				}
				if n < len(events) {
					want = events[n].sighting
				}
				r.t.Errorf("follower %d, thread %s (slow: %t): event %d of %d is %+v, in the log %d of %d is %+v",
					i, chain.Thread, chain.Slow, n+1, len(chain.sightings), seen, n+1, len(events), want)
				break
			}
		}
	}
}

// checkRuns checks that each run has its events 1, 2, 3, … and nothing else, but for the end that one was given which lost its writer.
func (r *round) checkRuns(log map[string][]loggedEvent) map[string]*loggedRun {
	runs := map[string]*loggedRun{}
	rows, err := r.pool.Query(r.t.Context(), `
		select thread.thread_id, run.run_id, run.status, coalesce(run.cut_off_reason, ''), coalesce(input.input::text, '')
		from agui.run join agui.thread using (thread_key) left join agui.input using (thread_key, run_no)`)
	must.Do(r.t, err)
	var thread, id, status, reason, input string
	_, err = pgx.ForEachRow(rows, []any{&thread, &id, &status, &reason, &input}, func() error {
		if input != string(inputOf(id)) {
			r.t.Errorf("run %s has the input %s, want %s", id, input, inputOf(id))
		}
		runs[id] = &loggedRun{thread: thread, status: pgagui.Status(status), cutOffReason: reason}
		return nil
	})
	must.Do(r.t, err)
	for thread, events := range log {
		for n, event := range events {
			if event.Seq != int64(n+1) {
				r.t.Fatalf("thread %s: event %d has seq %d", thread, n+1, event.Seq)
			}
			runs[event.Run].events = append(runs[event.Run].events, event)
		}
	}
	for id, run := range runs {
		var open []string // the ends that it needs, innermost last
		own := 0
		for n, event := range run.events {
			mark := markOf(event.payload)
			eventType := compaction.EventType(event.payload)
			if mark.Run != "" { // the writer's
				if own++; own != n+1 || mark.Index != own || mark.Run != id || mark.Thread != run.thread {
					r.t.Errorf("run %s of thread %s: event %d is %s", id, run.thread, n+1, event.payload)
					break
				}
			}
			switch name := mark.StepName + mark.MessageID + mark.ToolCallID; {
			case strings.HasSuffix(eventType, "_START") || eventType == "STEP_STARTED":
				open = append(open, name)
			case strings.HasSuffix(eventType, "_END") || eventType == "STEP_FINISHED":
				if len(open) == 0 || open[len(open)-1] != name {
					r.t.Errorf("run %s: event %d ends what is not open innermost: %s", id, n+1, event.payload)
					break
				}
				open = open[:len(open)-1]
			}
		}
		last := markOf(run.events[len(run.events)-1].payload)
		isCutOff := run.cutOffReason != ""
		want := pgagui.Finished
		if isCutOff {
			want = pgagui.CutOff
		} else if compaction.EventType(run.events[len(run.events)-1].payload) == "RUN_ERROR" {
			want = pgagui.Failed
		}
		if run.status != want {
			r.t.Errorf("run %s is %s, want %s; cut off: %q", id, run.status, want, run.cutOffReason)
		}
		if len(open) > 0 || isCutOff != (last.Code == "RUN_CUT_OFF") || isCutOff == (own == len(run.events)) {
			r.t.Errorf("run %s (cut off: %q) has %d events, %d of them its writer's, left open %v; the last is %s",
				id, run.cutOffReason, len(run.events), own, open, run.events[len(run.events)-1].payload)
		}
	}
	return runs
}

// mark is what tells where an event of a writer belongs, and what it opens or ends.
type mark struct {
	Thread     string `json:"ofThread"`
	Run        string `json:"ofRun"`
	Index      int    `json:"index"`
	StepName   string `json:"stepName"`
	MessageID  string `json:"messageId"`
	ToolCallID string `json:"toolCallId"`
	Code       string `json:"code"`
}

func markOf(payload []byte) (mark mark) {
	_ = json.Unmarshal(payload, &mark) // it comes from the log
	return mark
}

// checkWriters checks that what writers were told is in the log.
func (r *round) checkWriters(log map[string][]loggedEvent, runs map[string]*loggedRun) {
	outcomes := map[string]outcome{} // the last one of each run
	for _, line := range r.writerLines {
		outcomes[line.Run] = line.Outcome
	}
	lost := map[string]bool{}
	for _, line := range r.writerLines {
		if line.Outcome != stored && line.Outcome != completed {
			r.counts["writers told: "+string(line.Outcome)]++
			continue
		}
		r.counts["acknowledgements"]++
		if events := log[line.Thread]; line.Seq <= int64(len(events)) {
			if mark := markOf(events[line.Seq-1].payload); mark.Run == line.Run && mark.Index == line.Index {
				continue
			}
		}
		lost[line.Run] = true
		r.counts["acknowledgements lost"]++
		if !r.variant.relaxed {
			r.t.Errorf("run %s of thread %s: event %d was stored with seq %d, the log has something else there", line.Run, line.Thread, line.Index, line.Seq)
		}
	}
	r.counts["runs lost in part"] = len(lost)
	r.counts["readers told: rewound"] = r.rewoundTimes
	for id := range lost {
		if outcome := outcomes[id]; outcome == stored && !r.killed[writerOf(id)] {
			r.t.Errorf("run %s lost events, and its writer was not told", id)
		}
	}
	for id, outcome := range outcomes {
		if outcome == rewound && !r.variant.relaxed {
			r.t.Errorf("run %s was rewound, although every commit waited for the disk", id)
		}
		if run := runs[id]; outcome == cutOff && (run == nil || run.cutOffReason == "") && !r.variant.relaxed {
			r.t.Errorf("run %s was cut off for its writer, not in the log", id)
		}
	}
	for id, run := range runs {
		if run.cutOffReason == "" {
			continue
		}
		r.counts["runs cut off"]++
		outcome := outcomes[id]
		isTold := outcome == cutOff || r.variant.relaxed && (outcome == rewound || outcome == completed)
		if !isTold && !r.killed[writerOf(id)] {
			r.t.Errorf("run %s was cut off (%s), and its writer was told: %q", id, run.cutOffReason, outcome)
		}
	}
}

// writerOf is the name of the writer of a run.
func writerOf(runID string) string {
	name, _, _ := strings.Cut(runID, "-")
	return name
}
