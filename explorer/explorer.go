// Package explorer shows the conversations of a store in a browser: lists of threads, the tree of
// the runs of each, its conversation at any point, the log, and how the store is.
//
// A [Handler] can be mounted at any path. It uses relative URLs only:
//
//	pages := explorer.New(store, explorer.Options{Access: tokens})
//	mux.Handle("/explorer/", http.StripPrefix("/explorer", pages))
//
// All it shows comes from calls of [pgagui.Store] that others can make too. Pages work without
// JavaScript; with it, lists go on by themselves, running threads stream in, and the steps through a
// run are fast. Nothing is loaded from elsewhere.
//
// A reader signs in with a token of Options.Access, which stays in the memory of the process for as
// long as the session lasts; see [Handler.Code] for links that sign in. A request that has an
// Authorization header needs no session: a reverse proxy can add it.
package explorer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/server/access"
	"github.com/pgagui/pgagui/server/door"
	"github.com/pgagui/pgagui/server/problem"
	"github.com/pgagui/pgagui/timeline"
)

// Options configure a Handler.
type Options struct {
	// Access says who a token belongs to. It decides about each request, so a token that expires or is
	// withdrawn ends its sessions. If nil, only links of Handler.Link sign in.
	Access access.Authenticator
	// Database, if set, lets everybody who may read see how the whole database is, of all scopes:
	// sizes, lag, quarantine. Use it only if all readers may know that.
	Database pgagui.DB
	// Examine, if set, adds findings about the whole database to that page. It may be slow.
	Examine func(context.Context) ([]Finding, error)
	// Agents, if set, answers GET /agents and POST /agent/{name}/run as package server does, for
	// requests whose context has an identity (access.WithIdentity). Readers who may write can then run
	// an agent from a message on.
	Agents http.Handler
	// Door is that of the other handlers of the process for the same store, whose bounds then hold for all of them together. If nil,
	// the explorer has one of its own.
	Door *door.Door
	// Limits bound what one reader may use of this process, if there is no Door.
	Limits access.LimitOptions
	// TimelineBytes bounds the memory of the runs that readers step through. 64 MB if zero.
	TimelineBytes int64
	// SessionTime is how long a session lasts at most. 12 hours if zero.
	SessionTime time.Duration
	// Logger gets what operators should know. slog.Default() if nil.
	Logger *slog.Logger
}

// Handler answers the requests of the explorer. Its paths begin behind the slash of the prefix, which
// http.StripPrefix removes.
type Handler struct {
	door     *door.Door
	options  Options
	sessions *sessions
	seen     seen
	// timelines are the runs that readers step through.
	timelines *timeline.Cache
	closing   context.Context // ends with Close
	close     context.CancelFunc
	routes    map[string]route // by method and path
	sameSite  *http.CrossOriginProtection
}

// route is an endpoint.
type route struct {
	// isOpen takes requests of readers who are not signed in.
	isOpen bool
	needs  access.Rights
	serve  func(*request) error
}

// New returns a Handler for the threads of a store. Call Close at the end. Each request works on store.InScope with the
// scope of its reader. With pgagui.Config.SetScope, row-level security enforces the same in the
// database.
func New(store *pgagui.Store, options Options) *Handler {
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	if options.Door == nil {
		options.Door = door.New(store, door.Options{Limits: options.Limits})
	}
	closing, end := context.WithCancel(context.Background())
	h := &Handler{
		door: options.Door, options: options, timelines: timeline.NewCache(cmp.Or(options.TimelineBytes, 64<<20)), closing: closing, close: end, sessions: newSessions(cmp.Or(options.SessionTime, 12*time.Hour)),
		sameSite: http.NewCrossOriginProtection(),
	}
	const read = access.Read
	h.routes = map[string]route{
		"GET /login":   {isOpen: true, serve: h.showLogin},
		"POST /login":  {isOpen: true, serve: h.login},
		"POST /logout": {isOpen: true, serve: h.logout},

		"GET /":           {needs: read, serve: h.showThreads},
		"GET /thread":     {needs: read, serve: h.showThread},
		"GET /attachment": {needs: read, serve: h.showAttachment},
		"GET /waiting":    {needs: read, serve: h.showWaiting},
		"GET /health":     {needs: read, serve: h.showHealth},
		"GET /log":        {needs: read, serve: h.showLog},
		"GET /ndjson":     {needs: read, serve: h.sendNDJSON},
		"GET /time":       {needs: read, serve: h.showTime},
		"GET /times":      {needs: read, serve: h.showTimes},
		"GET /compare":    {needs: read, serve: h.showCompare},
		"GET /events":     {needs: read, serve: h.sendEvents},
		"GET /continue":   {needs: read, serve: h.showContinue},
		"GET /input":      {needs: read, serve: h.sendInput},
		"POST /continue":  {needs: access.Write, serve: h.postContinue},
		"POST /stop":      {needs: access.Stop, serve: h.stop},
	}
	for path, asset := range assets {
		h.routes["GET /"+path] = route{isOpen: true, serve: asset.serve}
	}
	return h
}

