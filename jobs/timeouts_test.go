package jobs_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/jobs"
)

// A job folds between the statements of a transaction, for longer than the server lets others be idle in one.
func TestJobsFoldLongerThanATransactionMayBeIdle(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	pool := testdb.Connect(t, url)
	// Each patch moves all items of a list.
	body := []string{`{"type":"STATE_SNAPSHOT","snapshot":{"list":[` + strings.TrimSuffix(strings.Repeat("1,", 100_000), ",") + `]}}`}
	for range 1000 {
		body = append(body, `{"type":"STATE_DELTA","delta":[{"op":"add","path":"/list/0","value":2},{"op":"remove","path":"/list/0"}]}`)
	}
	appendInBatches(t, pgagui.New(pool, nil), "t", "r", "", 1000, body...)
	impatient := testdb.ConnectWith(t, url, func(config *pgxpool.Config) {
		config.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = "400ms"
	})
	if done := mustCompact(t, impatient, jobs.CompactOptions{}); done.Runs != 1 || done.Quarantined > 0 {
		t.Errorf("compacted %+v", done)
	}
	if done, err := jobs.Verify(t.Context(), impatient, jobs.VerifyOptions{}); err != nil || done.Problems > 0 || done.Runs != 1 {
		t.Errorf("verified %+v, error %v", done, err)
	}
}
