package serve

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/doctor"
	"github.com/pgagui/pgagui/explorer"
	"github.com/pgagui/pgagui/server/access"
)

func (p *program) exploreCommand() *cobra.Command {
	var listen string
	var place explorer.Place
	command := &cobra.Command{
		Use:   "explore [THREAD]",
		Short: "Show conversations, branches and time in a browser",
		Long: `Shows the store in a browser of this machine, until Ctrl-C: threads, the tree of the runs of each,
the conversation at any point, the log, and how the database is. It prints a link that signs in. The
link works once, within a minute; press Enter for another one. With a thread it leads there; --run
and --at name a run of it and an event.

What you see and may do is what the role of the database may: agui_reader is enough to read, and
agui_writer may also stop runs. A server (pgagui serve) has the same pages at /explorer/.`,
		Example: `  pgagui explore
  pgagui explore trip-to-lisbon --run run-3 --at 17`,
		Args: cli.Arguments(0, 1),
		RunE: func(command *cobra.Command, arguments []string) error {
			if len(arguments) == 1 {
				place.ThreadID = arguments[0]
			}
			if place.ThreadID == "" && (place.RunID != "" || place.Seq != 0) {
				return cli.WrongUsage(command, "--run and --at need a thread")
			}
			return p.explore(command, listen, place)
		},
	}
	command.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "`address` of the pages, HOST:PORT, on this machine; port 0: a free one")
	command.Flags().StringVar(&place.RunID, "run", "", "`id` of the run to show (default: the head)")
	command.Flags().Int64Var(&place.Seq, "at", 0, "`seq` of an event of the run (default: its end)")
	return command
}

func (p *program) explore(command *cobra.Command, listen string, place explorer.Place) error {
	ctx := command.Context()
	if err := access.CheckLoopback(listen); err != nil {
		return cli.WrongUsage(command, "--listen: "+err.Error())
	}
	const connections = 6
	logger := slog.New(slog.NewTextHandler(p.Messages, &slog.HandlerOptions{Level: slog.LevelWarn}))
	options := explorer.Options{Logger: logger}
	var store *pgagui.Store
	if p.Nodes != "" {
		nodes, err := p.OpenNodes(ctx, connections)
		if err != nil {
			return err
		}
		defer nodes.Close()
		store = pgagui.NewCluster(nodes.Members(), &pgagui.Config{Scope: p.Scope, Logger: p.Logger()})
	} else {
		pool, err := p.Connect(ctx, connections)
		if err != nil {
			return err
		}
		defer pool.Close()
		store, options.Database, options.Examine = p.Store(pool), pool, examine(p.DatabaseURL)
	}
	pages := explorer.New(store, options)
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return cli.WrongUsage(command, err.Error()+" (--listen 127.0.0.1:0 takes a free port)")
	}
	if err := access.CheckLoopback(listener.Addr().String()); err != nil { // localhost is what the hosts file says
		return errors.Join(err, listener.Close())
	}
	server := &http.Server{Handler: access.LocalOnly(access.Audit{Logger: logger}, pages), ReadHeaderTimeout: 10 * time.Second}
	server.RegisterOnShutdown(pages.Close)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()

	printLink := func() error {
		return p.printExplore("http://" + listener.Addr().String() + "/" + pages.Link(reader(p.Scope), place))
	}
	err = printLink()
	enter := make(chan struct{})
	if cli.TerminalOf(p.In) != nil {
		go func() {
			for lines := bufio.NewScanner(p.In); lines.Scan(); {
				enter <- struct{}{}
			}
		}()
	}
	for err == nil {
		select {
		case <-enter:
			err = printLink()
			continue
		case err = <-failed:
		case <-ctx.Done():
		}
		break
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return errors.Join(err, server.Shutdown(ending))
}

func (p *program) printExplore(link string) error {
	return p.PrintResult(map[string]string{"explorer": link}, "%s\n", link)
}

// reader is who opens a link of this program. The role of the database decides what they may do.
func reader(scope string) access.Identity {
	return access.Identity{Scope: scope, Rights: access.Admin, Subject: "link"}
}

// explorerLink returns a link that signs in and leads to a place.
func (s *service) explorerLink(scope string, place explorer.Place) string {
	return s.url() + explorerPrefix + "/" + s.explorer.Link(reader(scope), place)
}

// examine returns what pgagui doctor finds.
func examine(databaseURL string) func(context.Context) ([]explorer.Finding, error) {
	return func(ctx context.Context) (findings []explorer.Finding, err error) {
		found, err := doctor.Examine(ctx, databaseURL)
		for _, one := range found {
			findings = append(findings, explorer.Finding{Check: one.Check, Severity: string(one.Severity), Problem: one.Problem, Advice: one.Advice})
		}
		return findings, err
	}
}