// Close ends the streams of running threads, which would keep an http.Server from its Shutdown.
func (h *Handler) Close() { h.close() }

// policy is the Content-Security-Policy of every answer. Markup of a conversation that would reach a
// page could neither run nor load anything.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// request is a request to the explorer.
type request struct {
	*http.Request
	w        http.ResponseWriter
	handler  *Handler
	identity access.Identity
	// session is the session of the reader; nil: the request brings its token.
	session *session
	store   *pgagui.Store // of the scope of the reader
	held    *door.Holding // what was read for the answer
	query   url.Values
	status  int // of the page; 0: 200
}

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	q := &request{Request: r, w: w, handler: h, query: r.URL.Query()}
	if err := h.serve(q); err != nil {
		q.answerError(err)
	}
}

// mostQuery bounds the parameters of a page, in bytes: many of its links repeat them.
const mostQuery = 8 << 10

func (h *Handler) serve(q *request) error {
	if len(q.URL.RawQuery) > mostQuery {
		return problem.Errorf(http.StatusRequestURITooLong, "the address has more than %d bytes of parameters", mostQuery)
	}
	path := q.URL.Path
	if path == "" { // /explorer without a slash
		q.redirect("./" + lastPart(q.RequestURI) + "/")
		return nil
	}
	method := q.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	found, isThere := h.routes[method+" "+path]
	if !isThere {
		return problem.Errorf(http.StatusNotFound, "there is no such page")
	}
	if err := h.sameSite.Check(q.Request); err != nil {
		return problem.Errorf(http.StatusForbidden, "this request comes from a page of another site")
	}
	if err := q.readForm(); err != nil {
		return err
	}
	err := h.identify(q)
	if found.isOpen {
		return found.serve(q)
	}
	if err != nil {
		return err
	}
	if retryAfter, ok := h.door.Limits.Allow(q.identity); !ok {
		return &access.Refusal{Kind: access.ErrLimited, Reason: "too many requests", RetryAfter: retryAfter}
	}
	if !q.identity.Can(found.needs) {
		return problem.Errorf(http.StatusForbidden, "your token lacks the right: %s", found.needs&^q.identity.Rights)
	}
	ctx, held := h.door.Reading(access.WithIdentity(q.Context(), q.identity))
	defer held.Release()
	if q.Method == http.MethodPost {
		held.StatementTime = 0 // to erase a long thread takes what it takes
		defer h.seen.now(q.identity)
	}
	q.store = h.door.Store(ctx)
	// Streams of events are followed on the primary.
	if method == http.MethodGet && path != "/events" && h.door.Replicas != nil {
		ctx, q.store = h.door.Replicas(ctx, h.seen.last(q.identity))
	}
	q.Request, q.held = q.WithContext(ctx), held
	return found.serve(q)
}

// readForm reads the body of a request, which must arrive soon.
func (q *request) readForm() error {
	if q.ContentLength == 0 {
		return nil
	}
	control := http.NewResponseController(q.w)
	_ = control.SetReadDeadline(time.Now().Add(q.handler.door.BodyTimeout)) // also for a body that is left unread
	if q.Method != http.MethodPost {
		return nil
	}
	q.Body = http.MaxBytesReader(q.w, q.Body, 64<<10)
	if err := q.ParseForm(); err != nil {
		q.w.Header().Set("Connection", "close")
		return problem.Errorf(http.StatusBadRequest, "the form is malformed, too large, or did not arrive within %s", q.handler.door.BodyTimeout)
	}
	_ = control.SetReadDeadline(time.Time{})
	return nil
}

// partOfLog is how much of a log is in memory at a time while all of a run is read.
const partOfLog = 16 << 20

