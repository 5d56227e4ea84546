package explorer_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/explorer"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/jobs"
	"github.com/pgagui/pgagui/server/access"
)

// The handler alone, for a thread of 1,000 runs and 100,000 events: a tree with a branch at each tenth run, and a chain.
func BenchmarkThread(b *testing.B) {
	pool := testdb.Pool(b)
	store := pgagui.New(pool, nil)
	for _, thread := range []string{"tree", "chain"} {
		var calls []pgagui.AppendCall
		for i := range 1000 {
			run := "run-" + strconv.Itoa(i)
			call := pgagui.AppendCall{Run: pgagui.RunRef{ThreadID: thread, RunID: run}, Events: []rawMessage{started(thread, run, "Question "+strconv.Itoa(i))}, NoParent: i == 0}
			if i > 0 {
				call.ParentRunID = "run-" + strconv.Itoa(i-1)
				if thread == "tree" && i%10 == 0 {
					call.ParentRunID = "run-" + strconv.Itoa(i*7/10)
				}
			}
			call.Events = append(call.Events, event("TEXT_MESSAGE_START", "messageId", "m-"+run, "role", "assistant"))
			for token := range 96 {
				call.Events = append(call.Events, event("TEXT_MESSAGE_CONTENT", "messageId", "m-"+run, "delta", fmt.Sprintf("word%d ", token)))
			}
			call.Events = append(call.Events, event("TEXT_MESSAGE_END", "messageId", "m-"+run), finished(thread, run))
			calls = append(calls, call)
		}
		for len(calls) > 0 {
			part := calls[:100]
			calls = calls[100:]
			results := must.Have(store.AppendMany(b.Context(), part, pgagui.AppendManyOptions{}))(b)
			for _, result := range results {
				if result.Err != nil {
					b.Fatal(result.Err)
				}
			}
		}
	}
	must.Have(jobs.Compact(b.Context(), pool, jobs.CompactOptions{}))(b)
	limits := access.LimitOptions{RequestsPerSecond: -1}
	pages := explorer.New(store, explorer.Options{Access: access.Anonymous("", access.Admin), Limits: limits})
	defer pages.Close()
	for _, page := range []string{"thread?id=tree", "thread?id=chain", "thread?id=chain&run=run-500", "time?id=chain&run=run-999&seq=99950", "log?id=chain", "times?id=chain", "compare?id=chain", ""} {
		b.Run("page="+page, func(b *testing.B) {
			for b.Loop() {
				recorder := httptest.NewRecorder()
				pages.ServeHTTP(recorder, httptest.NewRequestWithContext(b.Context(), "GET", "/"+page, nil))
				if recorder.Code != http.StatusOK {
					b.Fatalf("%d %s", recorder.Code, recorder.Body)
				}
			}
		})
	}
}
