package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/panics"
	"github.com/pgagui/pgagui/internal/webhook"
)

const (
	// mostAttempts is how often a request is sent before it fails for good. With the pauses between them, that takes about a day.
	mostAttempts = 8
	// firstRetry is the pause after the first attempt. Each pause is retryFactor times the one before: 15 s, 1 min, 4 min, 16 min, 1 h, 4 h, 17 h.
	firstRetry  = 15 * time.Second
	retryFactor = 4
	// jitter spreads the pauses by this part of them, so that requests that failed together do not come back together.
	jitter = 0.2
	// sendLease is when another worker may send a request that a worker has claimed: the first has died.
	sendLease = 4 * webhook.Timeout
	// atOnce is how many requests are on their way to an endpoint at once.
	atOnce = 8
	// readEvery is how often changes are read while requests are on their way.
	readEvery = time.Second
	// webhookRest is how long an endpoint gets no more requests after one without an answer.
	webhookRest = 30 * time.Second
	// changesPage is how many changes are read for a webhook at once.
	changesPage = 1000
)

// WebhookOptions are the settings of [SendWebhooks]. The zero value sends over https to public addresses only.
type WebhookOptions struct {
	// Networks are networks in which endpoints may be, beside those of public addresses. An address is checked when the connection is
	// made.
	Networks []netip.Prefix
	// AllowHTTP permits URLs that begin with http://.
	AllowHTTP bool
	// Now is the clock by which requests are due; nil means time.Now.
	Now func() time.Time
}

func (o WebhookOptions) now() time.Time {
	if o.Now != nil {
		return o.Now()
	}
	return time.Now()
}

// WebhooksSent is the result of [SendWebhooks].
type WebhooksSent struct {
	// Sent is the number of requests that endpoints took.
	Sent int `json:"sent"`
	// Failed is the number of attempts that failed, and are repeated later.
	Failed int `json:"failed"`
	// GivenUp is the number of requests that failed for good ([WebhookFailures]).
	GivenUp int `json:"givenUp"`
	// Stopped says why the job ended with work left; empty if it did all work.
	Stopped StopReason `json:"stopped,omitempty"`
	// Duration is how long the job took.
	Duration time.Duration `json:"nanoseconds"`
}

// LogValue returns the counts as a group for slog.
func (w WebhooksSent) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("sent", w.Sent), slog.Int("failed", w.Failed), slog.Int("givenUp", w.GivenUp), slog.String("stopped", string(w.Stopped)))
}

// HasWebhooksToSend reports whether [SendWebhooks] would have something to do. It needs the rights of agui_worker.
func HasWebhooksToSend(ctx context.Context, pool *pgxpool.Pool, options WebhookOptions) (bool, error) {
	queries := db.New(pool)
	hooks, err := queries.WebhookEndpoints(ctx, options.now())
	for _, hook := range hooks {
		switch {
		case !hook.Enabled || hook.IsElsewhere:
		case hook.IsDue:
			return true, nil
		default:
			if changes, err := changesFor(ctx, queries, hook, 1); err != nil || len(changes) > 0 {
				return err == nil, err
			}
		}
	}
	return false, err
}

// changesFor reads what has changed behind the position of a webhook, in all scopes: a position that stayed behind what changes in other
// scopes would make each call slower. In another history of transactions it begins with all runs: those whose ends were sent get no second
// request.
func changesFor(ctx context.Context, queries *db.Queries, hook db.WebhookEndpointsRow, most int32) ([]db.ChangesRow, error) {
	params := db.ChangesParams{After: &hook.Position, MaxRows: most}
	changes, err := queries.Changes(ctx, params)
	if errors.Is(pgagui.ErrorOf(err), pgagui.ErrOtherHistory) {
		params.After = nil
		changes, err = queries.Changes(ctx, params)
	}
	return changes, err
}

// SendWebhooks sends the requests of webhooks: for each run that has ended or waits since the last call, and those that failed before and
// are due. It returns when all are sent or wait for their next attempt. A request is repeated until an endpoint takes it (a status of
// 2xx), with growing pauses, and fails for good after 8 attempts in about a day. An endpoint that answers 410 Gone is disabled. An
// endpoint that is slow or does not answer holds up no other. A copy of a database sends nothing ([TakeOverWebhooks]).
//
// A request is sent at least once: if the process dies before it has noted the answer, a later call sends it again, with the same
// webhook-id. SendWebhooks needs the rights of agui_worker. It returns an error if requests failed for good or an endpoint was disabled.
func SendWebhooks(ctx context.Context, pool *pgxpool.Pool, options WebhookOptions) (done WebhooksSent, err error) {
	begin := time.Now()
	s := sending{
		queries: db.New(pool), options: options, client: webhook.NewClient(options.Networks, options.AllowHTTP),
		hooks: map[string]*sendingTo{}, answers: make(chan answered),
	}
	defer s.client.Close()
	err = s.sendAll(ctx)
	s.done.Duration = time.Since(begin)
	return s.done, err
}