// inPages returns the context for reads that go through a log and keep little of it. So much of it counts as they have in memory at a
// time.
func (q *request) inPages() (context.Context, error) {
	return door.InPages(q.Context()), q.held.Resize(partOfLog)
}

// send answers with a text of the type that the header says.
func (q *request) send(status int, text []byte) error {
	return q.handler.door.Answer(q.w, q.Request, len(text), func() {
		q.w.WriteHeader(status)
		_, _ = q.w.Write(text) // the client may be gone
	})
}

// lastPart returns the last part of the path of a request as the client sent it.
func lastPart(uri string) string {
	path, _, _ := strings.Cut(uri, "?")
	return path[strings.LastIndexByte(path, '/')+1:]
}

// redirect answers with 303. The place is relative to the page, because the handler does not know
// its prefix.
func (q *request) redirect(place string) {
	q.w.Header().Set("Location", place)
	q.w.WriteHeader(http.StatusSeeOther)
}

// answerError shows an error as a page.
func (q *request) answerError(err error) {
	if refused, ok := errors.AsType[*access.Refusal](err); ok {
		refused.SetHeaders(q.w.Header())
		if refused.Status() == http.StatusUnauthorized {
			q.w.Header().Del("WWW-Authenticate") // a browser would do nothing with it
			if q.Method == http.MethodGet {
				q.redirect("login?" + url.Values{"to": {lastPart(q.URL.Path) + query(q.URL.RawQuery)}}.Encode())
				return
			}
		}
		err = problem.Errorf(refused.Status(), "%s", refused.Reason)
	}
	known, isOurs := problem.Of(err)
	if isOurs && q.Context().Err() == nil {
		q.handler.options.Logger.Error("the explorer failed", "path", q.URL.Path, "error", err)
	}
	body := errorPage{Details: known, IsGone: known.Status == http.StatusNotFound || known.Status == http.StatusGone}
	q.status = known.Status
	if known.Status == http.StatusServiceUnavailable {
		q.w.Header().Set("Retry-After", "1")
	}
	if err := q.write("error", http.StatusText(known.Status), body); err != nil {
		q.handler.options.Logger.Error("the explorer failed", "path", q.URL.Path, "error", err)
	}
}

type errorPage struct {
	*problem.Details
	IsGone bool
}

func query(raw string) string {
	if raw == "" {
		return ""
	}
	return "?" + raw
}

// text returns a parameter.
func (q *request) text(name string) string { return q.query.Get(name) }

// seq returns a parameter that is a seq; 0: it is not given.
func (q *request) seq(name string) (int64, error) {
	text := q.text(name)
	if text == "" {
		return 0, nil
	}
	seq, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seq < 0 {
		return 0, problem.Errorf(http.StatusBadRequest, "%s is %.40q (expected the number of an event)", name, text)
	}
	return seq, nil
}

// required returns a parameter that the page needs.
func (q *request) required(name string) (string, error) {
	if text := q.text(name); text != "" {
		return text, nil
	}
	return "", problem.Errorf(http.StatusBadRequest, "the address lacks the parameter %s", name)
}

// write writes a page.
func (q *request) write(template, title string, body any) error {
	q.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	text, err := pages().text(template, page{
		Title: title, Template: template, Scope: q.identity.Scope, Subject: q.identity.Subject, IsKnown: q.identity.Rights != 0, CanSignOut: q.session != nil,
		IsWide: slices.Contains([]string{"thread", "time", "log", "times", "compare", "continue"}, template), Body: body,
	})
	if err != nil {
		return err
	}
	return q.send(cmp.Or(q.status, http.StatusOK), text)
}

// page is what the layout shows.
type page struct {
	Title, Template     string
	Scope, Subject      string
	IsKnown, CanSignOut bool
	IsWide              bool
	Body                any
}

// link returns a relative URL of a page, with the parameters that are not empty: names and values
// alternate.
func link(page string, parameters ...any) string {
	values := url.Values{}
	for i := 0; i+1 < len(parameters); i += 2 {
		if value := fmt.Sprint(parameters[i+1]); value != "" && value != "0" {
			values.Set(fmt.Sprint(parameters[i]), value)
		}
	}
	if len(values) == 0 {
		return page
	}
	return page + "?" + values.Encode()
}

// Finding is something to know about the database, of Options.Examine.
type Finding struct {
	Check    string
	Severity string // note, warning, error, ok
	Problem  string
	Advice   string
}
