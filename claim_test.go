package pgagui_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
)

func run(runID string) pgagui.RunRef { return pgagui.RunRef{ThreadID: "t", RunID: runID} }

func mustClaim(t testing.TB, store *pgagui.Store, runID string, options pgagui.ClaimOptions) *pgagui.Claim {
	t.Helper()
	claim, err := store.Claim(t.Context(), run(runID), options)
	if err != nil {
		t.Fatalf("claim run %s: %v", runID, err)
	}
	return claim
}

// wantClaim checks the error of a claim.
func wantClaim(t testing.TB, store *pgagui.Store, runID string, options pgagui.ClaimOptions, want error) {
	t.Helper()
	if claim, err := store.Claim(t.Context(), run(runID), options); !errors.Is(err, want) {
		t.Errorf("claim run %s: %v, %v, want %v", runID, claim, err, want)
	}
}

// wantAppend checks the error of an append.
func wantAppend(t testing.TB, store *pgagui.Store, runID string, options pgagui.AppendOptions, want error) {
	t.Helper()
	if _, err := store.Append(t.Context(), run(runID), rawEvents(started(runID), finished), options); !errors.Is(err, want) {
		t.Errorf("append run %s: %v, want %v", runID, err, want)
	}
}

// wantClaims checks which runs are claimed.
func wantClaims(t testing.TB, store *pgagui.Store, want ...string) {
	t.Helper()
	claims := must.Have(store.Claims(context.Background(), "t"))(t)
	var got []string
	for _, claim := range claims {
		got = append(got, claim.Run.RunID)
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("claimed are %q, want %q", got, want)
	}
}

// expireClaims moves the claims back in time, behind the end of their lease.
func expireClaims(t testing.TB, pool *pgxpool.Pool, by string) {
	t.Helper()
	testdb.Exec(t, pool, `update agui_internal.claim set seen_at = seen_at - $1::interval`, by)
}

func TestAClaimTakesThePlaceOfARun(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	ctx := t.Context()
	input, other := json.RawMessage(`{"threadId":"t", "messages":[]}`), json.RawMessage(`{"messages":[]}`)
	claim := mustClaim(t, store, "r1", pgagui.ClaimOptions{Claimant: "a", Input: input})
	if claim.ParentRunID != "" || claim.Parallel || claim.ClaimedAt.IsZero() || claim.AliveUntil.Before(claim.ClaimedAt) {
		t.Errorf("the claim is %+v", claim)
	}
	wantClaims(t, store, "r1")

	// The thread has nothing yet that others see.
	if _, err := store.Head(ctx, "t"); !errors.Is(err, pgagui.ErrUnknownThread) {
		t.Errorf("the head of a thread with a claim alone: %v", err)
	}
	if page, err := store.Threads(ctx, pgagui.ThreadsOptions{}); err != nil || len(page.Threads) > 0 {
		t.Errorf("threads are %+v (%v), want none", page, err)
	}

	// The answer was lost: the same claimant repeats the call. Others get what they must know.
	if repeated := mustClaim(t, store, "r1", pgagui.ClaimOptions{Claimant: "a", Input: input}); !repeated.ClaimedAt.Equal(claim.ClaimedAt) {
		t.Errorf("the repeated call claims at %s, the first one did at %s", repeated.ClaimedAt, claim.ClaimedAt)
	}
	wantClaim(t, store, "r1", pgagui.ClaimOptions{Claimant: "a", Input: other}, pgagui.ErrConflictingRepeat)
	wantClaim(t, store, "r1", pgagui.ClaimOptions{Claimant: "a", Input: input, Parallel: true}, pgagui.ErrConflictingRepeat)
	wantClaim(t, store, "r1", pgagui.ClaimOptions{Claimant: "a", Input: input, ParentRunID: "r0"}, pgagui.ErrConflictingRepeat)
	wantClaim(t, store, "r1", pgagui.ClaimOptions{Claimant: "b", Input: input}, pgagui.ErrRunIDInUse)
	wantClaim(t, store, "r1", pgagui.ClaimOptions{Claimant: "b", Input: other}, pgagui.ErrConflictingRepeat)
	wantClaim(t, store, "r1", pgagui.ClaimOptions{Claimant: "b"}, pgagui.ErrConflictingRepeat)
	wantClaim(t, store, "r2", pgagui.ClaimOptions{}, pgagui.ErrRunInProgress)
	wantAppend(t, store, "r2", pgagui.AppendOptions{}, pgagui.ErrRunInProgress)

	// The call that begins the run ends the claim, in any process. A repeat of that call is idempotent.
	begin := rawEvents(started("r1"))
	options := pgagui.AppendOptions{AfterSeq: new(int64(0)), Input: input}
	mustAppend(t, store, "t", "r1", begin, options)
	wantClaims(t, store)
	if seq := mustAppend(t, store, "t", "r1", begin, options); seq != 1 {
		t.Errorf("the repeated beginning ends at seq %d", seq)
	}
	wantClaim(t, store, "r1", pgagui.ClaimOptions{Claimant: "a", Input: input}, pgagui.ErrRunIDInUse)
	wantClaim(t, store, "r1", pgagui.ClaimOptions{Claimant: "a", Input: other}, pgagui.ErrConflictingRepeat)
	wantClaim(t, store, "r2", pgagui.ClaimOptions{}, pgagui.ErrRunInProgress)
	mustAppend(t, store, "t", "r1", rawEvents(finished))
	wantClaim(t, store, "r1", pgagui.ClaimOptions{Claimant: "a", Input: input}, pgagui.ErrRunIDInUse)

	// A released claim is gone, and others cannot release it.
	claim = mustClaim(t, store, "r2", pgagui.ClaimOptions{})
	if claim.ParentRunID != "r1" {
		t.Errorf("the parent is %q, want the head", claim.ParentRunID)
	}
	foreign := *claim
	foreign.Claimant = "somebody"
	for _, released := range []*pgagui.Claim{&foreign, claim, claim} {
		must.Report(t, store.ReleaseClaim(ctx, released))
		if released == &foreign {
			wantClaims(t, store, "r2")
		} else {
			wantClaims(t, store)
		}
	}
	mustAppend(t, store, "t", "r3", rawEvents(started("r3"), finished))
	mustVerify(t, store, "t")
}

