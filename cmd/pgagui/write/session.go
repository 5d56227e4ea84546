package write

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
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/internal/eventfile"
)

func (p *program) sessionCommand() *cobra.Command {
	session := &cobra.Command{
		Use:   "session",
		Short: "Read and write the session state of a thread",
		Long: `Session state is the data that the parts of an agent (memory, todo list, …) keep beside the events
of a conversation: one JSON document per key, byte for byte. A document belongs to a run; the runs
that continue from it see it until one of them saves its own. A document without a run belongs to
the thread; runs see it under the keys for which their lineage has no document.`,
		Example: `  pgagui session ls trip-to-lisbon --head
  pgagui session get trip-to-lisbon memory --head`,
		Args: cli.NoArguments,
		RunE: cli.NeedsSubcommand("get, put, ls or rm"),
	}
	session.AddCommand(p.sessionGetCommand(), p.sessionPutCommand(), p.sessionListCommand(), p.sessionRemoveCommand())
	return session
}

// sessionRun is the flags that select the run whose session state is meant.
type sessionRun struct {
	runID string
	head  bool
}

func (r *sessionRun) addFlags(command *cobra.Command) {
	command.Flags().StringVar(&r.runID, "run", "", "`id` of the run (default: the documents of the thread itself)")
	command.Flags().BoolVar(&r.head, "head", false, "use the head of the thread as the run")
}

// resolve returns the id of the run, or "" for the thread itself.
func (r *sessionRun) resolve(ctx context.Context, store *pgagui.Store, threadID string) (string, error) {
	if r.head {
		return store.Head(ctx, threadID)
	}
	return r.runID, nil
}

func (r *sessionRun) check(command *cobra.Command) error {
	if r.head && r.runID != "" {
		return cli.WrongUsage(command, "--run and --head exclude each other")
	}
	return nil
}

// versionFlag returns the value of a flag that takes a version, or nil if it is not set.
func versionFlag(command *cobra.Command, name string) (*int64, error) {
	if !command.Flags().Changed(name) {
		return nil, nil
	}
	version, err := command.Flags().GetInt64(name)
	if err == nil && version < 0 {
		err = cli.WrongUsage(command, "--"+name+" must be 0 or more")
	}
	return &version, err
}

// between requires a number of arguments, which names describes for the error.
func between(low, high int, names string) cobra.PositionalArgs {
	return func(_ *cobra.Command, arguments []string) error {
		if len(arguments) < low || len(arguments) > high {
			return fmt.Errorf("expected %s, got %s", names, cli.CountText(len(arguments), "argument"))
		}
		return nil
	}
}

func (p *program) sessionGetCommand() *cobra.Command {
	var run sessionRun
	command := &cobra.Command{
		Use:   "get THREAD [KEY]",
		Short: "Print a document, or all documents",
		Long: `Prints the document under a key, byte for byte; on a terminal a line break follows. With --json it
prints {key, runId, version, savedAt, document}. Without KEY it prints all documents: {threadId,
runId, state: {key: document, …}, versions: {key: version, …}}.`,
		Example: `  pgagui session get trip-to-lisbon memory --head
  pgagui session get trip-to-lisbon --run run-3 | jq .state`,
		Args: between(1, 2, "a thread and optionally a key"),
		RunE: func(command *cobra.Command, arguments []string) error {
			version, err := versionFlag(command, "version")
			if err = errors.Join(err, run.check(command)); err != nil {
				return err
			}
			if version != nil && (len(arguments) == 1 || run != sessionRun{}) {
				return cli.WrongUsage(command, "--version needs a KEY and excludes --run and --head: a version belongs to one run")
			}
			return p.WithStore(command.Context(), func(store *pgagui.Store) error {
				if len(arguments) == 1 {
					return p.sessionGet(command.Context(), store, arguments[0], run)
				}
				return p.sessionGetKey(command.Context(), store, arguments[0], arguments[1], run, version)
			})
		},
	}
	run.addFlags(command)
	command.Flags().Int64("version", 0, "print this `version` of the document, if it is still kept, of any run")
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
		return fmt.Errorf("version %d of the key %q of thread %q does not exist or is no longer kept (see: pgagui session ls %s --versions %s)",
			*version, key, threadID, threadID, key)
	case isMissing && runID == "":
		return fmt.Errorf("thread %q itself has no document under the key %q (--run or --head selects a run)", threadID, key)
	case isMissing:
		return fmt.Errorf("run %q of thread %q has no document under the key %q", runID, threadID, key)
	case p.JSON:
		return p.PrintJSON(state)
	}
	return p.writeDocument(state.JSON)
}

// writeDocument writes a document byte for byte. On a terminal it adds a line break.
func (p *program) writeDocument(document []byte) error {
	if p.Terminal != nil {
		document = append(bytes.TrimRight(document, "\r\n"), '\n')
	}
	_, err := p.Out.Write(document)
	return err
}

