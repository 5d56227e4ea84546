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
		Short: "Examine the database and say what to change",
		Long: `Examines the database and the server, and says what to change: the version of the schema and objects changed by hand, roles, privileges,
settings of the server, jobs that do not keep up, runs whose writers are gone, indexes, autovacuum, old transactions.

It changes nothing, and needs a role with agui_reader. It ends with 1 if it finds a warning or an error. Whether the log and the snapshots
are intact is a question for pgagui verify.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return p.doctor(command.Context()) },
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

// printFindings writes a line for each finding, with what to do on a line of its own.
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