func TestAClaimComparesTheInputWithThatOfTheRun(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	// The agent encodes the input in another way in its RUN_STARTED.
	mustAppend(t, store, "t", "in event", rawEvents(`{"type":"RUN_STARTED","runId":"in event","input":{"a":"\u0000\ud800","b":[1.0]}}`, finished))
	mustAppend(t, store, "t", "without", rawEvents(started("without"), finished))
	for _, test := range []struct {
		run   string
		input json.RawMessage
		want  error
	}{
		{"in event", json.RawMessage(`{"b": [1.0], "a": "\u0000\ud800"}`), pgagui.ErrRunIDInUse},
		{"in event", json.RawMessage(`{"b": [2], "a": "\u0000\ud800"}`), pgagui.ErrConflictingRepeat},
		{"in event", nil, pgagui.ErrConflictingRepeat},
		{"without", nil, pgagui.ErrRunIDInUse},
		{"without", json.RawMessage(`{}`), pgagui.ErrConflictingRepeat},
	} {
		wantClaim(t, store, test.run, pgagui.ClaimOptions{Input: test.input}, test.want)
	}
}

func TestClaimsRefuseWhatAppendRefuses(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	mustAppend(t, store, "t", "r1", rawEvents(started("r1")))
	for _, test := range []struct {
		run     pgagui.RunRef
		options pgagui.ClaimOptions
		want    error
	}{
		{run("r"), pgagui.ClaimOptions{ParentRunID: "none", Parallel: true}, pgagui.ErrUnknownParent},
		{run("r"), pgagui.ClaimOptions{Parallel: true}, pgagui.ErrParentInProgress},
		{run("r"), pgagui.ClaimOptions{}, pgagui.ErrRunInProgress},
		{run("r"), pgagui.ClaimOptions{Input: json.RawMessage(`[]`)}, pgagui.ErrInvalidEvents},
		{run(""), pgagui.ClaimOptions{}, pgagui.ErrInvalidEvents},
		{pgagui.RunRef{RunID: "r"}, pgagui.ClaimOptions{}, pgagui.ErrInvalidEvents},
		{run(strings.Repeat("r", 1025)), pgagui.ClaimOptions{}, pgagui.ErrLimitExceeded},
		{run("r"), pgagui.ClaimOptions{Claimant: strings.Repeat("c", 1025)}, pgagui.ErrLimitExceeded},
		{run("r"), pgagui.ClaimOptions{Input: json.RawMessage(`{"a":` + strings.Repeat("[", 1001) + strings.Repeat("]", 1001) + `}`)}, pgagui.ErrLimitExceeded},
	} {
		if _, err := store.Claim(t.Context(), test.run, test.options); !errors.Is(err, test.want) {
			t.Errorf("claim %+v: %v, want %v", test.options, err, test.want)
		}
	}
	if _, err := pool.Exec(t.Context(), `select agui.claim_run('t', 'r', '')`); !errors.Is(pgagui.ErrorOf(err), pgagui.ErrInvalidEvents) {
		t.Errorf("an empty claimant: %v", err)
	}
	wantClaims(t, store)
}

