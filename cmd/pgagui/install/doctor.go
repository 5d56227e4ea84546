package install

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/cluster"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/doctor"
)

func (p *program) doctorCommand() *cobra.Command {
	var (
		options   doctor.ServerOptions
		tokenFile string
	)
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Check the setup of the database, or of a server, and advise what to change",
		Long: `Checks the database and its server, and advises what to change: the version of the schema and
objects changed by hand, roles, privileges, server settings, jobs that fall behind, stale runs,
indexes, autovacuum, old transactions. It needs the role agui_reader.

Of the nodes of a cluster it also names standbys of the description that cannot be used.

With --server it checks a running "pgagui serve" instead, at the address that clients use, so with
the proxies in front: TLS and its certificate, HTTP/2, whether events of a stream arrive when they
are sent, heartbeats, the clock, the token with its scope and rights, CORS for --origin, and whether
the metrics are public. The token is in --token-file, as its only line, or in $PGAGUI_TOKEN. Any
rights suffice. --ready checks only that the server is reachable and ready, for health checks of
containers.

It changes nothing. If it finds a warning or an error, it exits with 1. To check the log and the
snapshots themselves, use "pgagui verify".`,
		Example: `  pgagui doctor
  pgagui doctor --server https://agents.example.com --token-file token`,
		Args: cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if options.URL == "" {
				for _, name := range []string{"token-file", "origin", "heartbeats", "ready"} {
					if command.Flags().Changed(name) {
						return cli.WrongUsage(command, "--"+name+" is for --server")
					}
				}
				return p.EachNode(command.Context(), func(ctx context.Context) error {
					findings, err := doctor.Examine(ctx, p.DatabaseURL)
					if err == nil && len(p.Standbys) > 0 {
						var found []doctor.Finding
						found, err = examineStandbys(ctx, cluster.Node{Name: p.Node, URL: p.DatabaseURL, Standbys: p.Standbys})
						findings = append(findings, found...)
					}
					return p.report(findings, err)
				})
			}
			if options.Heartbeats < 0 || options.Heartbeats > 3 {
				return cli.WrongUsage(command, "--heartbeats must be 0 to 3")
			}
			options.Token, options.Version = os.Getenv("PGAGUI_TOKEN"), cli.Version()
			if tokenFile != "" {
				text, err := os.ReadFile(tokenFile)
				if err != nil {
					return err
				}
				options.Token = strings.TrimSpace(string(text))
			}
			findings, err := doctor.ExamineServer(command.Context(), options)
			if err != nil {
				return cli.WrongUsage(command, err.Error())
			}
			return p.report(findings, nil)
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.URL, "server", "", "check the server at this `URL` instead of the database")
	flags.StringVar(&tokenFile, "token-file", "", "with --server: `file` with a token as its only line (default: $PGAGUI_TOKEN)")
	flags.StringVar(&options.Origin, "origin", "", "with --server: web `origin` whose pages should be able to call it")
	flags.IntVar(&options.Heartbeats, "heartbeats", 0, "with --server: also wait for this `number` of heartbeats on an idle stream, up to 3")
	flags.BoolVar(&options.ReadyOnly, "ready", false, "with --server: check only that it is reachable and ready")
	return command
}

// examineStandbys returns a finding for each standby of a node that cannot be used.
func examineStandbys(ctx context.Context, node cluster.Node) (findings []doctor.Finding, err error) {
	opened, err := cluster.Open(ctx, []cluster.Node{node})
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	const check = "standbys"
	for _, standby := range opened.Status(ctx)[0].Standbys {
		if standby.Error != "" {
			findings = append(findings, doctor.Finding{
				Check: check, Severity: doctor.Warning, Problem: standby.Error,
				Advice: "start it, or correct the description of the nodes: its reads go to the primary, or to other standbys",
			})
		}
	}
	if findings == nil {
		findings = []doctor.Finding{{Check: check, Severity: doctor.OK, Problem: "the standbys of the description answer"}}
	}
	return findings, nil
}

// report prints findings. It returns an error if there is a warning or an error among them.
func (p *program) report(findings []doctor.Finding, err error) error {
	if err != nil {
		return err
	}
	if p.JSON {
		err = p.PrintJSON(findings)
	} else {
		err = p.printFindings(findings)
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(findings, func(f doctor.Finding) bool { return f.Severity == doctor.Warning || f.Severity == doctor.Error }) {
		return cli.ErrProblems
	}
	return nil
}

// printFindings writes a line per finding, and below it a line with the advice.
func (p *program) printFindings(findings []doctor.Finding) error {
	var rows [][]string
	for _, finding := range findings {
		rows = append(rows, []string{string(finding.Severity), finding.Check, cli.OneLine(finding.Problem)})
		if finding.Advice != "" {
			rows = append(rows, []string{"", "", "→ " + cli.OneLine(finding.Advice)})
		}
	}
	return p.PrintTable(rows)
}
