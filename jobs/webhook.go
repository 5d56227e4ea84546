package jobs

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/db"
)

// WebhookKind is what a webhook is sent for.
type WebhookKind string

const (
	WebhookRunFinished  WebhookKind = "run.finished"
	WebhookRunFailed    WebhookKind = "run.failed" // also a run that was cut off
	WebhookRunCancelled WebhookKind = "run.cancelled"
	WebhookRunWaiting   WebhookKind = "run.waiting" // it ended with an interrupt
)

// WebhookKinds are all kinds.
var WebhookKinds = []WebhookKind{WebhookRunFinished, WebhookRunFailed, WebhookRunCancelled, WebhookRunWaiting}

// Webhook is an endpoint that gets an HTTP POST when a run has ended or waits for an answer.
type Webhook struct {
	Name string `json:"name"`
	URL  string `json:"url"`
	// Scope has the runs that it is for. AllScopes: it is for those of all scopes.
	Scope     string `json:"scope"`
	AllScopes bool   `json:"allScopes"`
	// Kinds are what it is for; for [AddWebhook], none means all.
	Kinds []WebhookKind `json:"kinds"`

	// What follows is only returned.

	Enabled bool `json:"enabled"`
	// DisabledBecause says why it is disabled; empty: [EnableWebhook] did it.
	DisabledBecause string    `json:"disabledBecause,omitempty"`
	CreatedAt       time.Time `json:"createdAt"`
	CreatedBy       string    `json:"createdBy"`
	// ToSend is how many requests wait or are being sent.
	ToSend int64 `json:"toSend"`
	// Failed is how many have failed for good.
	Failed int64 `json:"failed"`
	// Retrying is how many have failed, and are repeated.
	Retrying int64 `json:"retrying"`
	// OldSecretUntil is until when the secret before the last [RotateWebhookSecret] signs as well; zero: it does not.
	OldSecretUntil time.Time `json:"oldSecretUntil,omitzero"`
	// IsElsewhere: this database is a copy of the one that sends the requests ([TakeOverWebhooks]).
	IsElsewhere bool `json:"isElsewhere,omitzero"`
}

// WebhookFailure is a request of a webhook that failed.
type WebhookFailure struct {
	Webhook  string      `json:"webhook"`
	EventID  string      `json:"eventId"` // the header webhook-id
	Kind     WebhookKind `json:"kind"`
	Scope    string      `json:"scope"`
	ThreadID string      `json:"threadId"`
	RunID    string      `json:"runId"`
	EndedAt  time.Time   `json:"endedAt"`
	Attempts int         `json:"attempts"`
	Outcome  string      `json:"outcome"` // of the last attempt
	FailedAt time.Time   `json:"failedAt"`
	// NextAttemptAt is when it is sent next; zero: it failed for good.
	NextAttemptAt time.Time `json:"nextAttemptAt,omitzero"`
}

// AddWebhook adds a webhook, and returns the secret of its signatures, which is shown this once. An empty secret makes a random one. The
// webhook is for runs that end from now on. It needs the rights of agui_maintainer.
//
// Errors: pgagui.ErrInvalidArgument (also if there is one of the name), pgagui.ErrPermissionDenied.
func AddWebhook(ctx context.Context, pool *pgxpool.Pool, hook Webhook, secret string) (string, error) {
	params := db.AddWebhookParams{Name: hook.Name, Url: hook.URL, Scope: scopeOf(hook.Scope, hook.AllScopes), Secret: orNull(secret)}
	for _, kind := range hook.Kinds {
		params.Kinds = append(params.Kinds, string(kind))
	}
	secret, err := db.New(pool).AddWebhook(ctx, params)
	return secret, pgagui.ErrorOf(err)
}

// EnableWebhook enables or disables a webhook, and reports whether there is one of the name. What happens while it is disabled is sent
// once it is enabled, unless it is older than 30 days. It needs the rights of agui_maintainer.
//
// Errors: pgagui.ErrPermissionDenied.
func EnableWebhook(ctx context.Context, pool *pgxpool.Pool, name string, enabled bool) (isKnown bool, err error) {
	isKnown, err = db.New(pool).EnableWebhook(ctx, db.EnableWebhookParams{Name: name, Enabled: enabled})
	return isKnown, pgagui.ErrorOf(err)
}

// RotateWebhookSecret gives a webhook another secret, and returns it, which is shown this once. An empty secret makes a random one. For the
// time of keepOld each request has a signature of the old secret, too. It needs the rights of agui_maintainer.
//
// Errors: pgagui.ErrNotFound (there is none of the name), pgagui.ErrInvalidArgument, pgagui.ErrPermissionDenied.
func RotateWebhookSecret(ctx context.Context, pool *pgxpool.Pool, name, secret string, keepOld time.Duration) (string, error) {
	secret, err := db.New(pool).RotateWebhookSecret(ctx, db.RotateWebhookSecretParams{Name: name, Secret: orNull(secret), KeepOld: keepOld})
	if err == nil && secret == "" {
		return "", noWebhook(name)
	}
	return secret, pgagui.ErrorOf(err)
}

