// Package doctor examines a database that has the schema agui, and says what to change there.
//
// Each check is a query in the folder checks, one file a check. It returns a row for each thing that is wrong: severity,
// problem, advice. A check that finds nothing returns no row.
package doctor

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgagui/pgagui/internal/address"
	"github.com/pgagui/pgagui/sql/schema"
)

// Severity says how urgent a finding is.
type Severity string

const (
	OK      Severity = "ok"      // nothing was found
	Note    Severity = "note"    // good to know; nothing has to change
	Warning Severity = "warning" // costs speed or space, or will fail some day
	Error   Severity = "error"   // something does not work, or data is at risk
)

// Finding is what one check found.
type Finding struct {
	// Check is the name of the check, for instance "settings".
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
	// Problem says what was found. Of a finding that is OK it says what was examined.
	Problem string `json:"problem"`
	// Advice says what to do; empty where there is nothing to do.
	Advice string `json:"advice,omitempty"`
}

//go:embed checks/*.sql
var checks embed.FS

// Examine runs all checks, each in a statement of its own, and changes nothing. The role of the connection needs agui_reader.
// If the schema is missing, or of another version or build than this program's, Examine returns the error of package schema
// that says so, because the checks are made for this version.
func Examine(ctx context.Context, databaseURL string) ([]Finding, error) {
	state, err := schema.Status(ctx, databaseURL)
	if err != nil {
		return nil, err
	}
	connection, err := address.Connect(ctx, databaseURL)
	if err != nil {
		return nil, err
	}
	defer connection.Close(ctx)
	if problem := state.Problem(); problem != nil && !errors.Is(problem, schema.ErrChanged) {
		if errors.Is(problem, schema.ErrNotInstalled) {
			if front := examineFront(ctx, connection); front.Severity != "" {
				return []Finding{front}, nil
			}
		}
		return nil, problem
	}
	findings := []Finding{examineSchema(state)}
	// The checks look up names; the path that they do it on ends with the transaction, as PgBouncer needs it.
	tx, err := connection.BeginTx(ctx, pgx.TxOptions{BeginQuery: "begin read only; set local search_path = pg_catalog, pg_temp"})
	if err != nil {
		return nil, err
	}
	defer tx.Rollback(ctx)
	files, err := fs.Glob(checks, "checks/*.sql")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		found, err := examine(ctx, tx, file)
		if err != nil {
			return nil, fmt.Errorf("check %s: %w", path.Base(file), err)
		}
		findings = append(findings, found...)
	}
	return findings, nil
}

// examineFront returns what is found of a front of a cluster; nothing if the database is none.
func examineFront(ctx context.Context, connection *pgx.Conn) Finding {
	finding := Finding{Check: "front", Severity: OK, Problem: "the database is a front of a cluster, whose nodes take its calls"}
	var isFront bool
	err := connection.QueryRow(ctx, `select pg_catalog.to_regnamespace('agui_front') is not null`).Scan(&isFront)
	if err == nil && !isFront {
		return Finding{}
	} else if err == nil {
		_, err = connection.Exec(ctx, `select from agui.stats()`) // of all nodes
	}
	if err != nil {
		finding.Severity, finding.Problem = Error, err.Error()
		finding.Advice = "run what pgagui cluster front prints in this database"
		if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
			finding.Problem, finding.Advice = refused.Message, cmp.Or(refused.Hint, finding.Advice)
		}
	}
	return finding
}

func examineSchema(state schema.State) Finding {
	finding := Finding{Check: "schema", Severity: OK, Problem: fmt.Sprintf("version %d, as this program has it", state.Version)}
	switch problem := state.Problem(); {
	case problem != nil:
		var changes []string
		for _, change := range state.Changes {
			changes = append(changes, fmt.Sprintf("%s (%s)", change.Object, change.Change))
		}
		finding.Severity = Error
		finding.Problem = "changed by hand since it was installed: " + strings.Join(changes, ", ")
		finding.Advice = "put back what pgagui migrate sql prints of these, or keep them: pgagui migrate up --accept-changes"
	case state.CatalogUnrecorded:
		finding.Severity = Note
		finding.Problem = "changes by hand cannot be told: this server has not recorded the objects of the install, as after a restore without data or pg_upgrade"
		finding.Advice = "pgagui migrate up"
	}
	return finding
}

// examine runs one check. The first line of its file says what it examines.
func examine(ctx context.Context, tx pgx.Tx, file string) ([]Finding, error) {
	text, err := checks.ReadFile(file)
	if err != nil {
		return nil, err
	}
	title, _, _ := strings.Cut(strings.TrimPrefix(string(text), "-- "), "\n")
	name := strings.ReplaceAll(strings.TrimSuffix(path.Base(file), ".sql"), "_", " ")
	rows, err := tx.Query(ctx, string(text))
	if err != nil {
		return nil, err
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Finding, error) {
		finding := Finding{Check: name}
		err := row.Scan(&finding.Severity, &finding.Problem, &finding.Advice)
		return finding, err
	})
	if err == nil && len(found) == 0 {
		found = []Finding{{Check: name, Severity: OK, Problem: title}}
	}
	return found, err
}
