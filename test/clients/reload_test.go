package clients

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pgagui/pgagui"
)

// Whatever event of a run came last, a client that reloads, on this server or another one, holds what the client holds that never went away,
// and what the log means; and so do all at the end.
func TestReloadAtEachEvent(t *testing.T) {
	t.Parallel()
	newStage(t).onEachVersion(t, func(s *scenario) {
		length := len((&call{}).everything(""))
		base := s.thread
		for k := 1 + slices.Index(versions, s.version); k < length; k += len(versions) { // the versions share the places
			s.thread = fmt.Sprint(base, " ", k)
			staying := s.client(s.here)
			run := staying.run("run", nil, user("u1", "Hello"))
			called := s.agent.called(s.t, s.thread)
			events := called.everything("1")
			called.send(events[:k]...)
			s.here.waitForSeq(s.t, s.thread, int64(k))
			meant := s.here.restored(s.t, s.thread, "")
			staying.wait(int64(k), meant)

			reloaded := []*client{s.client(s.here), s.client(s.there)}
			if k%4 < 2 {
				reloaded[1] = s.open(s.t, clientOptions{
					Version: s.version, Thread: s.thread, Base: s.there.URL, Connect: &request{"GET", s.there.URL + pathOf(s.thread)},
				})
			}
			var connections []*ending
			for _, c := range reloaded {
				connections = append(connections, c.connect())
				c.wait(int64(k), meant)
			}
			called.finish(events[k:]...)
			run.succeed()
			s.here.wantStatus(s.t, s.thread, "run", pgagui.Finished)
			meant = s.here.restored(s.t, s.thread, "")
			staying.want(meant)
			for i, c := range reloaded {
				connections[i].succeed()
				c.want(meant)
			}
		}
	})
}
