package testdb

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/devpg/cluster"
	"github.com/pgagui/pgagui/devpg/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/sql/schema"
)

// Replicated is a primary with the schema, and a streaming standby of it: servers of one test, which it may stop, kill and
// promote.
type Replicated struct {
	Primary, Standby *cluster.Cluster
	// PrimaryPool and StandbyPool are those of the superuser.
	PrimaryPool, StandbyPool *pgxpool.Pool
}

// NewReplicated starts both. They are stopped when the test ends.
func NewReplicated(t testing.TB) *Replicated {
	t.Helper()
	r := &Replicated{Primary: Server(t, nil)}
	if err := schema.Up(t.Context(), r.Primary.URL("postgres")); err != nil {
		t.Fatal("testdb:", err)
	}
	r.Standby = started(t)(r.Primary.Standby(t.Context(), cluster.Options{Settings: map[string]string{"fsync": "off"}, Folder: testdb.Folder()}))
	r.PrimaryPool, r.StandbyPool = Connect(t, r.Primary.URL("postgres")), Connect(t, r.Standby.URL("postgres"))
	return r
}

// Pause lets the standby show nothing new, until Resume.
func (r *Replicated) Pause(t testing.TB) {
	t.Helper()
	r.onStandby(t, `select pg_wal_replay_pause()`)
	r.eventually(t, `select pg_get_wal_replay_pause_state() = 'paused'`)
}

// Resume ends Pause.
func (r *Replicated) Resume(t testing.TB) {
	t.Helper()
	r.onStandby(t, `select pg_wal_replay_resume()`)
}

// Disconnect lets the standby receive nothing any more.
func (r *Replicated) Disconnect(t testing.TB) {
	t.Helper()
	r.onStandby(t, `alter system set primary_conninfo = ''`)
	r.onStandby(t, `select pg_reload_conf()`)
	r.eventually(t, `select not exists (select from pg_stat_wal_receiver)`)
}

func (r *Replicated) onStandby(t testing.TB, statement string) {
	t.Helper()
	if _, err := r.StandbyPool.Exec(t.Context(), statement); err != nil {
		t.Fatalf("testdb: %s: %v", statement, err)
	}
}

// eventually waits until the standby answers a question with yes.
func (r *Replicated) eventually(t testing.TB, question string) {
	t.Helper()
	wait.For(t, question, func() (isSo bool) {
		if err := r.StandbyPool.QueryRow(t.Context(), question).Scan(&isSo); err != nil {
			t.Fatalf("testdb: %s: %v", question, err)
		}
		return isSo
	})
}
