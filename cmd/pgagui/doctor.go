package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/internal/doctor"
)

func (p *program) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check the setup of the database and advise what to change",
		Long: `Checks the database and the server, and advises what to change: the version of the schema and
objects changed by hand, roles, privileges, server settings, jobs that fall behind, stale runs,
indexes, autovacuum, old transactions.

It changes nothing and needs the role agui_reader. If it finds a warning or an error, it exits with
1. To check the log and the snapshots themselves, use "pgagui verify".`,
		Example: `  pgagui doctor`,
		Args:    cobra.NoArgs,
		RunE:    func(command *cobra.Command, _ []string) error { return p.doctor(command.Context()) },
	}
}

func (p *program) doctor(ctx context.Context) error {
	findings, err := doctor.Examine(ctx, p.databaseURL)
	if err != nil {
		return err
	}
	if p.json {
		err = p.printJSON(findings)
	} else {
		err = p.printFindings(findings)
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(findings, func(f doctor.Finding) bool { return f.Severity == doctor.Warning || f.Severity == doctor.Error }) {
		return errProblems
	}
	return nil
}

// printFindings writes a line per finding, and below it a line with the advice.
func (p *program) printFindings(findings []doctor.Finding) error {
	var rows [][]string
	for _, finding := range findings {
		rows = append(rows, []string{string(finding.Severity), finding.Check, oneLine(finding.Problem)})
		if finding.Advice != "" {
			rows = append(rows, []string{"", "", "→ " + oneLine(finding.Advice)})
		}
	}
	return p.printTable(rows)
}
