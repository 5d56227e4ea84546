package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/internal/webhook"
	"github.com/pgagui/pgagui/jobs"
)

// toLoopback lets webhooks go to the servers of tests.
var toLoopback = jobs.WebhookOptions{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AllowHTTP: true}

// notice is what an endpoint received.
type notice struct {
	id, kind string
	run      string // thread and run
	body     string
}

// endpoint is a server with a webhook of its name.
type endpoint struct {
	*httptest.Server
	name, secret string
	mu           sync.Mutex
	got          []notice
	// answer answers a request after it was noted; nil: 200.
	answer func(notice, http.ResponseWriter)
}

// addEndpoint starts a server and adds a webhook for it.
func addEndpoint(t *testing.T, pool *pgxpool.Pool, hook jobs.Webhook, answer func(notice, http.ResponseWriter)) *endpoint {
	t.Helper()
	e := &endpoint{name: hook.Name, answer: answer}
	e.Server = httptest.NewServer(http.HandlerFunc(e.serve(t)))
	t.Cleanup(e.Close)
	hook.URL = e.URL
	var err error
	if e.secret, err = jobs.AddWebhook(t.Context(), pool, hook, ""); err != nil {
		t.Fatal(err)
	}
	return e
}

func (e *endpoint) serve(t *testing.T) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the sender is gone
		}
		got := notice{id: r.Header.Get("webhook-id"), body: string(body)}
		var sent struct {
			Type string
			Data struct{ ThreadID, RunID string }
		}
		seconds, _ := strconv.ParseInt(r.Header.Get("webhook-timestamp"), 10, 64)
		want, signErr := webhook.Sign(e.secret, got.id, time.Unix(seconds, 0), body)
		if err := json.Unmarshal(body, &sent); err != nil || signErr != nil || r.Header.Get("webhook-signature") != want || seconds == 0 {
			t.Errorf("%s: signature %s, want %s: %s (%v, %v)", e.name, r.Header.Get("webhook-signature"), want, body, err, signErr)
		}
		got.kind, got.run = sent.Type, sent.Data.ThreadID+" "+sent.Data.RunID
		e.mu.Lock()
		e.got = append(e.got, got)
		e.mu.Unlock()
		if e.answer != nil {
			e.answer(got, w)
		}
	}
}

func (e *endpoint) notices() []notice {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.got)
}

// received lists what came, sorted: kind, thread, run.
func (e *endpoint) received() []string {
	lines := []string{}
	for _, got := range e.notices() {
		lines = append(lines, got.kind+" "+got.run)
	}
	slices.Sort(lines)
	return lines
}

