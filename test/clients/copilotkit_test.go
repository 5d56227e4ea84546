package clients

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
)

// app is an app with CopilotKit's core.
type app struct{ *client }

// onEachTransport plays a scenario over the paths of the runtime, and over its single path.
func (s *stage) onEachTransport(t *testing.T, play func(s *scenario)) {
	for _, transport := range []string{"rest", "single", "auto"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			play(&scenario{s, t, transport, strings.ReplaceAll(t.Name(), "/", " ä/")})
		})
	}
}

// app returns an app that shows the thread of the scenario, and has seen nothing of it yet.
func (s *scenario) app(base *process) app {
	s.t.Helper()
	return app{s.openKind(s.t, "copilotkit", map[string]any{
		"url": base.URL + "/copilotkit", "transport": s.version, "agent": "test", "thread": s.thread,
	})}
}

// list returns the threads as the app shows them, each "id name archived", and how the store failed.
func (a app) list(args map[string]any) (list []string) {
	a.t.Helper()
	args["agent"] = "test"
	return a.shown(a.ask("list", args))
}

func (a app) change(call, thread string, name ...string) (list []string) {
	a.t.Helper()
	return a.shown(a.ask("change", map[string]any{"call": call, "thread": thread, "name": strings.Join(name, "")}))
}

func (a app) shown(answer json.RawMessage) (list []string) {
	a.t.Helper()
	var shown struct {
		Threads []struct {
			ID, Name string
			Archived bool
		}
		Error string
	}
	must.Do(a.t, json.Unmarshal(answer, &shown))
	if shown.Error != "" {
		a.t.Errorf("the list of threads: %s", shown.Error)
	}
	for _, thread := range shown.Threads {
		line := thread.ID + " | " + thread.Name
		if thread.Archived {
			line += " | archived"
		}
		list = append(list, line)
	}
	return list
}

func TestCopilotKitRunsAndReloads(t *testing.T) {
	t.Parallel()
	newStage(t).onEachTransport(t, func(s *scenario) {
		staying := s.app(s.here)
		var agents []string
		if err := json.Unmarshal(staying.ask("agents", nil), &agents); err != nil || !slices.Equal(agents, []string{"test"}) {
			s.t.Errorf("the app found the agents %q", agents)
		}
		staying.connect().succeed() // the thread does not exist yet
		s.play(staying.client, "run-1", nil, user("u1", "Hello"))
		meant := s.here.restored(s.t, s.thread, "run-1")
		staying.want(meant)
		staying.connect().succeed()
		staying.want(meant)

		running := staying.run("run-2", nil, user("u2", "More"))
		called := s.agent.called(s.t, s.thread)
		events := called.everything(" of run-2")
		called.send(events[:15]...)
		status := must.Have(s.here.store.Status(s.t.Context(), pgagui.RunRef{ThreadID: s.thread, RunID: "run-1"}))(s.t)
		s.here.waitForSeq(s.t, s.thread, status.LastSeq+15)
		meant = s.here.restored(s.t, s.thread, "")
		staying.hold(meant)
		reloaded := s.app(s.there)
		connected := reloaded.connect()
		reloaded.hold(meant)
		called.finish(events[15:]...)
		running.succeed()
		connected.succeed()
		meant = s.here.restored(s.t, s.thread, "run-2")
		for _, a := range []app{staying, reloaded} {
			a.want(meant)
			a.connect().succeed()
			a.want(meant)
		}
		// The client of the protocol reads the same.
		s.version = versions[0]
		s.wantReloads(meant, "run-2", true)
	})
}

