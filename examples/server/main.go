// Command server is a chat backend on pgagui in one file: it runs an agent, streams its events to clients
// as server-sent events, and lets them reload, resume, stop, branch and list threads.
//
//	DATABASE_URL=postgres://… go run ./examples/server
//
//	curl -N localhost:8080/threads/t1/runs -d '{"runId":"r1","messages":[{"id":"u1","role":"user","content":"Hello"}]}'
//	curl -N localhost:8080/threads/t1/events                             # the history, then what follows
//	curl -N localhost:8080/threads/t1/events -H 'Last-Event-ID: 4-…'     # resume behind an event
//	curl localhost:8080/threads/t1/stop -d ''
//	curl localhost:8080/threads
//
// It has no authentication: put the user's id into pgagui.Config.Scope.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/events"
)

// Agent answers an input (RunAgentInput). It sends its events to emit, without the start and the end of the
// run, and stops when ctx ends.
type Agent func(ctx context.Context, input json.RawMessage, emit func(event json.RawMessage) error) error

type server struct {
	ctx      context.Context // of the process: runs do not end with the request that began them
	store    *pgagui.Store
	recorder *pgagui.Recorder
	agent    Agent
	runs     sync.WaitGroup
}

func (s *server) handler() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /threads/{thread}/runs", s.run)
	mux.HandleFunc("GET /threads/{thread}/events", s.connect)
	mux.HandleFunc("POST /threads/{thread}/stop", s.stop)
	mux.HandleFunc("GET /threads", s.threads)
	return mux
}

// run begins a run and streams it. A parentRunId in the body begins a branch.
func (s *server) run(w http.ResponseWriter, r *http.Request) {
	var ids struct{ RunID, ParentRunID string }
	input, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err == nil {
		err = json.Unmarshal(input, &ids)
	}
	run := pgagui.RunRef{ThreadID: r.PathValue("thread"), RunID: ids.RunID}
	started, startErr := events.RunStarted{ThreadID: run.ThreadID, RunID: run.RunID, ParentRunID: ids.ParentRunID, Input: input}.Event()
	if err = errors.Join(err, startErr); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	recording, err := s.recorder.Begin(s.ctx, run, pgagui.BeginOptions{Start: started})
	if err != nil {
		fail(w, err)
		return
	}
	s.runs.Go(func() { s.record(recording, run, input) })
	w.Header().Set("Content-Type", "text/event-stream")
	stream(w, r, s.store, run.ThreadID, pgagui.FollowOptions{RunID: run.RunID, NoLineage: true})
}

// record runs the agent until it has answered, fails or is asked to stop.
func (s *server) record(recording *pgagui.Recording, run pgagui.RunRef, input json.RawMessage) {
	ctx := context.WithoutCancel(s.ctx)
	err := s.agent(recording.Context(), input, func(event json.RawMessage) error { return recording.Record(ctx, event) })
	end, endErr := events.RunFinished{ThreadID: run.ThreadID, RunID: run.RunID}.Event()
	if err != nil {
		end, endErr = events.RunError{Message: errors.Join(err, context.Cause(recording.Context())).Error()}.Event()
	}
	if err := errors.Join(endErr, recording.Record(ctx, end), recording.Close(ctx)); err != nil {
		log.Printf("%s: %v", run.RunID, err)
	}
}

// connect streams the history of a thread and the events that follow, or resumes behind Last-Event-ID. With
// ?stay=true it also waits for later runs.
func (s *server) connect(w http.ResponseWriter, r *http.Request) {
	thread := r.PathValue("thread")
	w.Header().Set("Content-Type", "text/event-stream")
	options := pgagui.FollowOptions{Stay: r.FormValue("stay") == "true"}
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		if err := options.After.UnmarshalText([]byte(last)); err != nil {
			fail(w, err)
			return
		}
	} else if attached, err := s.store.Attach(r.Context(), thread, pgagui.AttachOptions{}); err != nil {
		fail(w, err)
		return
	} else {
		options.After = attached.Position
		for i, event := range attached.Events {
			writeEvent(w, attached.Position, i == len(attached.Events)-1, event)
		}
	}
	stream(w, r, s.store, thread, options)
}

// stream writes the events of a thread as server-sent events. A client takes the end of a stream for the
// end of the run, so an error aborts the connection.
func stream(w http.ResponseWriter, r *http.Request, store *pgagui.Store, thread string, options pgagui.FollowOptions) {
	options.Heartbeat = 15 * time.Second
	for event, err := range store.Follow(r.Context(), thread, options) {
		switch {
		case errors.Is(err, pgagui.ErrUnknownThread): // it has no run yet
			return
		case err != nil:
			panic(http.ErrAbortHandler)
		case event.IsHeartbeat():
			fmt.Fprint(w, ": heartbeat\n\n")
		default:
			writeEvent(w, event.Position(), true, event.JSON)
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
	}
}

func writeEvent(w io.Writer, position pgagui.Position, hasID bool, event json.RawMessage) {
	if hasID {
		fmt.Fprintf(w, "id: %s\n", position)
	}
	fmt.Fprintf(w, "data: %s\n\n", bytes.ReplaceAll(event, []byte("\n"), []byte("\ndata: ")))
}

// stop asks the runs of a thread to stop, in whichever process they are.
func (s *server) stop(w http.ResponseWriter, r *http.Request) {
	runs, err := s.store.RequestStop(r.Context(), pgagui.RunRef{ThreadID: r.PathValue("thread")}, pgagui.RequestStopOptions{Reason: "by the user"})
	answer(w, map[string]int{"runs": runs}, err)
}

// threads lists threads, newest activity first.
func (s *server) threads(w http.ResponseWriter, r *http.Request) {
	page, err := s.store.Threads(r.Context(), pgagui.ThreadsOptions{Cursor: r.FormValue("cursor")})
	answer(w, page, err)
}

func answer(w http.ResponseWriter, value any, err error) {
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}

func fail(w http.ResponseWriter, err error) {
	for kind, status := range map[error]int{
		pgagui.ErrNotFound: http.StatusNotFound, pgagui.ErrUnknownParent: http.StatusNotFound, pgagui.ErrThreadErased: http.StatusGone,
		pgagui.ErrRunInProgress: http.StatusConflict, pgagui.ErrParentInProgress: http.StatusConflict, pgagui.ErrConflictingRepeat: http.StatusConflict,
		pgagui.ErrRunIDInUse: http.StatusConflict, pgagui.ErrInvalidEvents: http.StatusBadRequest, pgagui.ErrInvalidArgument: http.StatusBadRequest,
	} {
		if errors.Is(err, kind) {
			http.Error(w, err.Error(), status)
			return
		}
	}
	log.Print(err)
	http.Error(w, "internal error", http.StatusInternalServerError)
}

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	store := pgagui.New(pool, nil)
	s := &server{ctx: ctx, store: store, recorder: store.NewRecorder(nil), agent: echo}
	httpServer := &http.Server{Addr: "localhost:8080", Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = httpServer.Close() }) // clients resume at another process
	if err := httpServer.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		log.Print(err)
	}
	cancel()
	s.runs.Wait()
	if err := s.recorder.Close(context.Background()); err != nil {
		log.Fatal(err)
	}
}