// sending is a call of SendWebhooks. Requests are sent in goroutines of their own; all else is done in one.
type sending struct {
	queries *db.Queries
	options WebhookOptions
	client  *webhook.Client
	done    WebhooksSent
	hooks   map[string]*sendingTo
	onTheir int // requests that are on their way
	answers chan answered
}

// sendingTo is a webhook during a call.
type sendingTo struct {
	db.WebhookEndpointsRow
	onTheir   int
	restUntil time.Time
	givenUp   int
	problem   string // of the last request that failed for good
	isGone    bool
}

// answered is a request that has been sent.
type answered struct {
	to      *sendingTo
	answer  webhook.Answer
	givenUp bool
	err     error // of the database, or of a context that has ended
}

func (s *sending) sendAll(ctx context.Context) error {
	var err error
	for err == nil {
		var more bool
		if more, err = s.readAll(ctx); err != nil {
			break
		}
		if hasToStop(ctx) {
			s.done.Stopped = StoppedOnCall
			break
		}
		if s.onTheir == 0 && !more {
			break
		}
		err = s.sendSome(ctx, more)
	}
	for s.onTheir > 0 {
		if failure := s.take(<-s.answers); err == nil {
			err = failure
		}
	}
	for _, hook := range s.hooks {
		if hook.givenUp > 0 {
			err = errors.Join(err, fmt.Errorf(
				"webhook %q: %d requests failed for good, the last with: %s (pgagui webhook failures)", hook.Name, hook.givenUp, hook.problem,
			))
		}
		if hook.isGone {
			err = errors.Join(err, fmt.Errorf("webhook %q is disabled, for its endpoint answered 410 Gone (pgagui webhook set --enabled)", hook.Name))
		}
	}
	return err
}

// readAll reads a page of what has changed for each webhook, and begins to send. more: there is more to read.
func (s *sending) readAll(ctx context.Context) (more bool, err error) {
	hooks, err := s.queries.WebhookEndpoints(ctx, s.options.now())
	if err != nil {
		return false, err
	}
	for _, row := range hooks {
		if !row.Enabled || row.IsElsewhere || hasToStop(ctx) {
			continue
		}
		hook := s.hooks[row.Name]
		if hook == nil {
			hook = &sendingTo{}
			s.hooks[row.Name] = hook
		}
		hook.WebhookEndpointsRow = row
		read, err := s.read(ctx, row)
		if err != nil {
			return false, fmt.Errorf("webhook %q: %w", row.Name, err)
		}
		more = more || read == changesPage
		if row.IsDue || read > 0 {
			if err := s.fill(ctx, hook); err != nil {
				return false, err
			}
		}
	}
	return more, nil
}

// read makes requests of a page of what has changed.
func (s *sending) read(ctx context.Context, hook db.WebhookEndpointsRow) (read int, err error) {
	changes, err := changesFor(ctx, s.queries, hook, changesPage)
	if err != nil || len(changes) == 0 {
		return 0, err
	}
	requests := db.AddWebhookRequestsParams{
		Webhook: hook.Name, After: hook.Position, Position: changes[len(changes)-1].Position, Scopes: []string{}, ThreadIds: []string{}, RunIds: []string{},
	}
	for _, change := range changes {
		isOfScope := hook.IsAll || change.Scope == hook.Scope
		if isOfScope && !change.EndedAt.Before(hook.CreatedAt) { // it is zero while the run is in progress
			requests.Scopes = append(requests.Scopes, change.Scope)
			requests.ThreadIds = append(requests.ThreadIds, change.ThreadID)
			requests.RunIds = append(requests.RunIds, change.RunID)
		}
	}
	_, err = s.queries.AddWebhookRequests(ctx, requests) // if another worker has done it, it is done
	return len(changes), err
}

// fill sends what is due to an endpoint, as far as requests may be on their way to it.
func (s *sending) fill(ctx context.Context, hook *sendingTo) error {
	now := s.options.now()
	if hook.isGone || hook.onTheir == atOnce || hook.restUntil.After(now) || hasToStop(ctx) {
		return nil
	}
	requests, err := s.queries.ClaimWebhookRequests(ctx, db.ClaimWebhookRequestsParams{
		Webhook: hook.Name, At: now, Until: now.Add(sendLease), MaxRows: int32(atOnce - hook.onTheir),
	})
	for _, request := range requests {
		s.onTheir++
		hook.onTheir++
		to := hook.WebhookEndpointsRow
		go panics.Task(nil, func() {
			answer, givenUp, err := s.send(ctx, to, request)
			s.answers <- answered{to: hook, answer: answer, givenUp: givenUp, err: err}
		}, func(err error) { s.answers <- answered{to: hook, err: err} })()
	}
	return err
}