func TestCopilotKitStops(t *testing.T) {
	t.Parallel()
	newStage(t).onEachTransport(t, func(s *scenario) {
		staying := s.app(s.here)
		running := staying.run("run-1", nil, user("u1", "Hello"))
		called := s.agent.called(s.t, s.thread)
		called.send(called.everything("")[:11]...)
		s.here.waitForSeq(s.t, s.thread, 11)
		staying.hold(s.here.restored(s.t, s.thread, ""))
		reloaded := s.app(s.there)
		connected := reloaded.connect()
		reloaded.hold(s.here.restored(s.t, s.thread, ""))
		staying.ask("stop", nil)
		<-called.context.Done()
		running.succeed()
		connected.succeed()
		s.here.wantStatus(s.t, s.thread, "run-1", pgagui.Cancelled)
		meant := s.here.restored(s.t, s.thread, "run-1")
		staying.want(meant)
		reloaded.want(meant)
		// A stopped thread goes on.
		s.play(reloaded.client, "run-2", nil, user("u2", "Go on"))
		reloaded.want(s.here.restored(s.t, s.thread, "run-2"))
		// So does one that the app stops after a reload, where it does not know the run.
		running = reloaded.run("run-3", nil, user("u3", "And on"))
		called = s.agent.called(s.t, s.thread)
		called.send(called.event("RUN_STARTED"))
		status := must.Have(s.here.store.Status(s.t.Context(), pgagui.RunRef{ThreadID: s.thread, RunID: "run-2"}))(s.t)
		s.here.waitForSeq(s.t, s.thread, status.LastSeq+1)
		again := s.app(s.there)
		connected = again.connect()
		reloaded.hold(s.here.restored(s.t, s.thread, "run-3"))
		again.hold(s.here.restored(s.t, s.thread, "run-3"))
		again.ask("stop", nil)
		<-called.context.Done()
		running.succeed()
		connected.succeed()
	})
}

func TestCopilotKitThreads(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"rest", "single"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			stage := newStage(t) // a list of its own
			s := &scenario{stage, t, transport, ""}
			var want []string
			for i := range 5 {
				s.thread = fmt.Sprint("thread ä/", i)
				s.play(s.app(s.here).client, fmt.Sprint("run ", i), nil, user(fmt.Sprint("u", i), fmt.Sprint("Question ", i)))
				want = append([]string{fmt.Sprintf("%s | Question %d", s.thread, i)}, want...)
			}
			a := s.app(s.there)
			expect := func(what string, got, want []string) {
				t.Helper()
				if !slices.Equal(got, want) {
					t.Errorf("%s: the app shows\n%q\nwanted\n%q", what, got, want)
				}
			}
			expect("list", a.list(map[string]any{}), want)
			expect("first page", a.list(map[string]any{"limit": 2}), want[:2])
			expect("all pages", a.list(map[string]any{"limit": 2, "all": true}), want)
			expect("a list without the agent", a.shown(a.ask("list", map[string]any{"agent": "other"})), nil)

			a.change("renameThread", "thread ä/3", "Renamed")
			want[1] = "thread ä/3 | Renamed"
			expect("renamed", sorted(a.list(map[string]any{})), sorted(want))
			a.change("archiveThread", "thread ä/2")
			without := slices.Delete(slices.Clone(want), 2, 3)
			expect("archived", sorted(a.list(map[string]any{})), sorted(without))
			want[2] += " | archived"
			expect("with the archived", sorted(a.list(map[string]any{"includeArchived": true})), sorted(want))
			a.change("unarchiveThread", "thread ä/2")
			a.change("deleteThread", "thread ä/1")
			want[2] = strings.TrimSuffix(want[2], " | archived")
			want = slices.Delete(want, 3, 4)
			expect("deleted", sorted(a.list(map[string]any{})), sorted(want))

			// The thread that was deleted is empty, and takes no run.
			s.thread = "thread ä/1"
			gone := s.app(s.here)
			gone.connect().succeed()
			gone.want(meaning{[]any{}, map[string]any{}, []any{}})
			if failure := gone.run("run", nil, user("u", "Hello?")).failure(); !strings.Contains(failure, "deleted") {
				t.Errorf("a run in a thread that was deleted: %q", failure)
			}
		})
	}
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }
