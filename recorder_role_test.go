package pgagui_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// recorderRole makes a role with agui_recorder alone, mapped to all scopes, and returns a pool of it.
func recorderRole(t *testing.T, address string) *pgxpool.Pool {
	t.Helper()
	owner := testdb.Connect(t, address)
	testdb.Exec(t, owner, `call agui.enable_row_security()`)
	return testdb.Connect(t, testdb.As(t, address, testdb.Role(t, owner, "recorder", "agui_recorder", `select agui.map_operator('%s')`)))
}

// A server of many scopes records and follows on a pool with the role agui_recorder, and makes all other calls on a pool that is bound
// to a scope.
func TestRecordAndFollowWithTheRoleRecorder(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	address := testdb.New(t)
	live := recorderRole(t, address)
	base := pgagui.New(testdb.Connect(t, poolRole(t, address)), &pgagui.Config{SetScope: true, Live: live})
	recorder := newRecorder(t, base, &pgagui.RecorderConfig{CheckEvery: 20 * time.Millisecond, Logger: quiet})
	for _, scope := range []string{"a", "b"} {
		bound := base.InScope(scope)
		recording := mustBegin(t, recorder, run("r1"), pgagui.BeginOptions{Claim: mustClaim(t, bound, "r1", pgagui.ClaimOptions{})})
		followed := make(chan string, 1)
		go func() {
			var types []string
			for event, err := range bound.Follow(ctx, "t", pgagui.FollowOptions{RunID: "r1", Stay: true}) { // it is there before the run
				if err != nil {
					types = append(types, err.Error())
					break
				}
				types = append(types, event.Type)
			}
			followed <- strings.Join(types, " ")
		}()
		mustRecord(t, recording, started("r1"), `{"type":"CUSTOM","name":"scope `+scope+`"}`)
		mustFlush(t, recording)
		if n, err := bound.RequestStop(ctx, run("r1"), pgagui.RequestStopOptions{}); n != 1 || err != nil {
			t.Fatalf("%d runs are asked to stop (%v)", n, err)
		}
		<-recording.Context().Done()
		mustRecord(t, recording, finished)
		must.Report(t, recording.Close(ctx))
		if types := <-followed; types != "RUN_STARTED CUSTOM RUN_FINISHED" {
			t.Errorf("the follower of scope %s got %s", scope, types)
		}
		// A run without an event gives up its claim, one without an end is ended.
		must.Report(t, mustBegin(t, recorder, run("r2"), pgagui.BeginOptions{Claim: mustClaim(t, bound, "r2", pgagui.ClaimOptions{})}).Close(ctx))
		wantClaims(t, bound)
		left := mustBegin(t, recorder, run("r3"), pgagui.BeginOptions{Claim: mustClaim(t, bound, "r3", pgagui.ClaimOptions{}), Start: rawEvents(started("r3"))[0]})
		must.Report(t, left.Close(ctx))
		if status, err := bound.Status(ctx, run("r3")); err != nil || status.CutOffReason == "" {
			t.Errorf("the run without an end is %+v (%v)", status, err)
		}
		mustVerify(t, bound, "t")
	}
	// The role may do no more.
	if _, err := pgagui.New(live, &pgagui.Config{Scope: "a"}).Status(ctx, run("r1")); !errors.Is(err, pgagui.ErrPermissionDenied) {
		t.Errorf("status: %v", err)
	}
}

// A recorder whose only pool has the role records a run that ends by itself.
func TestARecorderNeedsTheRoleRecorderAlone(t *testing.T) {
	t.Parallel()
	address := testdb.New(t)
	recorder := newRecorder(t, pgagui.New(recorderRole(t, address), nil), &pgagui.RecorderConfig{CheckEvery: 5 * time.Millisecond})
	recording := mustBegin(t, recorder, run("r"), pgagui.BeginOptions{Scope: "a", Input: []byte(`{}`), NoParent: true})
	mustRecord(t, recording, started("r"), token(1))
	mustFlush(t, recording)
	owner := pgagui.New(testdb.Connect(t, address), &pgagui.Config{Scope: "a"})
	must.Have(owner.RequestStop(t.Context(), run("r"), pgagui.RequestStopOptions{}))(t)
	<-recording.Context().Done() // heartbeats
	mustRecord(t, recording, failed)
	must.Report(t, recording.Close(t.Context()))
	mustVerify(t, owner, "t")
}