func (e *endpoint) expect(t *testing.T, want ...string) {
	t.Helper()
	if got := e.received(); !slices.Equal(got, append([]string{}, want...)) {
		t.Errorf("%s received\n%s\nwant\n%s", e.name, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// answering answers with a status and headers.
func answering(status int, headers ...string) func(notice, http.ResponseWriter) {
	return func(_ notice, w http.ResponseWriter) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
	}
}

// sendWebhooks calls the job once, after the transactions of all runs are below the horizon: those of other databases hold it back.
func sendWebhooks(t *testing.T, pool *pgxpool.Pool, options jobs.WebhookOptions) (jobs.WebhooksSent, error) {
	t.Helper()
	belowHorizon(t, pool)
	done, err := jobs.SendWebhooks(t.Context(), pool, options)
	if count(t, pool, `select count(*) from agui_internal.webhook_request where next_at > clock_timestamp() + interval '50 seconds' and outcome is null`) > 0 {
		t.Error("a request is still claimed")
	}
	return done, err
}

func belowHorizon(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	wait.For(t, "all transactions below the horizon", func() bool {
		return count(t, pool, `select count(*) from agui.run where changed_in >= pg_snapshot_xmin(pg_current_snapshot())`) == 0
	})
}

func mustSend(t *testing.T, pool *pgxpool.Pool, options jobs.WebhookOptions) jobs.WebhooksSent {
	t.Helper()
	done := must.Have(sendWebhooks(t, pool, options))(t)
	return done
}

// clock is one that a test moves.
type clock struct {
	mu sync.Mutex
	by time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.by)
}

func (c *clock) advance(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by += by
}

func (c *clock) options() jobs.WebhookOptions {
	options := toLoopback
	options.Now = c.now
	return options
}

const (
	failedRun      = `[{"type":"RUN_STARTED"},{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"secret"},{"type":"RUN_ERROR","message":"no \"model\" \u0000","code":"E1"}]`
	cancelledRun   = `[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED","outcome":{"type":"cancelled"}}]`
	waitingRun     = `[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[{"id":"i1","reason":"approval","message":"secret","toolCallId":"c","expiresAt":"2031-01-01T00:00:00Z","metadata":{"secret":1}},{"id":"i2"}]}}]`
	finishedRun    = `[{"type":"RUN_STARTED"},{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"secret"},{"type":"RUN_FINISHED"}]`
	runInProgress  = `[{"type":"RUN_STARTED"},{"type":"TEXT_MESSAGE_START","messageId":"m"}]`
	appendForHooks = `select agui.append($1, $2, $3, scope => $4)`
)

func TestWebhooksSayHowRunsEnded(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	testdb.Exec(t, pool, appendForHooks, "before", "r", finishedRun, "")
	all := addEndpoint(t, pool, jobs.Webhook{Name: "all", AllScopes: true}, nil)
	acme := addEndpoint(t, pool, jobs.Webhook{Name: "acme", Scope: "acme"}, nil)
	some := addEndpoint(t, pool, jobs.Webhook{Name: "some", Kinds: []jobs.WebhookKind{jobs.WebhookRunFailed, jobs.WebhookRunWaiting}}, nil)

	testdb.Exec(t, pool, appendForHooks, "t", "r1", finishedRun, "")
	testdb.Exec(t, pool, appendForHooks, "t", "r2", failedRun, "")
	testdb.Exec(t, pool, appendForHooks, "t", "r3", cancelledRun, "")
	testdb.Exec(t, pool, appendForHooks, "t", "r4", waitingRun, "")
	testdb.Exec(t, pool, appendForHooks, "t", "r5", runInProgress, "")
	testdb.Exec(t, pool, appendForHooks, "cut", "r", runInProgress, "acme")
	testdb.Exec(t, pool, `select agui.abandon('cut', 'r', 'the process was killed', scope => 'acme')`)
	if done := mustSend(t, pool, toLoopback); done.Sent != 8 || done.Failed != 0 || done.GivenUp != 0 || done.Stopped != "" {
		t.Errorf("done: %+v", done)
	}
	ofAll := []string{"run.cancelled t r3", "run.failed cut r", "run.failed t r2", "run.finished t r1", "run.waiting t r4"}
	all.expect(t, ofAll...)
	acme.expect(t, "run.failed cut r")
	some.expect(t, "run.failed t r2", "run.waiting t r4")

	// The same event has the same id for each of them. The body has no message.
	bodies := map[string]string{}
	for _, got := range slices.Concat(all.notices(), acme.notices(), some.notices()) {
		if body, known := bodies[got.id]; known && body != got.body || strings.Contains(got.body, "secret") || !strings.HasPrefix(got.id, "evt_") {
			t.Errorf("%s: %s, and %s", got.id, got.body, body)
		}
		bodies[got.id] = got.body
	}
	if len(bodies) != 5 {
		t.Errorf("%d events of 5", len(bodies))
	}
	for _, body := range bodies {
		var sent map[string]any
		must.Do(t, json.Unmarshal([]byte(body), &sent))
		data := sent["data"].(map[string]any)
		run := fmt.Sprint(data["threadId"], " ", data["runId"])
		var at, startedAt, endedAt time.Time
		for into, text := range map[*time.Time]any{&at: sent["timestamp"], &startedAt: data["startedAt"], &endedAt: data["endedAt"]} {
			var err error
			if *into, err = time.Parse(time.RFC3339Nano, text.(string)); err != nil || time.Since(*into) > time.Hour {
				t.Errorf("%s: %v, %v", run, text, err)
			}
		}
		if !at.Equal(endedAt) || endedAt.Before(startedAt) {
			t.Errorf("%s: %s", run, body)
		}
		delete(data, "startedAt")
		delete(data, "endedAt")
		rest, _ := json.Marshal(data)
		want := map[string]string{
			"t r1":  `{"firstSeq":1,"lastSeq":3,"runId":"r1","scope":"","status":"finished","threadId":"t"}`,
			"t r2":  `{"error":{"code":"E1","message":"no \"model\" \\u0000"},"firstSeq":4,"lastSeq":6,"parentRunId":"r1","runId":"r2","scope":"","status":"failed","threadId":"t"}`,
			"t r3":  `{"firstSeq":7,"lastSeq":8,"parentRunId":"r2","runId":"r3","scope":"","status":"cancelled","threadId":"t"}`,
			"t r4":  `{"firstSeq":9,"interrupts":[{"expiresAt":"2031-01-01T00:00:00+00:00","id":"i1","reason":"approval","toolCallId":"c"},{"id":"i2"}],"lastSeq":10,"parentRunId":"r3","runId":"r4","scope":"","status":"interrupted","threadId":"t"}`,
			"cut r": `{"error":{"code":"RUN_CUT_OFF","message":"The run was cut off: the process was killed"},"firstSeq":1,"lastSeq":4,"runId":"r","scope":"acme","status":"cut_off","threadId":"cut"}`,
		}[run]
		if string(rest) != want {
			t.Errorf("%s: %s, want %s", run, rest, want)
		}
	}

	// Another call has nothing to send, and the end of the run in progress comes when it ends.
	if done := mustSend(t, pool, toLoopback); done.Sent != 0 {
		t.Errorf("once more: %+v", done)
	}
	testdb.Exec(t, pool, `select agui.append('t', 'r5', '[{"type":"TEXT_MESSAGE_END","messageId":"m"},{"type":"RUN_FINISHED"}]')`)
	mustSend(t, pool, toLoopback)
	all.expect(t, append(ofAll[:4:4], "run.finished t r5", ofAll[4])...)
}

// What an agent says may have 64 MB. Endpoints refuse requests that are so large, and each is stored until it is sent.
func TestBodiesOfWebhooksAreBounded(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	to := addEndpoint(t, pool, jobs.Webhook{Name: "all", AllScopes: true}, nil)
	long := strings.Repeat("é", 100_000)
	asked := fmt.Sprintf(`{"id":%q,"reason":%q,"toolCallId":%q}`, long, long, long)
	for thread, outcome := range map[string]string{
		"long": asked,
		"many": asked + strings.Repeat(`,{"id":"i","reason":"approval"}`, 10_000),
	} {
		testdb.Exec(t, pool, appendForHooks, thread, "r", fmt.Sprintf(`[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[%s]}}]`, outcome), "")
	}
	testdb.Exec(t, pool, appendForHooks, "failed", "r", fmt.Sprintf(`[{"type":"RUN_STARTED"},{"type":"RUN_ERROR","message":%q,"code":%q}]`, long, long), "")
	mustSend(t, pool, toLoopback)
	to.expect(t, "run.failed failed r", "run.waiting long r", "run.waiting many r")
	for _, got := range to.notices() {
		if len(got.body) > 16<<10 {
			t.Errorf("%s: a body of %d bytes", got.run, len(got.body))
		}
	}
}

// One end is one event, whatever is appended after it. A run that ends once more is another.
func TestWebhooksAreSentOncePerEnd(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	testdb.Exec(t, pool, appendForHooks, "before", "r", finishedRun, "")
	e := addEndpoint(t, pool, jobs.Webhook{Name: "e", AllScopes: true}, nil)
	testdb.Exec(t, pool, `select agui.append('before', 'r', '[{"type":"CUSTOM","name":"late","value":1}]', after_seq => 3)`)
	testdb.Exec(t, pool, appendForHooks, "t", "r", finishedRun, "")
	mustSend(t, pool, toLoopback)
	testdb.Exec(t, pool, `select agui.append('t', 'r', '[{"type":"CUSTOM","name":"late","value":1}]', after_seq => 3)`)
	mustSend(t, pool, toLoopback)
	testdb.Exec(t, pool, `select agui.append('t', 'r', '[{"type":"RUN_STARTED"}]', after_seq => 4)`)
	mustSend(t, pool, toLoopback)
	e.expect(t, "run.finished t r")
	testdb.Exec(t, pool, `select agui.append('t', 'r', '[{"type":"RUN_ERROR","message":"no"}]', after_seq => 5)`)
	mustSend(t, pool, toLoopback)
	e.expect(t, "run.failed t r", "run.finished t r")
	testdb.Exec(t, pool, `select agui.append('t', 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_ERROR","message":"no"}]', after_seq => 6)`)
	mustSend(t, pool, toLoopback)
	e.expect(t, "run.failed t r", "run.failed t r", "run.finished t r")
	if got := e.notices(); got[0].id == got[1].id || got[1].id == got[2].id {
		t.Errorf("two events have the same id: %+v", got)
	}
	// What jobs do to a run is not sent.
	testdb.Exec(t, pool, `call agui.compact()`)
	testdb.Exec(t, pool, `call agui.repack(older_than => '0')`)
	mustSend(t, pool, toLoopback)
	if n := len(e.notices()); n != 3 {
		t.Errorf("%d requests", n)
	}
}

// An answer that failed opens the question again, which is one request more. Others fail without one.
func TestWebhooksSayThatAQuestionWaitsAgain(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	e := addEndpoint(t, pool, jobs.Webhook{Name: "e", AllScopes: true}, nil)
	testdb.Exec(t, pool, appendForHooks, "t", "r1", waitingRun, "")
	testdb.Exec(t, pool, appendForHooks, "t", "r2", failedRun, "")
	testdb.Exec(t, pool, appendForHooks, "t", "r3", runInProgress, "")
	mustSend(t, pool, toLoopback)
	e.expect(t, "run.failed t r2", "run.waiting t r1", "run.waiting t r2")
	for _, got := range e.notices() {
		if got.run == "run.waiting t r2" && (!strings.Contains(got.body, `"interrupts":[{"id":"i1"`) || !strings.Contains(got.body, `"status":"failed"`) || strings.Contains(got.body, `"error"`)) {
			t.Error(got.body)
		}
	}
	testdb.Exec(t, pool, `select agui.append('t', 'r3', '[{"type":"RUN_FINISHED"}]', after_seq => 7)`)
	testdb.Exec(t, pool, appendForHooks, "t", "r4", failedRun, "")
	mustSend(t, pool, toLoopback)
	e.expect(t, "run.failed t r2", "run.failed t r4", "run.finished t r3", "run.waiting t r1", "run.waiting t r2")
}

// failures lists what agui.webhook_failures shows.
func failures(t *testing.T, pool *pgxpool.Pool) (lines []string) {
	t.Helper()
	found := must.Have(jobs.WebhookFailures(t.Context(), pool, "", 0))(t)
	for _, failure := range found {
		state := "is retried"
		if failure.NextAttemptAt.IsZero() {
			state = "for good"
		}
		lines = append(lines, fmt.Sprintf("%s %s %s %s: %d attempts, %s, %s", failure.Webhook, failure.Kind, failure.ThreadID, failure.RunID, failure.Attempts, failure.Outcome, state))
	}
	return lines
}

// A request that fails is repeated with growing pauses for about a day. Then it waits for somebody who sends it once more, or drops it.
func TestFailedWebhooksAreRepeatedForADay(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	works := false
	var mu sync.Mutex
	e := addEndpoint(t, pool, jobs.Webhook{Name: "e", AllScopes: true}, func(_ notice, w http.ResponseWriter) {
		mu.Lock()
		defer mu.Unlock()
		if !works {
			w.WriteHeader(500)
		}
	})
	testdb.Exec(t, pool, appendForHooks, "t", "r", finishedRun, "")
	var clock clock
	total := time.Duration(0)
	for attempt, least := range []float64{15, 60, 240, 960, 3840, 15360, 61440} {
		if done := mustSend(t, pool, clock.options()); done.Failed != 1 || done.Sent+done.GivenUp != 0 {
			t.Fatalf("attempt %d: %+v", attempt+1, done)
		}
		if got, want := failures(t, pool), fmt.Sprintf("e run.finished t r: %d attempts, 500 Internal Server Error, is retried", attempt+1); len(got) != 1 || got[0] != want {
			t.Errorf("failures %q, want %q", got, want)
		}
		pause := testdb.Ask[float64](t, pool, `select extract(epoch from next_at - $1::timestamptz) from agui_internal.webhook_request`, clock.now())
		if pause < least*0.8-10 || pause > least*1.2 { // the test may have been slow
			t.Errorf("the pause after attempt %d is %g s, want %g or so", attempt+1, pause, least)
		}
		next := time.Duration(pause * float64(time.Second))
		total += next
		if attempt > 0 { // not before its time
			clock.advance(next - 10*time.Second)
			if done := mustSend(t, pool, clock.options()); done.Failed+done.Sent != 0 {
				t.Errorf("%s before the time: %+v", 10*time.Second, done)
			}
			next = 10 * time.Second
		}
		clock.advance(next + time.Millisecond)
	}
	if total < 17*time.Hour || total > 28*time.Hour {
		t.Errorf("all attempts take %s", total)
	}
	done, err := sendWebhooks(t, pool, clock.options())
	if done.GivenUp != 1 || done.Failed != 0 || err == nil || !strings.Contains(err.Error(), `webhook "e": 1 requests failed for good, the last with: 500 Internal Server Error`) {
		t.Errorf("the last attempt: %+v, %v", done, err)
	}
	dead := "e run.finished t r: 8 attempts, 500 Internal Server Error, for good"
	if got := failures(t, pool); len(got) != 1 || got[0] != dead {
		t.Errorf("failures %q", got)
	}
	if hooks, err := jobs.Webhooks(t.Context(), pool); err != nil || len(hooks) != 1 || hooks[0].Failed != 1 || hooks[0].ToSend != 0 || !hooks[0].Enabled {
		t.Errorf("webhooks: %+v, %v", hooks, err)
	}
	clock.advance(20 * 24 * time.Hour)
	if done := mustSend(t, pool, clock.options()); done != (jobs.WebhooksSent{Duration: done.Duration}) {
		t.Errorf("after the last attempt: %+v", done)
	}

	// Once more, with all attempts, and with the same id.
	if n, err := jobs.RetryWebhookFailures(t.Context(), pool, "e", "evt_other"); err != nil || n != 0 {
		t.Error(n, err)
	}
	if n, err := jobs.RetryWebhookFailures(t.Context(), pool, "e", e.notices()[0].id); err != nil || n != 1 {
		t.Error(n, err)
	}
	if done := mustSend(t, pool, clock.options()); done.Failed != 1 {
		t.Errorf("retried: %+v", done)
	}
	mu.Lock()
	works = true
	mu.Unlock()
	if n, err := jobs.RetryWebhookFailures(t.Context(), pool, "e", ""); err != nil || n != 1 {
		t.Error(n, err)
	}
	if done := mustSend(t, pool, clock.options()); done.Sent != 1 {
		t.Errorf("retried: %+v", done)
	}
	got := e.notices()
	if slices.ContainsFunc(got, func(n notice) bool { return n != got[0] }) || len(got) != 10 {
		t.Errorf("%d requests that are not the same: %+v", len(got), got)
	}
	if left := failures(t, pool); len(left) != 0 {
		t.Errorf("failures %q", left)
	}
}

func TestFailedWebhooksAreDropped(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	e := addEndpoint(t, pool, jobs.Webhook{Name: "e", AllScopes: true}, answering(500))
	for _, run := range []string{"a", "b", "c"} {
		testdb.Exec(t, pool, appendForHooks, "t", run, finishedRun, "")
	}
	mustSend(t, pool, toLoopback)
	if n, err := jobs.DropWebhookFailures(t.Context(), pool, "e", e.notices()[0].id); err != nil || n != 1 || len(failures(t, pool)) != 2 {
		t.Error(n, err, failures(t, pool))
	}
	if n, err := jobs.DropWebhookFailures(t.Context(), pool, "e", ""); err != nil || n != 2 || len(failures(t, pool)) != 0 {
		t.Error(n, err, failures(t, pool))
	}
	// They do not come back when all is read anew.
	testdb.Exec(t, pool, `update agui_internal.webhook_position set position = '1/1 changed 5 00000000-0000-0000-0000-000000000000 0'`)
	var clock clock
	clock.advance(time.Hour)
	mustSend(t, pool, clock.options())
	if n := len(e.notices()); n != 3 {
		t.Errorf("%d requests", n)
	}
}

// An endpoint says how long to wait, and then gets nothing.
func TestWebhooksWaitAsLongAsTheEndpointAsks(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	e := addEndpoint(t, pool, jobs.Webhook{Name: "e", AllScopes: true}, answering(429, "Retry-After", "3000"))
	other := addEndpoint(t, pool, jobs.Webhook{Name: "other", AllScopes: true}, answering(503, "Retry-After", "1"))
	for i := range 20 {
		testdb.Exec(t, pool, appendForHooks, "t", fmt.Sprint("r", i), finishedRun, "")
	}
	mustSend(t, pool, toLoopback)
	if n := len(e.notices()); n < 1 || n > 8 { // those that were on their way
		t.Errorf("%d requests", n)
	}
	for name, least := range map[string]int{"e": 2990, "other": 2} {
		if n := count(t, pool, `select count(*) from agui_internal.webhook_request where webhook = $1 and attempts = 1 and next_at < now() + $2 * interval '1 second'`, name, least); n != 0 {
			t.Errorf("%s: %d requests are due before their time", name, n)
		}
	}
	var clock clock
	clock.advance(2900 * time.Second)
	before := len(other.notices())
	mustSend(t, pool, clock.options())
	if len(other.notices()) == before {
		t.Error("the other endpoint got nothing")
	}
	clock.advance(time.Hour)
	before = len(e.notices())
	mustSend(t, pool, clock.options())
	if len(e.notices()) == before {
		t.Error("the endpoint got nothing after its time")
	}
}

func TestAGoneEndpointIsDisabled(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	status := http.StatusGone
	e := addEndpoint(t, pool, jobs.Webhook{Name: "e", AllScopes: true}, func(_ notice, w http.ResponseWriter) { w.WriteHeader(status) })
	other := addEndpoint(t, pool, jobs.Webhook{Name: "other", AllScopes: true}, nil)
	testdb.Exec(t, pool, appendForHooks, "t", "r1", finishedRun, "")
	if done, err := sendWebhooks(t, pool, toLoopback); done.Sent != 1 || done.Failed != 1 || err == nil || !strings.Contains(err.Error(), `webhook "e" is disabled`) {
		t.Errorf("done: %+v, %v", done, err)
	}
	hooks, err := jobs.Webhooks(t.Context(), pool)
	if err != nil || hooks[0].Enabled || hooks[0].DisabledBecause != "the endpoint answered 410 Gone" || hooks[0].ToSend != 1 || !hooks[1].Enabled {
		t.Errorf("webhooks: %+v, %v", hooks, err)
	}
	testdb.Exec(t, pool, appendForHooks, "t", "r2", finishedRun, "")
	var clock clock
	clock.advance(time.Minute)
	mustSend(t, pool, clock.options())
	other.expect(t, "run.finished t r1", "run.finished t r2")
	e.expect(t, "run.finished t r1")

	// Enabled again, it gets both.
	if known, err := jobs.EnableWebhook(t.Context(), pool, "e", true); err != nil || !known {
		t.Error(known, err)
	}
	status = http.StatusOK
	mustSend(t, pool, clock.options())
	e.expect(t, "run.finished t r1", "run.finished t r1", "run.finished t r2")
	if known, err := jobs.EnableWebhook(t.Context(), pool, "unknown", true); err != nil || known {
		t.Error(known, err)
	}
}

// What happens while a webhook is disabled is sent once it is enabled.
func TestDisabledWebhooksKeepTheirPlace(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	e := addEndpoint(t, pool, jobs.Webhook{Name: "e", AllScopes: true}, nil)
	must.Have(jobs.EnableWebhook(t.Context(), pool, "e", false))(t)
	testdb.Exec(t, pool, appendForHooks, "t", "r", finishedRun, "")
	belowHorizon(t, pool)
	if has, err := jobs.HasWebhooksToSend(t.Context(), pool, toLoopback); has || err != nil {
		t.Error(has, err)
	}
	mustSend(t, pool, toLoopback)
	e.expect(t)
	must.Have(jobs.EnableWebhook(t.Context(), pool, "e", true))(t)
	mustSend(t, pool, toLoopback)
	e.expect(t, "run.finished t r")
}

// Without an option, no request goes to this machine or its network, or in plain text. No request follows a redirect.
func TestWebhooksGoOnlyWhereTheyMay(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	private := addEndpoint(t, pool, jobs.Webhook{Name: "private", AllScopes: true}, nil)
	name := addEndpoint(t, pool, jobs.Webhook{Name: "name", AllScopes: true}, nil)
	testdb.Exec(t, pool, `update agui.webhook set url = replace(url, '127.0.0.1', 'localhost') where name = 'name'`)
	moved := addEndpoint(t, pool, jobs.Webhook{Name: "moved", AllScopes: true}, nil)
	moved.answer = func(_ notice, w http.ResponseWriter) {
		w.Header().Set("Location", private.URL)
		w.WriteHeader(http.StatusTemporaryRedirect)
	}
	testdb.Exec(t, pool, appendForHooks, "t", "r", finishedRun, "")
	options := jobs.WebhookOptions{AllowHTTP: true}
	mustSend(t, pool, options)
	for _, failure := range failures(t, pool) {
		if !strings.Contains(failure, "the address is not public") {
			t.Errorf("failure: %s", failure)
		}
	}
	var clock clock
	clock.advance(time.Minute)
	options = clock.options()
	options.AllowHTTP = false
	mustSend(t, pool, options)
	for _, failure := range failures(t, pool) {
		if !strings.Contains(failure, "http:// is not allowed") {
			t.Errorf("failure: %s", failure)
		}
	}
	if n := len(failures(t, pool)); n != 3 || len(private.notices())+len(name.notices())+len(moved.notices()) != 0 {
		t.Errorf("%d failures, and requests: %v %v %v", n, private.received(), name.received(), moved.received())
	}
	clock.advance(time.Hour)
	mustSend(t, pool, clock.options())
	private.expect(t, "run.finished t r")
	if got := failures(t, pool); !slices.ContainsFunc(got, func(line string) bool {
		return strings.Contains(line, "moved run.finished t r: 3 attempts, 307 Temporary Redirect (redirects are not followed)")
	}) {
		t.Errorf("failures: %q", got)
	}
}

// An endpoint that does not answer holds up no other: one gets what happens while a request to the other is on its way.
func TestASlowEndpointHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	isSlow, isDone := make(chan struct{}, 10), make(chan struct{})
	addEndpoint(t, pool, jobs.Webhook{Name: "a-slow-one", AllScopes: true}, func(notice, http.ResponseWriter) {
		isSlow <- struct{}{}
		<-isDone
	})
	quick := addEndpoint(t, pool, jobs.Webhook{Name: "quick", AllScopes: true}, nil)
	testdb.Exec(t, pool, appendForHooks, "t", "r1", finishedRun, "")
	belowHorizon(t, pool)
	var group errgroup.Group
	group.Go(func() error {
		_, err := jobs.SendWebhooks(t.Context(), pool, toLoopback)
		return err
	})
	<-isSlow
	testdb.Exec(t, pool, appendForHooks, "t", "r2", finishedRun, "")
	wait.For(t, "the second event", func() bool { return len(quick.notices()) == 2 })
	close(isDone)
	must.Report(t, group.Wait())
	quick.expect(t, "run.finished t r1", "run.finished t r2")
}

