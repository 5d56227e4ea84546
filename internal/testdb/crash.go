package testdb

import (
	"errors"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/internal/wait"
)

// KillBackend kills a process of the pool's server with SIGKILL, and waits until the server has recovered from that. It skips the
// test if the processes of the server belong to another user.
func KillBackend(t testing.TB, pool *pgxpool.Pool, pid int) {
	t.Helper()
	before, err := checkpointer(t, pool)
	if err != nil {
		t.Fatal(err)
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Kill(); errors.Is(err, os.ErrPermission) {
		t.Skip("the processes of the server are not ours to kill: ", err)
	} else if err != nil {
		t.Fatal(err)
	}
	wait.For(t, "the server to recover", func() bool {
		after, err := checkpointer(t, pool)
		return err == nil && after != before
	})
	pool.Reset()
}

// checkpointer is the process number of the server's checkpointer, which is another one after a recovery: until the server notices that
// a process was killed, it takes connections.
func checkpointer(t testing.TB, pool *pgxpool.Pool) (pid int, err error) {
	connection, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
	if err != nil {
		return 0, err
	}
	defer connection.Close(t.Context())
	err = connection.QueryRow(t.Context(), `select pid from pg_stat_activity where backend_type = 'checkpointer'`).Scan(&pid)
	return pid, err
}