func (p *program) sessionPutCommand() *cobra.Command {
	var run sessionRun
	whole, overwrite := false, false
	command := &cobra.Command{
		Use:   "put THREAD KEY [FILE|-] | --session THREAD [FILE|-]",
		Short: "Save a document, or all documents",
		Long: `Saves a JSON document from a file, or from stdin, under a key, byte for byte, and prints its
version. Without a flag, no document may exist under the key yet. With --expected-version the
current version must be that one. With --overwrite the document is saved in any case.

With --session it saves all documents of a session, in the form that "pgagui session get THREAD"
prints, or none, and prints the versions of the keys. Unchanged documents are not written. If the
session has "versions", these must still be the current ones.`,
		Example: `  echo '{"items": []}' | pgagui session put trip-to-lisbon todo --run run-3 --expected-version 4
  pgagui session put --session trip-to-lisbon session.json`,
		Args: func(_ *cobra.Command, arguments []string) error {
			if whole {
				return between(1, 2, "a thread and optionally a file")(nil, arguments)
			}
			return between(2, 3, "a thread and a key, and optionally a file")(nil, arguments)
		},
		RunE: func(command *cobra.Command, arguments []string) error {
			version, err := versionFlag(command, "expected-version")
			if err = errors.Join(err, run.check(command)); err != nil {
				return err
			}
			if whole && (version != nil || overwrite || run != sessionRun{}) {
				return cli.WrongUsage(command, "--session excludes --run, --head, --expected-version and --overwrite: the session has its run and versions")
			}
			if version != nil && overwrite {
				return cli.WrongUsage(command, "--expected-version and --overwrite exclude each other")
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
			return p.WithStore(command.Context(), func(store *pgagui.Store) error {
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
	command.Flags().Int64("expected-version", 0, "save only if this is the current `version`; 0 means no document")
	command.Flags().BoolVar(&overwrite, "overwrite", false, "save regardless of the current version")
	command.Flags().BoolVar(&whole, "session", false, "save all documents of a session")
	return command
}

// printVersion prints the saved version, or returns err.
func (p *program) printVersion(version int64, err error) error {
	if err != nil {
		return err
	}
	return p.PrintResult(map[string]int64{"version": version}, "%d\n", version)
}

func (p *program) sessionPut(ctx context.Context, store *pgagui.Store, threadID, file string, session []byte) error {
	for name, value := range compaction.Members(session) {
		var named string
		if name == "threadId" && (json.Unmarshal(value, &named) != nil || named != threadID) {
			return &eventfile.Error{File: file, Line: 1, Err: fmt.Errorf("the session belongs to thread %s, not %q", value, threadID)}
		}
	}
	versions, err := store.Sessions().SaveAll(ctx, session)
	if err != nil {
		return err
	}
	return p.PrintJSON(versions)
}

// readDocument reads a JSON document from a file and returns the name of the file for error
// messages. The name - means stdin.
func (p *program) readDocument(name string) (document []byte, file string, err error) {
	content, file, err := p.Open(name)
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
		return nil, file, &eventfile.Error{File: file, Line: lineOf(document, valid), Err: errors.New("the document is not valid UTF-8")}
	}
	var syntax *json.SyntaxError
	var raw json.RawMessage
	if err := json.Unmarshal(document, &raw); errors.As(err, &syntax) {
		return nil, file, &eventfile.Error{File: file, Line: lineOf(document, int(syntax.Offset)), Err: fmt.Errorf("the document is not valid JSON: %w", err)}
	}
	return document, file, nil
}

// lineOf returns the line of an offset, counted from 1.
func lineOf(document []byte, offset int) int {
	return 1 + bytes.Count(document[:min(max(offset-1, 0), len(document))], []byte("\n"))
}

// sessionEntry is a document in the output of ls.
type sessionEntry struct {
	Key     string    `json:"key"`
	Version int64     `json:"version"`
	RunID   string    `json:"runId,omitempty"` // "" for a document of the thread itself
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
		Long: `Lists the documents that a run sees, or those of the thread itself: key, version, and the run at
which the version was saved, which may be an earlier one. With --versions it lists the kept versions
of one key that were saved at exactly this run, newest first. The setting agui.session_versions of
the database limits their number (default: 10).`,
		Example: `  pgagui session ls trip-to-lisbon --head
  pgagui session ls trip-to-lisbon --versions memory`,
		Args: cli.OneThread,
		RunE: func(command *cobra.Command, arguments []string) error {
			if err := run.check(command); err != nil {
				return err
			}
			return p.WithStore(command.Context(), func(store *pgagui.Store) error {
				return p.sessionList(command.Context(), store, arguments[0], key, run)
			})
		},
	}
	run.addFlags(command)
	command.Flags().StringVar(&key, "versions", "", "list the versions of this `key`")
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
		size := cli.BytesText(int64(entry.Bytes))
		if entry.Removed {
			size = "removed"
		}
		rows = append(rows, []string{
			entry.Key, fmt.Sprint(entry.Version), cli.OrDash(entry.RunID), cli.TimeText(entry.SavedAt), size,
		})
	}
	if p.JSON {
		return p.PrintJSON(entries)
	}
	return p.PrintTable(rows)
}

func (p *program) sessionRemoveCommand() *cobra.Command {
	var run sessionRun
	command := &cobra.Command{
		Use:   "rm THREAD KEY",
		Short: "Remove a document",
		Long: `Removes the document under a key as of a run, or that of the thread itself. The runs before it keep
their documents. Prints the version number of the removal, or 0 if there was nothing to remove.`,
		Example: `  pgagui session rm trip-to-lisbon memory --head`,
		Args:    between(2, 2, "a thread and a key"),
		RunE: func(command *cobra.Command, arguments []string) error {
			version, err := versionFlag(command, "expected-version")
			if err = errors.Join(err, run.check(command)); err != nil {
				return err
			}
			return p.WithStore(command.Context(), func(store *pgagui.Store) error {
				runID, err := run.resolve(command.Context(), store, arguments[0])
				if err != nil {
					return err
				}
				save := pgagui.SaveOptions{RunID: runID, Overwrite: version == nil}
				if version != nil {
					save.ExpectedVersion = *version
				}
				removed, err := store.Sessions().Remove(command.Context(), pgagui.SessionKey{ThreadID: arguments[0], Key: arguments[1]}, save)
				if errors.Is(err, pgagui.ErrUnknownSessionState) {
					err = nil // it prints 0
				}
				return p.printVersion(removed, err)
			})
		},
	}
	run.addFlags(command)
	command.Flags().Int64("expected-version", 0, "remove only if this is the current `version`")
	return command
}
