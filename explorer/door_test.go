package explorer_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/explorer"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/server/access"
	"github.com/pgagui/pgagui/server/door"
)

// named authenticates identities by a token that is their name, in scopes of this name.
type named struct{}

func (named) Authenticate(r *http.Request) (access.Identity, error) {
	name, isToken := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !isToken {
		return access.Identity{}, &access.Refusal{Kind: access.ErrNoToken, Reason: "no token"}
	}
	return access.Identity{Scope: name, Subject: name, Rights: access.Admin}, nil
}

// The requests of one that wait for locks leave connections to others.
func TestLockedThreadsOfOneLeaveConnectionsToOthers(t *testing.T) {
	t.Parallel()
	const locked = 6
	database := testdb.Pool(t)
	testdb.Exec(t, database, `select agui.append('locked' || n, 'r', '[{"type":"RUN_STARTED"}]', scope => 'one') from generate_series(1, $1) as n`, locked)
	small := testdb.ConnectWith(t, database.Config().ConnString(), func(config *pgxpool.Config) {
		config.MaxConns = 4
		config.ConnConfig.RuntimeParams["lock_timeout"] = "2s"
	})
	s := newSite(t, pgagui.New(small, nil), explorer.Options{Access: named{}})
	tx := testdb.Begin(t, database)
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	testdb.Exec(t, tx, `select from agui.run for update`)
	answers := make(chan int, locked)
	for n := range locked {
		go func() {
			answers <- s.post(staying(http.DefaultClient), "stop", url.Values{"id": {fmt.Sprint("locked", n+1)}, "run": {"r"}}, "Authorization", "Bearer one").StatusCode
		}()
	}
	waiting := func() int {
		return testdb.Ask[int](t, database, `select count(*)::int from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)
	}
	wait.For(t, "as many as may wait wait", func() bool { return waiting() == 3 || len(answers) > 0 })
	for n := 0; n < 5; n++ {
		if got := s.do(nil, "GET", "", nil, []string{"Authorization", "Bearer two"}); got.StatusCode != http.StatusOK {
			t.Errorf("a page of another: %s", got.Status)
		}
		if most := waiting(); most > 3 {
			t.Errorf("%d of 4 connections wait at once", most)
		}
	}
	for range locked {
		if status := <-answers; status != http.StatusServiceUnavailable {
			t.Errorf("to stop a locked run: status %d", status)
		}
	}
}

// A page whose statements take too long is refused.
func TestPagesThatTakeTooLong(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	s := newSite(t, store, explorer.Options{Access: named{}, Door: door.New(store, door.Options{ReadTimeout: 300 * time.Millisecond})})
	testdb.Exec(t, pool, `select agui.append('t', 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]', input => '{"messages":[]}', scope => 'one')`)
	for page, table := range map[string]string{
		"":          "agui.thread",
		"time?id=t": "agui.run_input", // what is read while most of it is not kept
	} {
		tx := testdb.Begin(t, pool)
		testdb.Exec(t, tx, `lock table `+table+` in access exclusive mode`)
		if got := s.do(nil, "GET", page, nil, []string{"Authorization", "Bearer one"}); got.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("the page %q, which waits for a lock: %s", page, got.Status)
		}
		tx.Rollback(context.WithoutCancel(t.Context()))
	}
}

// Readers who are slow hold no more than a share of the memory.
func TestSlowReadersOfLargePages(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	const size = 6_000_000 // more than the buffers of a connection
	for _, scope := range []string{"slow", "other"} {
		testdb.Exec(t, pool, `select agui.append('t', 'r', ('[{"type":"RUN_STARTED"},{"type":"CUSTOM","name":"n","value":"' || repeat('x', $1::int) || '"},{"type":"RUN_FINISHED"}]')::json, scope => $2)`, size, scope)
	}
	store := pgagui.New(pool, nil)
	entry := door.New(store, door.Options{MaxBufferedBytes: 28 << 20, WriteTimeout: 200 * time.Millisecond, Limits: access.LimitOptions{RequestsPerSecond: -1}})
	s := newSite(t, store, explorer.Options{Access: named{}, Door: entry})
	narrow := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			err = connection.(*net.TCPConn).SetReadBuffer(4096)
		}
		return connection, err
	}}}
	get := func(client *http.Client, token string) *http.Response {
		request := must.Have(http.NewRequestWithContext(t.Context(), "GET", s.url+"ndjson?id=t&run=r&after=1", nil))(t)
		request.Header.Set("Authorization", "Bearer "+token)
		answer := must.Have(client.Do(request))(t)
		t.Cleanup(func() { answer.Body.Close() })
		return answer
	}
	refused := 0
	var slow []*http.Response
	for range 4 {
		slow = append(slow, get(narrow, "slow"))
		if slow[len(slow)-1].StatusCode == http.StatusServiceUnavailable {
			refused++
		}
	}
	if refused == 0 {
		t.Error("all slow readers were served at once")
	}
	if text, err := io.ReadAll(get(http.DefaultClient, "other").Body); err != nil || len(text) < size {
		t.Errorf("another identity got %d bytes, %v", len(text), err)
	}
	for _, answer := range slow {
		answer.Body.Close()
	}
	wait.For(t, "the memory is free", func() bool { return entry.Memory.Used() == 0 })
}

// A form that does not arrive, of somebody who is not signed in, holds its connection for a while only.
func TestSlowWriters(t *testing.T) {
	t.Parallel()
	store := pgagui.New(testdb.Pool(t), nil)
	entry := door.New(store, door.Options{})
	entry.BodyTimeout = 100 * time.Millisecond
	s := newSite(t, store, explorer.Options{Access: named{}, Door: entry})
	place := must.Have(url.Parse(s.url))(t)
	for _, method := range []string{"POST", "GET"} {
		connection := must.Have(net.Dial("tcp", place.Host))(t)
		defer connection.Close()
		_ = connection.SetDeadline(time.Now().Add(wait.Patience))
		fmt.Fprintf(connection, "%s %slogin HTTP/1.1\r\nHost: server\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\ntoken=", method, place.Path)
		if text, err := io.ReadAll(connection); err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 ") {
			t.Errorf("%s: %.100q, %v", method, text, err)
		}
	}
}
