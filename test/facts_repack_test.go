package test

import (
	"encoding/json"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
)

// Facts that were read before a run was repacked are those of the log afterwards.
func TestFactsStayTrueWhenARunIsRepacked(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	large := make([]json.RawMessage, 100) // a batch that is compressed
	for i := range large {
		large[i] = json.RawMessage(`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"some words of an answer "}`)
	}
	for _, events := range [][]json.RawMessage{{json.RawMessage(`{"type":"RUN_STARTED"}`)}, large, {json.RawMessage(`{"type":"RUN_FINISHED"}`)}} {
		mustAppend(t, store, "t", "r", events)
	}
	wait.For(t, "the projection", func() bool {
		testdb.Exec(t, pool, `call agui.project()`)
		return testdb.Ask[bool](t, pool, `select exists (select from agui.projected_run)`)
	})
	for _, job := range []string{`call agui.compact()`, `call agui.repack(older_than => '0')`} {
		testdb.Exec(t, pool, job)
	}
	problems, err := store.Maintenance().Verify(t.Context(), "t")
	if err != nil || len(problems) > 0 {
		t.Errorf("verify: %+v, error %v", problems, err)
	}
}