func TestOneOfManyClaimantsGetsThePlace(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	var group sync.WaitGroup
	var mu sync.Mutex
	outcomes := map[string]int{}
	for i := range 24 {
		group.Go(func() {
			var err error
			switch i % 3 {
			case 0: // the same run
				_, err = store.Claim(t.Context(), run("same"), pgagui.ClaimOptions{Input: json.RawMessage(`{}`)})
			case 1:
				_, err = store.Claim(t.Context(), run(fmt.Sprint("claimed ", i)), pgagui.ClaimOptions{})
			default:
				_, err = store.Append(t.Context(), run(fmt.Sprint("begun ", i)), rawEvents(started(fmt.Sprint("begun ", i))), pgagui.AppendOptions{})
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				outcomes["won"]++
			case errors.Is(err, pgagui.ErrRunInProgress), i%3 == 0 && errors.Is(err, pgagui.ErrRunIDInUse):
				outcomes["refused"]++
			default:
				t.Error(err)
			}
		})
	}
	group.Wait()
	if outcomes["won"] != 1 || outcomes["refused"] != 23 {
		t.Errorf("outcomes are %v, want one winner", outcomes)
	}
}

func TestParallelClaims(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	mustAppend(t, store, "t", "root", rawEvents(started("root"), finished))
	parallel := pgagui.ClaimOptions{Parallel: true}
	mustClaim(t, store, "p1", parallel)
	mustClaim(t, store, "p2", parallel)
	// A parallel claim blocks no other claim. Another claim blocks only claims that are not parallel.
	mustClaim(t, store, "alone", pgagui.ClaimOptions{})
	wantClaim(t, store, "second", pgagui.ClaimOptions{}, pgagui.ErrRunInProgress)
	wantAppend(t, store, "second", pgagui.AppendOptions{}, pgagui.ErrRunInProgress)
	mustAppend(t, store, "t", "beside", rawEvents(started("beside")), pgagui.AppendOptions{Parallel: true})
	wantClaims(t, store, "p1", "p2", "alone")
	// All claimed runs begin, in any order, from the head at the time of their claim.
	for _, claimed := range []string{"alone", "p2", "p1"} {
		mustAppend(t, store, "t", claimed, rawEvents(started(claimed)))
	}
	wantClaims(t, store)
	runs, err := store.Runs(t.Context(), "t")
	if err != nil || len(runs) != 5 {
		t.Fatalf("runs are %+v (%v)", runs, err)
	}
	for _, begun := range runs[1:] {
		if begun.ParentRunID != "root" {
			t.Errorf("the parent of %s is %q, want root", begun.ID, begun.ParentRunID)
		}
	}
	mustVerify(t, store, "t")
}

