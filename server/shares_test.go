package server_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/server/access"
)

// Anyone who may log in to the database can lock a thread. The requests that wait for it leave connections to others.
func TestLockedThreadsOfOneLeaveConnectionsToOthers(t *testing.T) {
	t.Parallel()
	database := testdb.Pool(t)
	small := testdb.ConnectWith(t, database.Config().ConnString(), func(config *pgxpool.Config) {
		config.MaxConns = 4
		config.ConnConfig.RuntimeParams["lock_timeout"] = "1s"
	})
	a := newAgent(t)
	options := withAgent(a)
	options.Access = named{
		"one": {Scope: "1", Subject: "one", Rights: access.Admin}, "two": {Scope: "2", Subject: "two", Rights: access.Admin},
	}
	p := serve(t, small, options)

	const locked = 6
	tx := testdb.Begin(t, database)
	defer tx.Rollback(t.Context())
	testdb.Exec(t, tx, `select pg_advisory_xact_lock(agui_internal.thread_lock_id(agui.thread_key('1', 'locked' || n))) from generate_series(1, $1) as n`, locked)
	answers := make(chan int, locked)
	for n := range locked {
		go func() {
			answer := p.request("POST", "/agent/test/run", input(fmt.Sprint("locked", n+1), "run-1", "u1 user hello"), "Authorization", "Bearer one")
			answer.Body.Close()
			answers <- answer.StatusCode
		}()
	}
	most := make(chan int, 1)
	go func() {
		highest := 0
		for len(answers) < locked {
			var waiting int
			if err := database.QueryRow(t.Context(), `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`).Scan(&waiting); err != nil {
				t.Error(err)
				break
			}
			highest = max(highest, waiting)
		}
		most <- highest
	}()
	for n := 0; len(answers) < locked; n++ {
		answer := p.json(200, "POST", fmt.Sprintf("/threads/t%d/runs/run-1/events", n), `{"events":[{"type":"RUN_STARTED"}],"afterSeq":0}`, "Authorization", "Bearer two")
		if answer["lastSeq"] != 1. {
			t.Errorf("the append of another: %v", answer)
		}
	}
	if waited := <-most; waited != 3 {
		t.Errorf("%d of 4 connections waited at once", waited)
	}
	for range locked {
		if status := <-answers; status != 503 && status != 429 {
			t.Errorf("a run of a locked thread: status %d", status)
		}
	}
}
