package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/internal/eventfile"
)

func (p *program) sessionCommand() *cobra.Command {
	session := &cobra.Command{
		Use:   "session",
		Short: "Read and write what an agent keeps of a conversation beside its events",
		Long: `Session state is what the parts of an agent (memory, todo list, …) keep of a conversation beside its events: a JSON document under a key,
byte for byte. It belongs to a run, and to those that go on from it until one of them has its own; without a run it is the
thread's own, which runs see under the keys that their lineage has nothing under.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return &usageError{problem: "which one: get, put, ls or rm?", command: command.CommandPath()}
		},
	}
	session.AddCommand(p.sessionGetCommand(), p.sessionPutCommand(), p.sessionListCommand(), p.sessionRemoveCommand())
	return session
}

// sessionRun is the flags that say whose session state is meant.
type sessionRun struct {
	runID string
	head  bool
}

func (r *sessionRun) addFlags(command *cobra.Command) {
	command.Flags().StringVar(&r.runID, "run", "", "of this run, instead of the thread's own")
	command.Flags().BoolVar(&r.head, "head", false, "of the head")
}

// resolve is the run's id; empty: none.
func (r *sessionRun) resolve(ctx context.Context, store *pgagui.Store, threadID string) (string, error) {
	if r.head {
		return store.Head(ctx, threadID)
	}
	return r.runID, nil
}

func (r *sessionRun) check(command *cobra.Command) error {
	if r.head && r.runID != "" {
		return &usageError{problem: "--run and --head name a run each: give one of them", command: command.CommandPath()}
	}
	return nil
}

// versionFlag is a flag that names a version; nil: it was not given.
func versionFlag(command *cobra.Command, name string) (*int64, error) {
	if !command.Flags().Changed(name) {
		return nil, nil
	}
	version, err := command.Flags().GetInt64(name)
	if err == nil && version < 0 {
		err = &usageError{problem: "--" + name + " must not be negative", command: command.CommandPath()}
	}
	return &version, err
}

// between requires so many arguments, the first of which is the thread.
func between(least, most int, names string) cobra.PositionalArgs {
	return func(_ *cobra.Command, arguments []string) error {
		if len(arguments) < least || len(arguments) > most {
			return fmt.Errorf("name %s, not %s", names, countText(len(arguments), "argument"))
		}
		return nil
	}
}

func (p *program) sessionGetCommand() *cobra.Command {
	var run sessionRun
	command := &cobra.Command{
		Use:   "get THREAD [KEY]",
		Short: "Print a document, or without KEY the whole session",
		Long: `Prints the document under a key, its very bytes; on a terminal a line break follows. With --json it prints {key, runId, version, savedAt,
document}. Without KEY it prints all there is: {threadId, runId, state: {key: document, …}, versions: {key: version, …}}.`,
		Example: `  pgagui session get trip-to-lisbon memory --head
  pgagui session get trip-to-lisbon --run run-3 | jq .state`,
		Args: between(1, 2, "a thread, and a key if you like"),
		RunE: func(command *cobra.Command, arguments []string) error {
			version, err := versionFlag(command, "version")
			if err = errors.Join(err, run.check(command)); err != nil {
				return err
			}
			if version != nil && (len(arguments) == 1 || run != sessionRun{}) {
				return &usageError{problem: "--version goes with a KEY, and without --run and --head: it says enough", command: command.CommandPath()}
			}
			return p.withStore(command.Context(), func(store *pgagui.Store) error {
				if len(arguments) == 1 {
					return p.sessionGet(command.Context(), store, arguments[0], run)
				}
				return p.sessionGetKey(command.Context(), store, arguments[0], arguments[1], run, version)
			})
		},
	}
	run.addFlags(command)
	command.Flags().Int64("version", 0, "this version, while it is kept, whatever run it was saved at")
	return command
}

func (p *program) sessionGet(ctx context.Context, store *pgagui.Store, threadID string, run sessionRun) error {
	runID, err := run.resolve(ctx, store, threadID)
	if err != nil {
		return err
	}
	session, err := store.Sessions().LoadAll(ctx, pgagui.SessionRef{ThreadID: threadID, RunID: runID})
	if err != nil {
		return err
	}
	return p.writeDocument(session)
}

func (p *program) sessionGetKey(ctx context.Context, store *pgagui.Store, threadID, key string, run sessionRun, version *int64) error {
	runID, err := run.resolve(ctx, store, threadID)
	if err != nil {
		return err
	}
	var state pgagui.SessionState
	if version != nil {
		state, err = store.Sessions().Load(ctx, pgagui.SessionKey{ThreadID: threadID, Key: key}, pgagui.LoadOptions{Version: *version})
	} else {
		state, err = store.Sessions().Load(ctx, pgagui.SessionKey{ThreadID: threadID, Key: key}, pgagui.LoadOptions{RunID: runID})
	}
	isMissing := errors.Is(err, pgagui.ErrUnknownSessionState) || err == nil && state.JSON == nil
	switch {
	case err != nil && !isMissing:
		return err
	case isMissing && version != nil:
		return fmt.Errorf("version %d of key %q of thread %q is not kept: pgagui session ls %s --versions %s shows those that are",
			*version, key, threadID, threadID, key)
	case isMissing && runID == "":
		return fmt.Errorf("thread %q has nothing of its own under the key %q: --run or --head ask for that of a run", threadID, key)
	case isMissing:
		return fmt.Errorf("run %q of thread %q has nothing under the key %q", runID, threadID, key)
	case p.json:
		return p.printJSON(state)
	}
	return p.writeDocument(state.JSON)
}

// writeDocument writes the very bytes, and for a person a line break after them.
func (p *program) writeDocument(document []byte) error {
	if p.terminal != nil {
		document = append(bytes.TrimRight(document, "\r\n"), '\n')
	}
	_, err := p.out.Write(document)
	return err
}

func (p *program) sessionPutCommand() *cobra.Command {
	var run sessionRun
	whole, overwrite := false, false
	command := &cobra.Command{
		Use:   "put THREAD KEY [FILE|-] | --session THREAD [FILE|-]",
		Short: "Save a document, or with --session a whole session",
		Long: `Saves the JSON document in a file, or on stdin, under a key, byte for byte, and prints its version. There must be none yet; with
--expected-version that one must be the current one. With --overwrite it is saved whatever is there.

With --session it saves a whole session, as "pgagui session get THREAD" prints it, all or nothing, and prints the versions of its keys. What has not
changed is not written again. Where the session has "versions", others must not have saved meanwhile what they name.`,
		Example: `  echo '{"items": []}' | pgagui session put trip-to-lisbon todo --run run-3 --expected-version 4
  pgagui session put --session trip-to-lisbon session.json`,
		Args: func(_ *cobra.Command, arguments []string) error {
			if whole {
				return between(1, 2, "a thread, and a file if it is not stdin")(nil, arguments)
			}
			return between(2, 3, "a thread and a key, and a file if it is not stdin")(nil, arguments)
		},
		RunE: func(command *cobra.Command, arguments []string) error {
			version, err := versionFlag(command, "expected-version")
			if err = errors.Join(err, run.check(command)); err != nil {
				return err
			}
			if whole && (version != nil || overwrite || run != sessionRun{}) {
				return &usageError{problem: "--session takes run and versions from the session", command: command.CommandPath()}
			}
			if version != nil && overwrite {
				return &usageError{problem: "--expected-version and --overwrite exclude each other", command: command.CommandPath()}
			}
			names := 2
			if whole {
				names = 1
			}
			name := "-"
			if len(arguments) > names {
				name = arguments[names]
			}
			document, file, err := p.readDocument(name)
			if err != nil {
				return err
			}
			return p.withStore(command.Context(), func(store *pgagui.Store) error {
				if whole {
					return p.sessionPut(command.Context(), store, arguments[0], file, document)
				}
				runID, err := run.resolve(command.Context(), store, arguments[0])
				if err != nil {
					return err
				}
				save := pgagui.SaveOptions{RunID: runID, Overwrite: overwrite}
				if version != nil {
					save.ExpectedVersion = *version
				}
				saved, err := store.Sessions().Save(command.Context(), pgagui.SessionKey{ThreadID: arguments[0], Key: arguments[1]}, document, save)
				return p.printVersion(saved, err)
			})
		},
	}
	run.addFlags(command)
	command.Flags().Int64("expected-version", 0, "the version that must be the current one; 0: there must be none")
	command.Flags().BoolVar(&overwrite, "overwrite", false, "save it whatever is there")
	command.Flags().BoolVar(&whole, "session", false, "save a whole session")
	return command
}

// printVersion prints the version that was saved, unless that failed.
func (p *program) printVersion(version int64, err error) error {
	if err != nil {
		return err
	}
	if p.json {
		return p.printJSON(map[string]int64{"version": version})
	}
	_, err = fmt.Fprintln(p.out, version)
	return err
}

func (p *program) sessionPut(ctx context.Context, store *pgagui.Store, threadID, file string, session []byte) error {
	for name, value := range compaction.Members(session) {
		var named string
		if name == "threadId" && (json.Unmarshal(value, &named) != nil || named != threadID) {
			return &eventfile.Error{File: file, Line: 1, Err: fmt.Errorf("the session is that of thread %s, not %q", value, threadID)}
		}
	}
	versions, err := store.Sessions().SaveAll(ctx, session)
	if err != nil {
		return err
	}
	return p.printJSON(versions)
}

// readDocument reads a JSON document from a file, and says what errors call that; - is stdin.
func (p *program) readDocument(name string) (document []byte, file string, err error) {
	content, file, err := p.open(name)
	if err != nil {
		return nil, file, err
	}
	defer content.Close()
	if document, err = io.ReadAll(content); err != nil {
		return nil, file, err
	}
	if !utf8.Valid(document) {
		valid := 0
		for valid < len(document) {
			letter, size := utf8.DecodeRune(document[valid:])
			if letter == utf8.RuneError && size == 1 {
				break
			}
			valid += size
		}
		return nil, file, &eventfile.Error{File: file, Line: lineOf(document, valid), Err: errors.New("the document is not UTF-8")}
	}
	var syntax *json.SyntaxError
	var raw json.RawMessage
	if err := json.Unmarshal(document, &raw); errors.As(err, &syntax) {
		return nil, file, &eventfile.Error{File: file, Line: lineOf(document, int(syntax.Offset)), Err: fmt.Errorf("the document is no JSON: %w", err)}
	}
	return document, file, nil
}

// lineOf is the line of a byte; the first line is 1.
func lineOf(document []byte, offset int) int {
	return 1 + bytes.Count(document[:min(max(offset-1, 0), len(document))], []byte("\n"))
}

// sessionEntry is a document in a list.
type sessionEntry struct {
	Key     string    `json:"key"`
	Version int64     `json:"version"`
	RunID   string    `json:"runId,omitempty"` // empty: the thread's own
	SavedAt time.Time `json:"savedAt"`
	Bytes   int       `json:"bytes"`
	Removed bool      `json:"removed,omitempty"`
}

func (p *program) sessionListCommand() *cobra.Command {
	var run sessionRun
	var key string
	command := &cobra.Command{
		Use:   "ls THREAD",
		Short: "List the keys and their versions",
		Long: `Lists the documents that a run has, or the thread's own: key, version, and the run that it was saved at, which may be one before. With --versions it
lists the versions of one key that are kept of that very run, newest first; the setting agui.session_versions of the database says
how many those are, 10 unless set.`,
		Args: oneThread,
		RunE: func(command *cobra.Command, arguments []string) error {
			if err := run.check(command); err != nil {
				return err
			}
			return p.withStore(command.Context(), func(store *pgagui.Store) error {
				return p.sessionList(command.Context(), store, arguments[0], key, run)
			})
		},
	}
	run.addFlags(command)
	command.Flags().StringVar(&key, "versions", "", "the versions of this key")
	return command
}

func (p *program) sessionList(ctx context.Context, store *pgagui.Store, threadID, key string, run sessionRun) error {
	runID, err := run.resolve(ctx, store, threadID)
	if err != nil {
		return err
	}
	var states []pgagui.SessionState
	if key != "" {
		states, err = store.Sessions().Versions(ctx, pgagui.SessionKey{ThreadID: threadID, Key: key}, pgagui.VersionsOptions{RunID: runID})
	} else {
		states, err = store.Sessions().List(ctx, pgagui.SessionRef{ThreadID: threadID, RunID: runID})
	}
	if err != nil {
		return err
	}
	entries := make([]sessionEntry, len(states))
	rows := [][]string{{"KEY", "VERSION", "RUN", "SAVED", "SIZE"}}
	for i, state := range states {
		entry := sessionEntry{state.Key, state.Version, state.RunID, state.SavedAt, len(state.JSON), state.JSON == nil}
		entries[i] = entry
		size := bytesText(int64(entry.Bytes))
		if entry.Removed {
			size = "removed"
		}
		rows = append(rows, []string{
			entry.Key, fmt.Sprint(entry.Version), orDash(entry.RunID), entry.SavedAt.Local().Format("2006-01-02 15:04:05"), size,
		})
	}
	if p.json {
		return p.printJSON(entries)
	}
	return p.printTable(rows)
}

func (p *program) sessionRemoveCommand() *cobra.Command {
	var run sessionRun
	command := &cobra.Command{
		Use:   "rm THREAD KEY",
		Short: "Remove a document",
		Long: `Removes the document under a key as of a run, or the thread's own: runs before it keep theirs. Prints the number of the version that
says so, 0 when there was nothing to remove. With --expected-version that one must be the current one.`,
		Args: between(2, 2, "a thread and a key"),
		RunE: func(command *cobra.Command, arguments []string) error {
			version, err := versionFlag(command, "expected-version")
			if err = errors.Join(err, run.check(command)); err != nil {
				return err
			}
			return p.withStore(command.Context(), func(store *pgagui.Store) error {
				runID, err := run.resolve(command.Context(), store, arguments[0])
				if err != nil {
					return err
				}
				save := pgagui.SaveOptions{RunID: runID, Overwrite: version == nil}
				if version != nil {
					save.ExpectedVersion = *version
				}
				removed, _, err := store.Sessions().Remove(command.Context(), pgagui.SessionKey{ThreadID: arguments[0], Key: arguments[1]}, save)
				return p.printVersion(removed, err)
			})
		},
	}
	run.addFlags(command)
	command.Flags().Int64("expected-version", 0, "the version that must be the current one")
	return command
}