func TestTheParentOfAClaim(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name        string
		claim       pgagui.ClaimOptions
		event       string
		append      pgagui.AppendOptions
		parent, got string
	}{
		{"the head", pgagui.ClaimOptions{}, started("r"), pgagui.AppendOptions{}, "b", "b"},
		{"a run", pgagui.ClaimOptions{ParentRunID: `a\`}, started("r"), pgagui.AppendOptions{}, `a\`, `a\`},
		{"none", pgagui.ClaimOptions{NoParent: true}, started("r"), pgagui.AppendOptions{}, "", ""},
		{"before RUN_STARTED", pgagui.ClaimOptions{NoParent: true}, startedFrom("r", "b"), pgagui.AppendOptions{}, "", ""},
		{"after the call", pgagui.ClaimOptions{}, startedFrom("r", "b"), pgagui.AppendOptions{ParentRunID: `a\`}, "b", `a\`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			store, _ := newStore(t)
			mustAppend(t, store, "t", `a\`, rawEvents(started(`a\`), finished))
			mustAppend(t, store, "t", "b", rawEvents(started("b"), finished))
			if claim := mustClaim(t, store, "r", test.claim); claim.ParentRunID != test.parent {
				t.Errorf("the claim has parent %q, want %q", claim.ParentRunID, test.parent)
			}
			mustAppend(t, store, "t", "r", rawEvents(test.event), test.append)
			if status, err := store.Status(t.Context(), run("r")); err != nil || status.ParentRunID != test.got {
				t.Errorf("the run has parent %q (%v), want %q", status.ParentRunID, err, test.got)
			}
			if test.event == started("r") { // otherwise the check notes that RUN_STARTED names another parent
				mustVerify(t, store, "t")
			}
		})
	}
}

func TestAnExpiredClaimCountsAsNone(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	testdb.UpForEver(t, pool)
	mustAppend(t, store, "t", "root", rawEvents(started("root"), finished))
	expired := func(runID string, options pgagui.ClaimOptions) {
		t.Helper()
		mustClaim(t, store, runID, options)
		expireClaims(t, pool, "29 s")
		wantClaims(t, store, runID)
		wantAppend(t, store, "early", pgagui.AppendOptions{}, pgagui.ErrRunInProgress)
		expireClaims(t, pool, "2 s")
		wantClaims(t, store)
	}
	expired("r1", pgagui.ClaimOptions{Input: json.RawMessage(`{}`)})
	// A heartbeat does not revive it: another run may have begun since.
	testdb.Exec(t, pool, `select agui.keep_alive('{t}', '{r1}')`)
	wantClaims(t, store)
	// The same run with another input, and another run.
	mustClaim(t, store, "r1", pgagui.ClaimOptions{Input: json.RawMessage(`{"a":1}`)})
	expireClaims(t, pool, "31 s")
	mustClaim(t, store, "r2", pgagui.ClaimOptions{NoParent: true})
	expireClaims(t, pool, "31 s")
	// The run begins without the parent of the claim.
	mustAppend(t, store, "t", "r2", rawEvents(started("r2"), finished))
	if status, err := store.Status(t.Context(), run("r2")); err != nil || status.ParentRunID != "root" {
		t.Errorf("the parent is %q (%v), want the head", status.ParentRunID, err)
	}
	expired("r3", pgagui.ClaimOptions{})
	mustAppend(t, store, "t", "r4", rawEvents(started("r4")))
	wantAppend(t, store, "r3", pgagui.AppendOptions{}, pgagui.ErrRunInProgress)

	// agui.reap removes old claims, also in threads where nothing else happens.
	mustAppend(t, store, "t", "r4", rawEvents(finished))
	for _, test := range []struct {
		by   string
		left int
	}{{"59 minutes", 1}, {"2 minutes", 0}} {
		if test.left == 1 {
			mustClaim(t, store, "r5", pgagui.ClaimOptions{})
		}
		expireClaims(t, pool, test.by)
		testdb.Exec(t, pool, `call agui.reap()`)
		var n int
		if err := pool.QueryRow(t.Context(), `select count(*) from agui_internal.claim`).Scan(&n); err != nil || n != test.left {
			t.Errorf("%d claims are left (%v), want %d", n, err, test.left)
		}
	}
}

func TestAClaimClosesStaleRuns(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	testdb.UpForEver(t, pool)
	mustAppend(t, store, "t", "gone", rawEvents(started("gone")))
	testdb.Exec(t, pool, `select agui.keep_alive('{t}', '{gone}')`)
	testdb.Exec(t, pool, `alter table agui.batch disable trigger user`)
	testdb.Exec(t, pool, `update agui.batch set recorded_at = recorded_at - interval '1 hour'`)
	testdb.Exec(t, pool, `update agui.run set seen_at = seen_at - interval '1 hour'`)
	if claim := mustClaim(t, store, "r", pgagui.ClaimOptions{}); claim.ParentRunID != "gone" {
		t.Errorf("the parent is %q", claim.ParentRunID)
	}
	if status, err := store.Status(t.Context(), run("gone")); err != nil || status.CutOffReason == "" {
		t.Errorf("the stale run is %+v (%v)", status, err)
	}
}

func TestAClaimKeepsItsLeaseAfterAnOutage(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	testdb.UpForEver(t, pool)
	mustClaim(t, store, "r", pgagui.ClaimOptions{})
	testdb.Exec(t, pool, `select agui.keep_alive('{t}', '{r}')`)
	expireClaims(t, pool, "1 hour")
	testdb.Exec(t, pool, `update agui_internal.uptime set up_since = clock_timestamp()`)
	wantClaims(t, store, "r")
	wantAppend(t, store, "next", pgagui.AppendOptions{}, pgagui.ErrRunInProgress)
	testdb.Exec(t, pool, `select agui.keep_alive('{t}', '{r}')`)
	testdb.Exec(t, pool, `update agui_internal.uptime set up_since = '-infinity'`)
	wantClaims(t, store, "r")
	wantAppend(t, store, "next", pgagui.AppendOptions{}, pgagui.ErrRunInProgress)
}

func TestARecordingKeepsItsClaim(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	testdb.UpForEver(t, pool)
	recorder := store.NewRecorder(&pgagui.RecorderConfig{CheckEvery: 20 * time.Millisecond})
	defer recorder.Close(context.Background())
	mustAppend(t, store, "t", "root", rawEvents(started("root"), finished))
	mustAppend(t, store, "t", "other", rawEvents(started("other"), finished))
	input := json.RawMessage(`{"messages":[{"id":"1","role":"user","content":"hi"}]}`)
	claim := mustClaim(t, store, "r", pgagui.ClaimOptions{ParentRunID: "root", Input: input})
	if _, err := recorder.Begin(t.Context(), run("another"), pgagui.BeginOptions{Claim: claim}); !errors.Is(err, pgagui.ErrInvalidArgument) {
		t.Errorf("begin another run with the claim: %v", err)
	}
	recording := mustBegin(t, recorder, run("r"), pgagui.BeginOptions{Claim: claim})

	// Heartbeats renew the claim as soon as a third of the lease is over.
	expireClaims(t, pool, "11 s")
	wait.For(t, "the claim is renewed", func() bool {
		claims, err := store.Claims(t.Context(), "t")
		if err != nil || len(claims) != 1 {
			t.Fatalf("claims are %+v (%v)", claims, err)
		}
		return time.Until(claims[0].AliveUntil) > 25*time.Second
	})

	must.Do(t, recording.Record(t.Context(), rawEvents(started("r"), finished)...))
	must.Do(t, recording.Close(t.Context()))
	wantClaims(t, store)
	if status, err := store.Status(t.Context(), run("r")); err != nil || status.ParentRunID != "root" || status.Status != pgagui.Finished {
		t.Errorf("the run is %+v (%v)", status, err)
	}
	if stored, err := store.RunInput(t.Context(), run("r")); err != nil || string(stored) != string(input) {
		t.Errorf("its input is %s (%v)", stored, err)
	}
	mustVerify(t, store, "t")
}

func TestTheClaimOfADeadProcessEndsWithItsLease(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	testdb.UpForEver(t, pool)
	testdb.Exec(t, pool, `select agui.set_setting('heartbeat_lease', '2 s')`)
	process := must.Have(pgxpool.NewWithConfig(t.Context(), pool.Config()))(t)
	dying := pgagui.New(process, nil)
	recorder := dying.NewRecorder(&pgagui.RecorderConfig{CheckEvery: 20 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	mustBegin(t, recorder, run("r"), pgagui.BeginOptions{Claim: mustClaim(t, dying, "r", pgagui.ClaimOptions{})})
	// Its heartbeats keep the claim for longer than a lease.
	aliveUntil := func() time.Time {
		t.Helper()
		claims, err := store.Claims(t.Context(), "t")
		if err != nil || len(claims) != 1 {
			t.Fatalf("claims are %+v (%v)", claims, err)
		}
		return claims[0].AliveUntil
	}
	claimed := aliveUntil()
	wait.For(t, "heartbeats for a lease", func() bool {
		wantClaim(t, store, "r", pgagui.ClaimOptions{}, pgagui.ErrRunIDInUse)
		return aliveUntil().Sub(claimed) > 2*time.Second
	})
	process.Close()
	died := time.Now()
	wait.For(t, "the claim is taken over", func() bool {
		claim, err := store.Claim(t.Context(), run("r"), pgagui.ClaimOptions{})
		if err != nil && !errors.Is(err, pgagui.ErrRunIDInUse) {
			t.Fatal(err)
		}
		if waited := time.Since(died); err == nil && waited < time.Second {
			t.Errorf("the claim %+v was taken over after %s", claim, waited)
		}
		return err == nil
	})
	ended, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_ = recorder.Close(ended) // it cannot reach the database
}

// The writer of a claimed run sends heartbeats. If it dies before the first one of the run, the run
// has the short lease nevertheless.
func TestAClaimedRunBeginsWithTheLeaseOfHeartbeats(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	for runID, isClaimed := range map[string]bool{"claimed": true, "bare": false} {
		ref := pgagui.RunRef{ThreadID: runID, RunID: runID}
		if isClaimed {
			must.Have(store.Claim(t.Context(), ref, pgagui.ClaimOptions{}))(t)
		}
		mustAppend(t, store, runID, runID, rawEvents(started(runID)))
	}
	testdb.Exec(t, pool, `select agui.set_setting('heartbeat_lease', '1 ms')`)
	for runID, isStale := range map[string]bool{"claimed": true, "bare": false} {
		status, err := store.Status(t.Context(), pgagui.RunRef{ThreadID: runID, RunID: runID})
		if err != nil || status.Stale != isStale {
			t.Errorf("run %s: %+v, %v, want stale %v", runID, status, err, isStale)
		}
	}
}

func TestAStopBeforeTheFirstEvent(t *testing.T) {
	t.Parallel()
	for _, runID := range []string{"r", ""} {
		t.Run("run "+runID, func(t *testing.T) {
			t.Parallel()
			store, _ := newStore(t)
			recorder := store.NewRecorder(&pgagui.RecorderConfig{CheckEvery: 20 * time.Millisecond})
			defer recorder.Close(context.Background())
			recording := mustBegin(t, recorder, run("r"), pgagui.BeginOptions{Claim: mustClaim(t, store, "r", pgagui.ClaimOptions{})})
			if n, err := store.RequestStop(t.Context(), run(runID), pgagui.RequestStopOptions{Reason: "enough"}); n != 1 || err != nil {
				t.Fatalf("%d runs are asked to stop (%v)", n, err)
			}
			select {
			case <-recording.Context().Done():
			case <-time.After(20 * time.Second):
				t.Fatal("the agent is not told")
			}
			if cause := context.Cause(recording.Context()); !errors.Is(cause, pgagui.ErrStopRequested) || !strings.Contains(cause.Error(), "enough") {
				t.Errorf("the cause is %v", cause)
			}
			must.Do(t, recording.Close(t.Context()))
			wantClaims(t, store)
			if _, err := store.RequestStop(t.Context(), run(runID), pgagui.RequestStopOptions{}); !errors.Is(err, pgagui.ErrUnknownThread) {
				t.Errorf("a stop without claim and run: %v", err)
			}
		})
	}
	t.Run("the run has it", func(t *testing.T) {
		t.Parallel()
		store, _ := newStore(t)
		mustClaim(t, store, "r", pgagui.ClaimOptions{})
		must.Have(store.RequestStop(t.Context(), run("r"), pgagui.RequestStopOptions{Reason: "enough"}))(t)
		mustAppend(t, store, "t", "r", rawEvents(started("r")))
		if status, err := store.Status(t.Context(), run("r")); err != nil || status.StopReason != "enough" || status.StopRequestedAt.IsZero() {
			t.Errorf("the run is %+v (%v)", status, err)
		}
	})
}

func TestAnErasedThreadHasNoClaims(t *testing.T) {
	t.Parallel()
	for _, hasRuns := range []bool{true, false} {
		store, _ := newStore(t)
		if hasRuns {
			mustAppend(t, store, "t", "root", rawEvents(started("root"), finished))
		}
		mustClaim(t, store, "r", pgagui.ClaimOptions{})
		must.Have(store.Erase(t.Context(), "t", pgagui.EraseOptions{}))(t)
		wantClaims(t, store)
		wantClaim(t, store, "r", pgagui.ClaimOptions{}, pgagui.ErrThreadErased)
		wantAppend(t, store, "r", pgagui.AppendOptions{}, pgagui.ErrThreadErased)
	}
}

func TestAClaimKeepsAThreadFromTheJobThatErases(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	testdb.UpForEver(t, pool)
	mustAppend(t, store, "t", "root", rawEvents(started("root"), finished))
	mustClaim(t, store, "r", pgagui.ClaimOptions{})
	testdb.Exec(t, pool, `call agui.erase_older(interval '0 s')`)
	if _, err := store.Head(t.Context(), "t"); err != nil {
		t.Errorf("the thread was erased although a run of it is claimed: %v", err)
	}
	expireClaims(t, pool, "1 minute")
	testdb.Exec(t, pool, `call agui.erase_older(interval '0 s')`)
	if _, err := store.Head(t.Context(), "t"); !errors.Is(err, pgagui.ErrUnknownThread) {
		t.Errorf("the thread with an expired claim was not erased: %v", err)
	}
}

func TestClaimsUnderRowSecurity(t *testing.T) {
	underRowSecurity(t, func(t *testing.T, pool *pgxpool.Pool) {
		a := pgagui.New(pool, &pgagui.Config{Scope: "a", SetScope: true})
		foreign := pgagui.New(pool, &pgagui.Config{Scope: "a"}) // its calls set no scope
		claim := mustClaim(t, a, "r", pgagui.ClaimOptions{})
		wantClaims(t, a, "r")
		wantClaims(t, foreign)
		wantClaim(t, foreign, "r", pgagui.ClaimOptions{}, pgagui.ErrPermissionDenied)
		if err := foreign.ReleaseClaim(t.Context(), claim); !errors.Is(err, pgagui.ErrPermissionDenied) {
			t.Errorf("release of a foreign claim: %v", err)
		}
		if _, err := foreign.RequestStop(t.Context(), run("r"), pgagui.RequestStopOptions{}); !errors.Is(err, pgagui.ErrPermissionDenied) {
			t.Errorf("stop of a foreign claim: %v", err)
		}
		wantClaims(t, a, "r")
		// The Store that made the claim releases it.
		recorder := a.NewRecorder(nil)
		defer recorder.Close(context.Background())
		must.Report(t, mustBegin(t, recorder, run("r"), pgagui.BeginOptions{Claim: claim}).Close(t.Context()))
		wantClaims(t, a)
	})
}

// Claims, beginnings and repeats of both in random order: a run has its events once, with one parent.
func TestClaimsAndBeginningsInAnyOrder(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	testdb.UpForEver(t, pool)
	for round := range 40 {
		random := rand.New(rand.NewPCG(1, uint64(round)))
		thread := fmt.Sprint("t", round)
		events := map[string]int{}
		for range 30 {
			runID := fmt.Sprint("r", random.IntN(4))
			ref := pgagui.RunRef{ThreadID: thread, RunID: runID}
			var err error
			switch random.IntN(6) {
			case 0, 1:
				_, err = store.Claim(t.Context(), ref, pgagui.ClaimOptions{Claimant: fmt.Sprint(random.IntN(2)), Parallel: random.IntN(3) == 0})
			case 2:
				err = store.ReleaseClaim(t.Context(), &pgagui.Claim{Run: ref, Claimant: fmt.Sprint(random.IntN(2))})
			case 3:
				if random.IntN(4) == 0 {
					expireClaims(t, pool, "1 minute")
				}
			default:
				list := rawEvents(started(runID), finished)
				if _, err = store.Append(t.Context(), ref, list, pgagui.AppendOptions{AfterSeq: new(int64(0))}); err == nil {
					events[runID] = len(list)
				}
			}
			if err != nil && !errors.Is(err, pgagui.ErrRunInProgress) && !errors.Is(err, pgagui.ErrRunIDInUse) && !errors.Is(err, pgagui.ErrConflictingRepeat) {
				t.Fatalf("round %d: %v", round, err)
			}
		}
		for runID, want := range events {
			if got := len(payloads(t, store, thread, runID)); got != want {
				t.Errorf("round %d: run %s has %d events, want %d", round, runID, got, want)
			}
		}
		if len(events) > 0 {
			mustVerify(t, store, thread)
		}
		if left := testdb.Ask[int](t, pool, `
			select count(*) from agui_internal.claim join agui.run using (thread_key, run_id)`); left > 0 {
			t.Fatalf("round %d: %d claims are left of runs that have begun", round, left)
		}
	}
}
