package jobs_test

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/internal/webhook"
	"github.com/pgagui/pgagui/jobs"
	"github.com/pgagui/pgagui/sql/schema"
)

// A copy of a database has the requests that its source had to send. It sends none of them, and none for what ends in it, until it
// takes over.
func TestCopiesOfADatabaseSendNoWebhooks(t *testing.T) {
	t.Parallel()
	server := testdb.Server(t, nil)
	admin := testdb.Connect(t, server.URL("postgres"))
	testdb.Exec(t, admin, `create database source`)
	must.Do(t, schema.Up(t.Context(), server.URL("source")))
	source := testdb.Connect(t, server.URL("source"))
	e := addEndpoint(t, source, jobs.Webhook{Name: "e", AllScopes: true}, answering(http.StatusServiceUnavailable))
	testdb.Exec(t, source, appendForHooks, "t", "r1", finishedRun, "")
	mustSend(t, source, toLoopback)
	source.Close()
	testdb.Exec(t, admin, `create database copy template source`)
	source, copied := testdb.Connect(t, server.URL("source")), testdb.Connect(t, server.URL("copy"))
	testdb.Exec(t, copied, appendForHooks, "t", "r2", finishedRun, "")

	e.answer = nil
	later := &clock{by: time.Hour}
	belowHorizon(t, copied)
	if has, err := jobs.HasWebhooksToSend(t.Context(), copied, later.options()); has || err != nil {
		t.Error("the copy has something to send:", has, err)
	}
	if done := mustSend(t, copied, later.options()); done.Sent != 0 || done.Failed != 0 {
		t.Errorf("the copy: %+v", done)
	}
	if listed, err := jobs.Webhooks(t.Context(), copied); err != nil || !listed[0].IsElsewhere || listed[0].ToSend != 1 || listed[0].Retrying != 1 {
		t.Errorf("%+v, %v", listed, err)
	}
	if n := count(t, copied, `select count(*) from agui_internal.claim_webhook_requests('e', 'infinity', 'infinity', 10)`); n != 0 {
		t.Errorf("a worker of the copy can claim %d requests", n)
	}
	if done := mustSend(t, source, later.options()); done.Sent != 1 {
		t.Errorf("the source: %+v", done)
	}
	e.expect(t, "run.finished t r1", "run.finished t r1")

	for _, want := range []int64{1, 0} {
		if taken, err := jobs.TakeOverWebhooks(t.Context(), copied, ""); taken != want || err != nil {
			t.Errorf("taken over: %d, %v; want %d", taken, err, want)
		}
	}
	if taken, err := jobs.TakeOverWebhooks(t.Context(), source, "other"); taken != 0 || err != nil {
		t.Errorf("taken over: %d, %v", taken, err)
	}
	mustSend(t, copied, later.options())
	e.expect(t, "run.finished t r1", "run.finished t r1", "run.finished t r1", "run.finished t r2")
}

// A standby that is promoted is the same database, and goes on by itself.
func TestWebhooksGoOnAfterAFailover(t *testing.T) {
	t.Parallel()
	r := testdb.NewReplicated(t)
	e := addEndpoint(t, r.PrimaryPool, jobs.Webhook{Name: "e", AllScopes: true}, nil)
	testdb.Exec(t, r.PrimaryPool, appendForHooks, "t", "r1", finishedRun, "")
	mustSend(t, r.PrimaryPool, toLoopback)
	testdb.Exec(t, r.PrimaryPool, appendForHooks, "t", "r2", failedRun, "")
	wait.For(t, "the standby has the run", func() bool { return count(t, r.StandbyPool, `select count(*) from agui.run where run_id = 'r2'`) == 1 })
	must.Do(t, r.Primary.Kill())
	must.Do(t, r.Standby.Promote(t.Context()))
	mustSend(t, r.StandbyPool, toLoopback)
	e.expect(t, "run.failed t r2", "run.finished t r1")
}

// After a rotation both secrets sign for a time, then the new one alone.
func TestSecretsOfWebhooksAreRotated(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	var signatures, id string
	var at int64
	var body []byte
	e := addEndpoint(t, pool, jobs.Webhook{Name: "e", AllScopes: true}, nil)
	old := e.secret
	e.Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		signatures, id = r.Header.Get("webhook-signature"), r.Header.Get("webhook-id")
		at, _ = strconv.ParseInt(r.Header.Get("webhook-timestamp"), 10, 64)
		body, _ = io.ReadAll(r.Body)
	})
	now := &clock{}
	signedBy := func(secrets ...string) {
		t.Helper()
		done, err := jobs.TestWebhook(t.Context(), pool, "e", now.options())
		if err != nil || !done.IsTaken {
			t.Fatal(done, err)
		}
		var want []string
		for _, secret := range secrets {
			signature := must.Have(webhook.Sign(secret, id, time.Unix(at, 0), body))(t)
			want = append(want, signature)
		}
		if signatures != strings.Join(want, " ") {
			t.Errorf("signed %s, want %s", signatures, want)
		}
	}
	signedBy(old)
	second, err := jobs.RotateWebhookSecret(t.Context(), pool, "e", "", time.Hour)
	if err != nil || second == old || !strings.HasPrefix(second, "whsec_") {
		t.Fatal(second, err)
	}
	signedBy(second, old)
	if listed, err := jobs.Webhooks(t.Context(), pool); err != nil || time.Until(listed[0].OldSecretUntil) < 50*time.Minute {
		t.Errorf("%+v, %v", listed, err)
	}
	now.advance(2 * time.Hour)
	signedBy(second)

	const given = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	if got, err := jobs.RotateWebhookSecret(t.Context(), pool, "e", given, 0); got != given || err != nil {
		t.Error(got, err)
	}
	now.advance(-2*time.Hour + time.Minute)
	signedBy(given) // the old one is not kept
	if _, err := jobs.RotateWebhookSecret(t.Context(), pool, "other", "", time.Hour); !errors.Is(err, pgagui.ErrNotFound) {
		t.Errorf("of no webhook: %v", err)
	}
	for _, wrong := range []string{"secret", "whsec_AAAA", "whsec_=="} {
		if _, err := jobs.RotateWebhookSecret(t.Context(), pool, "e", wrong, time.Hour); !errors.Is(err, pgagui.ErrInvalidArgument) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if _, err := jobs.RotateWebhookSecret(t.Context(), pool, "e", "", -time.Hour); !errors.Is(err, pgagui.ErrInvalidArgument) {
		t.Errorf("keeping it for less than nothing: %v", err)
	}
}
