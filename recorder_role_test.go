package pgagui_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/testdb"
)

// recorderRole makes a role with agui_recorder alone, mapped to all scopes, and returns a Store on it.
func recorderRole(t *testing.T, address string) *pgagui.Store {
	t.Helper()
	owner := testdb.Connect(t, address)
	role := "pgagui_recorder_" + strings.ToLower(rand.Text()[:8])
	for _, statement := range []string{
		`create role ` + role + ` login password 'secret' in role agui_recorder`, `select agui.map_operator('` + role + `')`, `call agui.enable_row_security()`,
	} {
		mustExec(t, owner, statement)
	}
	t.Cleanup(func() {
		if _, err := owner.Exec(context.Background(), `drop role `+role); err != nil {
			t.Error(err)
		}
	})
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	parsed.User = url.UserPassword(role, "secret")
	return pgagui.New(testdb.Connect(t, parsed.String()), nil)
}

// A server has a pool that records and follows for all scopes with the role agui_recorder, and one that is bound to a scope.
func TestRecordAndFollowWithTheRoleRecorder(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	address := testdb.New(t)
	all := recorderRole(t, address)
	pool := testdb.Connect(t, poolRole(t, address))
	recorder := newRecorder(t, all, &pgagui.RecorderConfig{CheckEvery: 20 * time.Millisecond})
	for _, scope := range []string{"a", "b"} {
		bound := pgagui.New(pool, &pgagui.Config{Scope: scope, SetScope: true})
		claim := mustClaim(t, bound, "r1", pgagui.ClaimOptions{})
		recording := mustBegin(t, recorder, run("r1"), pgagui.BeginOptions{Claim: claim})
		// The follower is there before the run.
		followed := make(chan []string, 1)
		go func() {
			var types []string
			for event, err := range all.InScope(scope).Follow(ctx, "t", pgagui.FollowOptions{RunID: "r1", OnlyPoll: true, Stay: true}) {
				if err != nil {
					types = append(types, err.Error())
					break
				}
				types = append(types, event.Type)
			}
			followed <- types
		}()
		mustRecord(t, recording, started("r1"), `{"type":"CUSTOM","name":"scope `+scope+`"}`)
		mustFlush(t, recording)
		if n, err := bound.RequestStop(ctx, run("r1"), pgagui.RequestStopOptions{}); n != 1 || err != nil {
			t.Fatalf("%d runs are asked to stop (%v)", n, err)
		}
		<-recording.Context().Done()
		mustRecord(t, recording, finished)
		if err := recording.Close(ctx); err != nil {
			t.Error(err)
		}
		if types := strings.Join(<-followed, " "); types != "RUN_STARTED CUSTOM RUN_FINISHED" {
			t.Errorf("the follower of scope %s got %s", scope, types)
		}
		// A run without an event gives up its claim.
		if err := mustBegin(t, recorder, run("r2"), pgagui.BeginOptions{Claim: mustClaim(t, bound, "r2", pgagui.ClaimOptions{})}).Close(ctx); err != nil {
			t.Error(err)
		}
		wantClaims(t, bound)
		mustVerify(t, bound, "t")
	}
	if _, err := all.InScope("a").Status(ctx, run("r1")); !errors.Is(err, pgagui.ErrPermissionDenied) {
		t.Errorf("status: %v", err)
	}
}

func TestFollowWithPollAlone(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	address := testdb.New(t)
	polling := recorderRole(t, address)
	owner := testdb.Connect(t, address)
	store := pgagui.New(owner, nil)
	follow := func(options pgagui.FollowOptions, until int) (types []string) {
		t.Helper()
		options.OnlyPoll = true
		timed, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		for event, err := range polling.Follow(timed, "t", options) {
			if err != nil {
				t.Errorf("follow %+v: %v", options, err)
				return types
			}
			if types = append(types, event.RunID+":"+event.Type); len(types) == until {
				return types
			}
		}
		return types
	}
	check := func(name string, got []string, want string) {
		t.Helper()
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	mustAppend(t, store, "t", "root", rawEvents(started("root"), finished))
	mustAppend(t, store, "t", "a", rawEvents(started("a")))
	mustAppend(t, store, "t", "b", rawEvents(startedFrom("b", "root")), pgagui.AppendOptions{Parallel: true})
	mustAppend(t, store, "t", "a", rawEvents(`{"type":"CUSTOM"}`, finished))
	last := mustAppend(t, store, "t", "a", rawEvents(`{"type":"CUSTOM"}`), afterSeq(6)) // after the end
	if last != 7 {
		t.Fatalf("the log ends at %d", last)
	}
	at := func(seq int64) pgagui.Position { return pgagui.Position{Seq: seq} }
	check("from its beginning", follow(pgagui.FollowOptions{RunID: "a", After: at(2)}, 0), "a:RUN_STARTED a:CUSTOM a:RUN_FINISHED a:CUSTOM")
	check("behind another run", follow(pgagui.FollowOptions{RunID: "a", After: at(4)}, 0), "a:CUSTOM a:RUN_FINISHED a:CUSTOM")
	check("at its end", follow(pgagui.FollowOptions{RunID: "a", After: at(6)}, 0), "a:CUSTOM")
	check("behind its end", follow(pgagui.FollowOptions{RunID: "a", After: at(7)}, 0), "")
	check("all runs", follow(pgagui.FollowOptions{Stay: true, After: at(5)}, 2), "a:RUN_FINISHED a:CUSTOM")

	// One that waits at the end of the log gets what comes, and the end of the run.
	for _, test := range []struct {
		options pgagui.FollowOptions
		until   int
		want    string
	}{
		{pgagui.FollowOptions{RunID: "b", After: at(7)}, 0, "b:CUSTOM b:RUN_ERROR"},
		{pgagui.FollowOptions{RunID: "b", After: at(3)}, 0, "b:RUN_STARTED b:CUSTOM b:RUN_ERROR"},
		{pgagui.FollowOptions{RunID: "c", After: at(7), Stay: true}, 0, "c:RUN_STARTED c:RUN_FINISHED"},
		{pgagui.FollowOptions{After: at(7), Stay: true}, 4, "b:CUSTOM b:RUN_ERROR c:RUN_STARTED c:RUN_FINISHED"},
	} {
		followed := make(chan []string, 1)
		go func() { followed <- follow(test.options, test.until) }()
		defer func() { check("live", <-followed, test.want) }()
	}
	mustAppend(t, store, "t", "b", rawEvents(`{"type":"CUSTOM"}`))
	if _, err := store.Abandon(ctx, run("b"), pgagui.AbandonOptions{Reason: "gone"}); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, store, "t", "c", rawEvents(started("c"), finished))

	for _, options := range []pgagui.FollowOptions{
		{OnlyPoll: true}, {OnlyPoll: true, Stay: true, NoLineage: true}, {OnlyPoll: true, RunID: "a", History: "snapshot"},
	} {
		for _, err := range polling.Follow(ctx, "t", options) {
			if !errors.Is(err, pgagui.ErrInvalidArgument) {
				t.Errorf("follow %+v: %v", options, err)
			}
		}
	}
}