// sendSome takes answers and sends the next requests, until it is time to read changes again.
func (s *sending) sendSome(ctx context.Context, more bool) error {
	wait := readEvery
	if more {
		wait = 0
	}
	next := time.NewTimer(wait)
	defer next.Stop()
	for s.onTheir > 0 {
		select {
		case result := <-s.answers:
			if err := s.take(result); err != nil {
				return err
			}
			if err := s.fill(ctx, result.to); err != nil {
				return err
			}
		case <-next.C:
			return nil
		}
	}
	return nil
}

// take counts what came of a request.
func (s *sending) take(result answered) error {
	s.onTheir--
	result.to.onTheir--
	answer := result.answer
	switch {
	case result.err != nil:
		return result.err
	case answer.IsTaken:
		s.done.Sent++
	case result.givenUp:
		s.done.GivenUp++
		result.to.givenUp++
		result.to.problem = answer.Outcome
	default:
		s.done.Failed++
	}
	result.to.isGone = result.to.isGone || answer.IsGone
	if answer.HasNone || answer.RetryAfter > 0 {
		result.to.restUntil = s.options.now().Add(max(webhookRest, answer.RetryAfter))
	}
	return nil
}

// send sends a request and notes what came of it.
func (s *sending) send(ctx context.Context, to db.WebhookEndpointsRow, request db.ClaimWebhookRequestsRow) (answer webhook.Answer, givenUp bool, err error) {
	answer = s.client.Post(ctx, webhook.Request{URL: to.Url, Secrets: secretsOf(to), ID: request.EventID, At: s.options.now(), Body: []byte(request.Body)})
	if answer.HasNone && ctx.Err() != nil {
		return answer, false, ctx.Err() // it is sent again when its lease has passed
	}
	note := db.NoteWebhookRequestParams{
		Webhook: to.Name, EventID: request.EventID, Attempts: request.Attempts, IsSent: answer.IsTaken, Outcome: answer.Outcome, IsGone: answer.IsGone,
	}
	givenUp = !answer.IsTaken && request.Attempts >= mostAttempts
	if !answer.IsTaken && !givenUp {
		next := s.options.now().Add(max(pauseAfter(request.Attempts), answer.RetryAfter))
		note.NextAt = &next
	}
	// What the endpoint has is noted even if the job has to end.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return answer, givenUp, s.queries.NoteWebhookRequest(ctx, note)
}

// secretsOf are the secrets that sign the requests of a webhook.
func secretsOf(hook db.WebhookEndpointsRow) []string {
	if hook.OldSecret == "" {
		return []string{hook.Secret}
	}
	return []string{hook.Secret, hook.OldSecret}
}

// pauseAfter returns the pause after an attempt: 1 is the first.
func pauseAfter(attempt int32) time.Duration {
	pause := float64(firstRetry)
	for range attempt - 1 {
		pause *= retryFactor
	}
	return time.Duration(pause * (1 - jitter + 2*jitter*rand.Float64()))
}

// WebhookTest is the result of [TestWebhook].
type WebhookTest struct {
	// IsTaken reports whether the endpoint took the request.
	IsTaken bool `json:"isTaken"`
	// Outcome is the status of the answer, or what went wrong.
	Outcome string `json:"outcome"`
}

// TestWebhook sends a request of type webhook.test to the endpoint of a webhook, also if it is disabled, once. It needs the rights of
// agui_maintainer or agui_worker.
//
// Errors: pgagui.ErrNotFound, pgagui.ErrPermissionDenied.
func TestWebhook(ctx context.Context, pool *pgxpool.Pool, name string, options WebhookOptions) (WebhookTest, error) {
	at := options.now()
	hooks, err := db.New(pool).WebhookEndpoints(ctx, at)
	if err != nil {
		return WebhookTest{}, pgagui.ErrorOf(err)
	}
	for _, hook := range hooks {
		if hook.Name == name {
			client := webhook.NewClient(options.Networks, options.AllowHTTP)
			defer client.Close()
			body := fmt.Sprintf(`{"type":"webhook.test","timestamp":%q,"data":{}}`, at.UTC().Format(time.RFC3339Nano))
			answer := client.Post(ctx, webhook.Request{URL: hook.Url, Secrets: secretsOf(hook), ID: fmt.Sprintf("test_%d", at.UnixNano()), At: at, Body: []byte(body)})
			return WebhookTest{answer.IsTaken, answer.Outcome}, nil
		}
	}
	return WebhookTest{}, noWebhook(name)
}
