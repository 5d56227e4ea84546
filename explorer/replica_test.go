package explorer_test

import (
	"bufio"
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/explorer"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/server"
)

// lines gets the lines of a log, as long as it has place for them.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	select {
	case l <- string(line):
	default:
	}
	return len(line), nil
}

// Pages come from the standby of the server, except for those who have just written or were just told of an event.
func TestPagesAreReadFromAStandby(t *testing.T) {
	t.Parallel()
	replicated := testdb.NewReplicated(t)
	store := pgagui.New(replicated.PrimaryPool, nil)
	log := make(lines, 100)
	handler, err := server.New(store, server.Options{
		Access: named{}, Reads: pgagui.New(replicated.StandbyPool, nil), MaxReadLag: time.Hour, Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	must.Do(t, err)
	t.Cleanup(func() {
		must.Report(t, handler.Shutdown(context.WithoutCancel(t.Context())))
	})
	s := newSite(t, store, explorer.Options{Access: named{}, Door: handler.Door()})
	title := func(text string) {
		testdb.Exec(t, replicated.PrimaryPool, `select agui.set_thread('t', title => $1, scope => scope) from unnest(array['writer', 'follower']) as scope`, text)
	}
	testdb.Exec(t, replicated.PrimaryPool, `
		select agui.append('t', 'r', '[{"type":"RUN_STARTED"}]', scope => scope) from unnest(array['writer', 'follower']) as scope`)
	title("before")
	wait.For(t, "the standby has the threads", func() bool {
		return testdb.Ask[int](t, replicated.StandbyPool, `select count(*)::int from unnest(array['writer', 'follower']) as s, agui.threads(scope => s) as t where t.title = 'before'`) == 2
	})
	for !strings.Contains(<-log, "reads go to the replica") {
	}
	replicated.Pause(t)
	title("after")

	page := func(reader, want string) {
		t.Helper()
		for _, name := range []string{"", "thread?id=t"} {
			s.do(nil, http.MethodGet, name, nil, []string{"Authorization", "Bearer " + reader}).want(t, http.StatusOK, want)
		}
	}
	page("writer", "before")
	page("follower", "before")
	s.post(staying(http.DefaultClient), "stop", url.Values{"id": {"t"}, "run": {"r"}}, "Authorization", "Bearer writer").want(t, http.StatusSeeOther)
	page("writer", "after")
	page("follower", "before")

	request := must.Have(http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"events?id=t&after=0", nil))(t)
	request.Header.Set("Authorization", "Bearer follower")
	told := must.Have(http.DefaultClient.Do(request))(t)
	defer told.Body.Close()
	for line := bufio.NewScanner(told.Body); line.Scan() && line.Text() != "data: 1"; {
	}
	page("follower", "after")
	replicated.Resume(t)
}