func noWebhook(name string) error {
	return fmt.Errorf("there is no webhook %q: %w", name, pgagui.ErrNotFound)
}

// TakeOverWebhooks makes the database the one that sends the requests of a webhook, or (an empty name) of all, and returns how many
// webhooks it did not send before. A database that was restored from a dump of another one sends nothing before, because that one
// may. It needs the rights of agui_maintainer.
//
// Errors: pgagui.ErrPermissionDenied.
func TakeOverWebhooks(ctx context.Context, pool *pgxpool.Pool, name string) (int64, error) {
	taken, err := db.New(pool).TakeOverWebhooks(ctx, orNull(name))
	return taken, pgagui.ErrorOf(err)
}

// RemoveWebhook removes a webhook with its requests, and reports whether there was one of the name. It needs the rights of
// agui_maintainer.
//
// Errors: pgagui.ErrPermissionDenied.
func RemoveWebhook(ctx context.Context, pool *pgxpool.Pool, name string) (wasKnown bool, err error) {
	wasKnown, err = db.New(pool).RemoveWebhook(ctx, name)
	return wasKnown, pgagui.ErrorOf(err)
}

// Webhooks returns the webhooks in the order of their names. It needs the rights of agui_maintainer.
//
// Errors: pgagui.ErrPermissionDenied.
func Webhooks(ctx context.Context, pool *pgxpool.Pool) ([]Webhook, error) {
	rows, err := db.New(pool).Webhooks(ctx)
	hooks := make([]Webhook, len(rows))
	for i, row := range rows {
		hooks[i] = Webhook{
			Name: row.Name, URL: row.Url, Scope: row.Scope, AllScopes: row.IsAll, Enabled: row.Enabled, DisabledBecause: row.DisabledBecause,
			CreatedAt: row.CreatedAt, CreatedBy: row.CreatedBy, ToSend: row.ToSend, Failed: row.Failed,
			Retrying: row.Retrying, OldSecretUntil: row.OldSecretUntil, IsElsewhere: row.IsElsewhere,
		}
		for _, kind := range row.Kinds {
			hooks[i].Kinds = append(hooks[i].Kinds, WebhookKind(kind))
		}
	}
	return hooks, pgagui.ErrorOf(err)
}

// WebhookFailures returns the requests of a webhook that failed, those that are retried and those that failed for good; an empty name: of
// all webhooks. most bounds their number; 0 means no limit. It needs the rights of agui_maintainer.
//
// Errors: pgagui.ErrPermissionDenied.
func WebhookFailures(ctx context.Context, pool *pgxpool.Pool, name string, most int) ([]WebhookFailure, error) {
	params := db.WebhookFailuresParams{Webhook: orNull(name), MaxRows: math.MaxInt32}
	if most > 0 {
		params.MaxRows = int32(min(most, math.MaxInt32))
	}
	rows, err := db.New(pool).WebhookFailures(ctx, params)
	failures := make([]WebhookFailure, len(rows))
	for i, row := range rows {
		failures[i] = WebhookFailure{
			row.Webhook, row.EventID, WebhookKind(row.Kind), row.Scope, row.ThreadID, row.RunID, row.EndedAt, int(row.Attempts), row.Outcome,
			row.FailedAt, row.NextAttemptAt,
		}
	}
	return failures, pgagui.ErrorOf(err)
}

// RetryWebhookFailures makes requests that failed due at once, with as many attempts as at first: the one with an event id, or (empty) all
// of the webhook. It returns how many. It needs the rights of agui_maintainer.
//
// Errors: pgagui.ErrPermissionDenied.
func RetryWebhookFailures(ctx context.Context, pool *pgxpool.Pool, name, eventID string) (int64, error) {
	retried, err := db.New(pool).RetryWebhookFailures(ctx, db.RetryWebhookFailuresParams{Webhook: name, EventID: orNull(eventID)})
	return retried, pgagui.ErrorOf(err)
}

// DropWebhookFailures removes requests that failed, which are not sent any more: the one with an event id, or (empty) all of the webhook. It returns how many.
// It needs the rights of agui_maintainer.
//
// Errors: pgagui.ErrPermissionDenied.
func DropWebhookFailures(ctx context.Context, pool *pgxpool.Pool, name, eventID string) (int64, error) {
	dropped, err := db.New(pool).DropWebhookFailures(ctx, db.DropWebhookFailuresParams{Webhook: name, EventID: orNull(eventID)})
	return dropped, pgagui.ErrorOf(err)
}

// orNull is a parameter of a query: NULL if the text is empty.
func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
