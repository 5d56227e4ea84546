package clients

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/recorded"
)

// recordedRun is what an agent answered to one request.
type recordedRun struct {
	ThreadID, RunID, ParentRunID string
	Input                        *struct {
		Messages []map[string]any
	}
	events []string
}

func readRecording(t *testing.T, file string) (runs []recordedRun) {
	t.Helper()
	for _, run := range recorded.Read(t, file) {
		var read recordedRun
		must.Do(t, json.Unmarshal(run.Events[0], &read))
		for _, event := range run.Events {
			read.events = append(read.events, string(event))
		}
		runs = append(runs, read)
	}
	return runs
}

// questions are the messages of the user in the run that the client does not hold yet. They come from the recorded input, or else are made up.
func (r recordedRun) questions(number int, c *client) (questions []any) {
	if r.Input == nil {
		return []any{user(fmt.Sprint("question ", number), "Go on")}
	}
	held := map[any]bool{}
	for _, message := range c.look().Messages.([]any) {
		held[message.(map[string]any)["id"]] = true
	}
	for _, message := range r.Input.Messages {
		if !held[message["id"]] {
			questions = append(questions, message)
		}
	}
	return questions
}

// What real agents answered: two clients, one of which reloads in the middle of each run, hold what the log means.
func TestRecordings(t *testing.T) {
	t.Parallel()
	all := map[string][]recordedRun{}
	for _, file := range recorded.Files(t, "../..") {
		all[filepath.Base(file)] = readRecording(t, file)
	}
	newStage(t).onEachVersion(t, func(s *scenario) {
		for file, runs := range all {
			clients := map[string]*client{} // by thread
			for i, run := range runs {
				s.thread = fmt.Sprintf("%s %s %s", s.version, file, run.ThreadID)
				staying := clients[s.thread]
				parameters := map[string]any{}
				switch {
				case run.ParentRunID != "" && run.ParentRunID != runs[i-1].RunID: // another branch
					staying = s.open(s.t, clientOptions{
						Version: s.version, Thread: s.thread, Base: s.here.URL,
						Connect: &request{"GET", s.here.URL + pathOf(s.thread) + "?run=" + url.QueryEscape(run.ParentRunID)},
					})
					staying.connect().succeed()
					parameters = forwarded(map[string]any{"parentRunId": run.ParentRunID})
				case staying == nil:
					staying = s.client(s.here)
				}
				var answers []any
				for _, interrupt := range staying.look().Interrupts.([]any) {
					answers = append(answers, map[string]any{"interruptId": interrupt.(map[string]any)["id"], "status": "resolved", "payload": true})
				}
				if answers != nil {
					parameters["resume"] = answers
				}
				before := len(staying.frames())
				running := staying.run(run.RunID, parameters, run.questions(i, staying)...)
				called := s.agent.calledBy(running, s.thread)
				half := len(run.events) / 2
				called.send(run.events[:half]...)
				staying.waitForEvents(before + half/2)
				reloaded := s.client(s.there)
				connected := reloaded.connect()
				called.finish(run.events[half:]...)
				running.succeed()
				connected.succeed()
				meant := s.here.restored(s.t, s.thread, run.RunID)
				staying.want(meant)
				reloaded.want(meant)
				if s.t.Failed() {
					s.t.Fatalf("%s, run %s: %s", file, run.RunID, strings.Join(run.events, "\n"))
				}
				clients[s.thread] = reloaded
			}
		}
	})
}