// An endpoint that is down gets a few requests, not all that wait, and the others are not attempts.
func TestADeadEndpointRests(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	dead := addEndpoint(t, pool, jobs.Webhook{Name: "dead", AllScopes: true}, nil)
	dead.Close()
	for i := range 30 {
		testdb.Exec(t, pool, appendForHooks, "t", fmt.Sprint("r", i), finishedRun, "")
	}
	if done := mustSend(t, pool, toLoopback); done.Failed < 1 || done.Failed > 8 {
		t.Errorf("done: %+v", done)
	}
	if n := count(t, pool, `select count(*) from agui_internal.webhook_request where attempts = 0 and next_at is not null`); n < 22 {
		t.Errorf("%d of 30 requests were not begun", n)
	}
}

// The process dies after the endpoint has the request, and before the database knows.
func TestKilledSendersLoseNothing(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	pool := testdb.Connect(t, url)
	hold := must.Have(pool.Begin(t.Context()))(t)
	defer hold.Rollback(context.Background())
	isAnswered, isFirst := make(chan error, 10), true
	e := addEndpoint(t, pool, jobs.Webhook{Name: "e", AllScopes: true}, nil)
	e.answer = func(_ notice, w http.ResponseWriter) {
		if !isFirst {
			return
		}
		isFirst = false
		// The note of the answer waits.
		_, err := hold.Exec(context.Background(), `select from agui_internal.webhook_request for update`)
		w.WriteHeader(200)
		isAnswered <- err
	}
	testdb.Exec(t, pool, appendForHooks, "t", "r", finishedRun, "")
	belowHorizon(t, pool)
	process := exec.Command(os.Args[0])
	process.Env = append(os.Environ(), jobToDo+"=webhooks", jobDatabase+"="+url)
	process.Stderr = os.Stderr
	must.Do(t, process.Start())
	must.Do(t, <-isAnswered)
	wait.For(t, "the note of the answer", func() bool {
		return count(t, pool, `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query ~ 'note_webhook_request'`) == 1
	})
	must.Do(t, process.Process.Kill())
	_ = process.Wait()
	// The server ends the session of the process when it notices, and nothing of its call stays.
	testdb.Exec(t, pool, `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)
	wait.For(t, "the end of the session", func() bool {
		return count(t, pool, `select count(*) from pg_stat_activity where datname = current_database() and query ~ 'note_webhook_request' and pid <> pg_backend_pid()`) == 0
	})
	must.Do(t, hold.Rollback(t.Context()))
	// Not before the lease has passed: the process might be alive.
	if done, err := jobs.SendWebhooks(t.Context(), pool, toLoopback); err != nil || done.Sent != 0 {
		t.Errorf("at once: %+v, %v", done, err)
	}
	var clock clock
	clock.advance(2 * time.Minute)
	if done := mustSend(t, pool, clock.options()); done.Sent != 1 {
		t.Errorf("later: %+v", done)
	}
	if got := e.notices(); len(got) != 2 || got[0] != got[1] {
		t.Errorf("requests: %+v", got)
	}
}

// A process that is killed at any time leaves no request that is never sent.
func TestKillsLoseNoWebhook(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	pool := testdb.Connect(t, url)
	e := addEndpoint(t, pool, jobs.Webhook{Name: "e", AllScopes: true}, nil)
	runs := 0
	var clock clock
	for range kills() {
		for range 30 {
			testdb.Exec(t, pool, appendForHooks, "t", fmt.Sprint("r", runs), finishedRun, "")
			runs++
		}
		belowHorizon(t, pool)
		killAtRandom(t, url, "webhooks")
	}
	clock.advance(2 * time.Minute)
	mustSend(t, pool, clock.options())
	events := map[string]bool{}
	for _, got := range e.notices() {
		events[got.id] = true
	}
	if len(events) != runs {
		t.Errorf("%d events of %d were sent", len(events), runs)
	}
	if n := count(t, pool, `select count(*) from agui_internal.webhook_request where next_at is not null`); n != 0 {
		t.Errorf("%d requests wait", n)
	}
}

// Workers that run at once send each request once, even without the lock of the job.
func TestWorkersShareWebhooks(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	one := addEndpoint(t, pool, jobs.Webhook{Name: "one", AllScopes: true}, nil)
	two := addEndpoint(t, pool, jobs.Webhook{Name: "two", AllScopes: true}, nil)
	const runs = 150
	for i := range runs {
		testdb.Exec(t, pool, appendForHooks, "t", fmt.Sprint("r", i), finishedRun, "")
	}
	belowHorizon(t, pool)
	var group errgroup.Group
	for range 4 {
		group.Go(func() error {
			_, err := jobs.SendWebhooks(t.Context(), pool, toLoopback)
			return err
		})
	}
	must.Do(t, group.Wait())
	for _, e := range []*endpoint{one, two} {
		got := e.received()
		if all := len(got); all != runs || len(slices.Compact(got)) != runs {
			t.Errorf("%s: %d requests for %d runs", e.name, all, runs)
		}
	}
}

// A worker that is late moves no position back.
func TestAPositionMovesOnce(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	addEndpoint(t, pool, jobs.Webhook{Name: "e", AllScopes: true}, nil)
	testdb.Exec(t, pool, `update agui_internal.webhook_position set position = 'first'`)
	for _, move := range []struct {
		webhook, after, to string
		isMoved            int64
	}{{"e", "other", "x", 0}, {"unknown", "first", "x", 0}, {"e", "first", "second", 1}, {"e", "first", "x", 0}, {"e", "second", "third", 1}} {
		if moved := count(t, pool, `select agui_internal.add_webhook_requests($1, $2, $3, '{}', '{}', '{}')::int`, move.webhook, move.after, move.to); moved != move.isMoved {
			t.Errorf("%+v: moved %d", move, moved)
		}
	}
	if n := count(t, pool, `select count(*) from agui_internal.webhook_position where position = 'third'`); n != 1 {
		t.Error("the position is not the last one")
	}
}

func TestErasureRemovesWebhookRequests(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	e := addEndpoint(t, pool, jobs.Webhook{Name: "e", AllScopes: true}, func(got notice, w http.ResponseWriter) {
		if got.run == "meanwhile r" {
			testdb.Exec(t, pool, `select agui.erase('meanwhile')`)
		}
		w.WriteHeader(500)
	})
	for _, thread := range []string{"pending", "dead", "meanwhile", "stays"} {
		testdb.Exec(t, pool, appendForHooks, thread, "r", failedRun, "")
	}
	mustSend(t, pool, toLoopback)
	testdb.Exec(t, pool, `update agui_internal.webhook_request set next_at = null where thread_key = agui.thread_key('', 'dead')`)
	if n := len(failures(t, pool)); n != 3 {
		t.Errorf("%d failures", n)
	}
	testdb.Exec(t, pool, `select agui.erase('pending'), agui.erase('dead')`)
	if got := failures(t, pool); len(got) != 1 || !strings.HasPrefix(got[0], "e run.failed stays r") {
		t.Errorf("failures %q", got)
	}
	if n := count(t, pool, `select count(*) from agui_internal.webhook_request`); n != 1 {
		t.Errorf("%d requests", n)
	}
	// A thread that is erased before the job comes gets none.
	testdb.Exec(t, pool, appendForHooks, "gone", "r", finishedRun, "")
	testdb.Exec(t, pool, `select agui.erase('gone')`)
	mustSend(t, pool, toLoopback)
	if got := e.received(); len(got) != 4 {
		t.Errorf("received %q", got)
	}
}

// In another history of transactions all runs are read, and what was sent is not sent twice. Neither is what ended before the webhook.
func TestWebhooksSurviveAnotherHistory(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	testdb.Exec(t, pool, appendForHooks, "t", "before", finishedRun, "")
	e := addEndpoint(t, pool, jobs.Webhook{Name: "e", AllScopes: true}, nil)
	testdb.Exec(t, pool, appendForHooks, "t", "r1", finishedRun, "")
	mustSend(t, pool, toLoopback)
	testdb.Exec(t, pool, appendForHooks, "t", "r2", failedRun, "")
	// As a dump of another cluster brings it.
	testdb.Exec(t, pool, `update agui_internal.webhook_position set position = '1/1 changed 9000000000000 ffffffff-ffff-ffff-ffff-ffffffffffff 1'`)
	belowHorizon(t, pool)
	if has, err := jobs.HasWebhooksToSend(t.Context(), pool, toLoopback); !has || err != nil {
		t.Error(has, err)
	}
	if done := mustSend(t, pool, toLoopback); done.Sent != 1 {
		t.Errorf("done: %+v", done)
	}
	e.expect(t, "run.failed t r2", "run.finished t r1")
	testdb.Exec(t, pool, appendForHooks, "t", "r3", cancelledRun, "")
	mustSend(t, pool, toLoopback)
	e.expect(t, "run.cancelled t r3", "run.failed t r2", "run.finished t r1")
	belowHorizon(t, pool)
	if has, err := jobs.HasWebhooksToSend(t.Context(), pool, toLoopback); has || err != nil {
		t.Error("all is read:", has, err)
	}
}

// Requests are forgotten 30 days after the end of their run, and an end that is older gets none.
func TestOldEndsAreNotSent(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	e := addEndpoint(t, pool, jobs.Webhook{Name: "e", AllScopes: true}, nil)
	testdb.Exec(t, pool, appendForHooks, "t", "r1", finishedRun, "")
	mustSend(t, pool, toLoopback)
	testdb.Exec(t, pool, `update agui.webhook set created_at = created_at - interval '1 year'`)
	// Its end is old, and something came after it just now.
	importOld(t, pool, "", "old", 31, finished)
	testdb.Exec(t, pool, `select agui.append('old', 'r1', '[{"type":"CUSTOM","name":"late","value":1}]', after_seq => 3)`)
	importOld(t, pool, "", "newer", 29, finished)
	testdb.Exec(t, pool, `update agui_internal.webhook_request set ended_at = ended_at - interval '31 days'`)
	mustSend(t, pool, toLoopback)
	e.expect(t, "run.finished newer r1", "run.finished t r1")
	if n := count(t, pool, `select count(*) from agui_internal.webhook_request`); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// The job of the worker takes no lock as long as there is nothing to send.
func TestWebhooksCostLittleWithoutWork(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	job := jobs.Job{
		Name:    "webhooks",
		HasWork: func(ctx context.Context) (bool, error) { return jobs.HasWebhooksToSend(ctx, pool, toLoopback) },
		Work:    func(ctx context.Context) (any, error) { return jobs.SendWebhooks(ctx, pool, toLoopback) },
	}
	run := func(want jobs.SkipReason) {
		t.Helper()
		belowHorizon(t, pool)
		if report := mustRun(t, pool, job); report.Skipped != want {
			t.Errorf("skipped: %q, want %q", report.Skipped, want)
		}
	}
	testdb.Exec(t, pool, appendForHooks, "t", "r0", finishedRun, "")
	run(jobs.SkippedIdle)
	e := addEndpoint(t, pool, jobs.Webhook{Name: "e", AllScopes: true}, nil)
	wait.For(t, "the runs before the webhook", func() bool { return mustRun(t, pool, job).Skipped == jobs.SkippedIdle })
	testdb.Exec(t, pool, appendForHooks, "t", "r1", finishedRun, "")
	run("")
	run(jobs.SkippedIdle)
	e.expect(t, "run.finished t r1")
	lacking := jobs.Job{Name: "webhooks", HasWork: func(context.Context) (bool, error) { return false, errors.New("no") }}
	if report, err := lacking.Run(t.Context(), pool, nil); err == nil {
		t.Errorf("report: %+v", report)
	}
}

// A worker that stops begins no more requests, and waits for those that are on their way.
func TestWebhooksStopOnCall(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	e := addEndpoint(t, pool, jobs.Webhook{Name: "e", AllScopes: true}, func(notice, http.ResponseWriter) { stop() })
	for i := range 40 {
		testdb.Exec(t, pool, appendForHooks, "t", fmt.Sprint("r", i), finishedRun, "")
	}
	belowHorizon(t, pool)
	graceful, cancel := jobs.WithGrace(ctx, time.Minute)
	defer cancel()
	done, err := jobs.SendWebhooks(graceful, pool, toLoopback)
	if err != nil || done.Stopped != jobs.StoppedOnCall || done.Sent != len(e.notices()) || done.Sent > 16 {
		t.Errorf("done: %+v, %v, of %d requests", done, err, len(e.notices()))
	}
	mustSend(t, pool, toLoopback)
	if got := slices.Compact(e.received()); len(got) != 40 {
		t.Errorf("%d of 40", len(got))
	}
	// Without a grace the requests on their way are sent once more.
	ended, end := context.WithCancel(t.Context())
	e.answer = func(notice, http.ResponseWriter) { end() }
	testdb.Exec(t, pool, appendForHooks, "t", "last", finishedRun, "")
	belowHorizon(t, pool)
	_, _ = jobs.SendWebhooks(ended, pool, toLoopback)
	var clock clock
	clock.advance(2 * time.Minute)
	if _, err := jobs.SendWebhooks(t.Context(), pool, clock.options()); err != nil {
		t.Error(err)
	}
	if n := count(t, pool, `select count(*) from agui_internal.webhook_request where body is not null`); n != 0 {
		t.Errorf("%d requests wait", n)
	}
}

func TestWebhooksAreAddedAndRemoved(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	ctx := t.Context()
	add := func(hook jobs.Webhook, secret string) error {
		_, err := jobs.AddWebhook(ctx, pool, hook, secret)
		return err
	}
	own := "whsec_" + strings.Repeat("ab12", 8)
	if secret, err := jobs.AddWebhook(ctx, pool, jobs.Webhook{Name: "b", URL: "https://example.com/b", Scope: "acme", Kinds: []jobs.WebhookKind{jobs.WebhookRunFailed}}, own); err != nil || secret != own {
		t.Error(secret, err)
	}
	random := map[string]bool{}
	for _, name := range []string{"a", "a.2_B-c"} {
		secret, err := jobs.AddWebhook(ctx, pool, jobs.Webhook{Name: name, URL: "https://example.com/a", AllScopes: true}, "")
		if _, signErr := webhook.Sign(secret, "i", time.Now(), nil); err != nil || signErr != nil || len(secret) != len("whsec_")+44 {
			t.Error(secret, err, signErr)
		}
		random[secret] = true
	}
	hooks, err := jobs.Webhooks(ctx, pool)
	if err != nil || len(hooks) != 3 || len(random) != 2 {
		t.Fatal(hooks, err)
	}
	if got, _ := json.Marshal(hooks[2]); !strings.HasPrefix(string(got), `{"name":"b","url":"https://example.com/b","scope":"acme","allScopes":false,"kinds":["run.failed"],"enabled":true,"createdAt"`) {
		t.Errorf("webhook: %s", got)
	}
	if !hooks[0].AllScopes || len(hooks[0].Kinds) != 4 {
		t.Errorf("webhook: %+v", hooks[0])
	}
	if err := add(jobs.Webhook{Name: "b", URL: "https://example.com"}, ""); err == nil || !strings.Contains(err.Error(), `there is a webhook "b" already`) {
		t.Error(err)
	}
	for _, wrong := range []struct {
		hook            jobs.Webhook
		secret, because string
	}{
		{jobs.Webhook{URL: "https://example.com"}, "", "its name must be"},
		{jobs.Webhook{Name: "a b", URL: "https://example.com"}, "", "its name must be"},
		{jobs.Webhook{Name: "c", URL: "example.com"}, "", "its URL must begin"},
		{jobs.Webhook{Name: "c", URL: "https://example.com/\n"}, "", "its URL must begin"},
		{jobs.Webhook{Name: "c", URL: "file:///etc/passwd"}, "", "its URL must begin"},
		{jobs.Webhook{Name: "c", URL: "https://example.com", Kinds: []jobs.WebhookKind{"run.started"}}, "", "its kinds must be some of"},
		{jobs.Webhook{Name: "c", URL: "https://example.com"}, "secret", "its secret must be"},
		{jobs.Webhook{Name: "c", URL: "https://example.com"}, "whsec_c2hvcnQ=", "its secret must be"},
		{jobs.Webhook{Name: "c", URL: "https://example.com"}, "whsec_" + strings.Repeat("a", 41), "the secret must be"},
		{jobs.Webhook{Name: "c", URL: "https://example.com"}, "whsec_" + strings.Repeat("ab12", 23), "its secret must be"},
	} {
		if err := add(wrong.hook, wrong.secret); !errors.Is(err, pgagui.ErrInvalidArgument) || !strings.Contains(err.Error(), wrong.because) {
			t.Errorf("%+v %s: %v, want %q", wrong.hook, wrong.secret, err, wrong.because)
		}
	}
	if _, err := jobs.TestWebhook(ctx, pool, "unknown", toLoopback); !errors.Is(err, pgagui.ErrNotFound) {
		t.Error(err)
	}
	if known, err := jobs.RemoveWebhook(ctx, pool, "unknown"); err != nil || known {
		t.Error(known, err)
	}

	e := addEndpoint(t, pool, jobs.Webhook{Name: "e", AllScopes: true}, answering(500))
	if done, err := jobs.TestWebhook(ctx, pool, "e", toLoopback); err != nil || done.IsTaken || done.Outcome != "500 Internal Server Error" {
		t.Errorf("test: %+v, %v", done, err)
	}
	if got := e.notices(); len(got) != 1 || got[0].kind != "webhook.test" {
		t.Errorf("test: %+v", got)
	}
	testdb.Exec(t, pool, appendForHooks, "t", "r", finishedRun, "")
	mustSend(t, pool, toLoopback)
	for _, name := range []string{"a", "a.2_B-c", "b", "e"} {
		if known, err := jobs.RemoveWebhook(ctx, pool, name); err != nil || !known {
			t.Error(known, err)
		}
	}
	if n := count(t, pool, `select (select count(*) from agui.webhook) + (select count(*) from agui_internal.webhook_request) + (select count(*) from agui_internal.webhook_position)`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}
