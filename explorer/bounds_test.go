package explorer_test

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/explorer"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/server/access"
	"github.com/pgagui/pgagui/server/door"
)

// Each page of a thread with large documents is shown in part or refused, and receives no more from the database than an answer may
// take.
func TestReadsOfLargeDocumentsAreBounded(t *testing.T) {
	t.Parallel()
	const rows, size, budget = 12, 256 << 10, 4 << 20
	database := testdb.Pool(t)
	testdb.FillLarge(t, database, rows, size)
	testdb.Exec(t, database, `select agui.set_setting('fold_bytes', ($1::int / 4)::text)`, budget)
	var received *atomic.Int64
	pool := testdb.ConnectWith(t, database.Config().ConnString(), func(config *pgxpool.Config) { received = testdb.CountBytes(config) })
	store := pgagui.New(pool, nil)
	entry := door.New(store, door.Options{MaxBufferedBytes: budget, Limits: access.LimitOptions{RequestsPerSecond: -1}})
	s := newSite(t, store, explorer.Options{Access: access.Anonymous("", access.Admin), Door: entry})

	const message = "&run=run-12&message=m12"
	pages := map[string][]string{
		"GET /": {"?q=aW1n"}, "GET /login": {"login"}, "GET /health": {"health"}, "GET /waiting": {"waiting"},
		"GET /thread": {"thread?id=large"}, "GET /attachment": {"attachment?id=large&run=run-1&n=1"},
		"GET /log": {"log?id=large&runs=all&raw=1", "log?id=large&runs=all"}, "GET /ndjson": {"ndjson?id=large&runs=all", "ndjson?id=large&run=run-12&whole=1"},
		"GET /time": {"time?id=large"}, "GET /times": {"times?id=large"}, "GET /compare": {"compare?id=large&from=run-1&to=run-12"},
		"GET /continue": {"continue?id=large" + message}, "GET /input": {"input?id=large&as=new" + message}, "GET /events": nil, // a stream without documents
	}
	for _, route := range s.pages.Routes() {
		if !strings.HasPrefix(route, "GET ") {
			continue
		}
		if _, isKnown := pages[route]; !isKnown {
			t.Errorf("%s is a new page: name its largest answer here", route)
		}
		for _, page := range pages[route] {
			before := received.Load()
			got := s.get(nil, page)
			size, most := received.Load()-before, int64(budget/2+size+size/4)
			t.Logf("%-50s %s: %7d KB of the database, %7d KB answered", page, got.Status[:3], size>>10, len(got.text)>>10)
			if size > most {
				t.Errorf("%s: %d KB came from the database, want %d at most", page, size>>10, most>>10)
			}
			if pageOfLog := strings.HasPrefix(page, "log?") || strings.HasPrefix(page, "ndjson?"); pageOfLog && got.StatusCode != http.StatusOK {
				t.Errorf("%s gives no page: %s", page, got.Status)
			}
			if !slices.Contains([]int{http.StatusOK, http.StatusUnprocessableEntity}, got.StatusCode) {
				t.Errorf("%s: %s %.300s", page, got.Status, got.text)
			}
		}
	}
	wait.For(t, "no memory is in use", func() bool { return entry.Memory.Used() == 0 })
}
