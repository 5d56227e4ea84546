package clients

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/eventfile"
)

// recordedRun is what an agent answered to one request.
type recordedRun struct {
	ThreadID, RunID, ParentRunID string
	Input                        *struct {
		Messages []map[string]any
	}
	events []string
}

// recordings are the answers of real agents: the project's own recordings, and more where the folder ../shared/recordings is there.
func recordings(t *testing.T) map[string][]recordedRun {
	t.Helper()
	all := map[string][]recordedRun{}
	for _, pattern := range []string{"../../testdata/recordings/*.ndjson", "../../../shared/recordings/*.ndjson"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if !strings.HasSuffix(file, ".requests.ndjson") {
				all[filepath.Base(file)] = readRecording(t, file)
			}
		}
	}
	if len(all) == 0 {
		t.Fatal("there are no recordings")
	}
	return all
}

func readRecording(t *testing.T, file string) (runs []recordedRun) {
	t.Helper()
	source, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	for event, err := range eventfile.Read(file, source) {
		if err != nil {
			t.Fatal(err)
		}
		var opening struct {
			Type string
			recordedRun
		}
		if err := json.Unmarshal(event.Raw, &opening); err != nil {
			t.Fatal(err)
		}
		if opening.Type == "RUN_STARTED" {
			runs = append(runs, opening.recordedRun)
		}
		last := &runs[len(runs)-1]
		last.events = append(last.events, string(event.Raw))
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
	all := recordings(t)
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
