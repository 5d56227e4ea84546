package root

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/internal/address"
)

// roleOfCommand is the role that a command needs, or each below it. Commands that are not listed need agui_reader.
var roleOfCommand = map[string]string{
	"serve": "agui_writer", "import": "agui_writer", "stop": "agui_writer", "session put": "agui_writer", "session rm": "agui_writer", "threads set": "agui_writer",
	"feed consumers move": "agui_writer", "feed consumers rm": "agui_writer",
	"job": "agui_worker", "worker": "agui_worker",
	"archive": "agui_maintainer", "unarchive": "agui_maintainer", "retention set": "agui_maintainer", "retention rm": "agui_maintainer", "retention apply": "agui_maintainer",
	"webhook": "agui_maintainer",
	"erase":   "agui_maintainer", "retention allow": "agui_maintainer",
}

// roleOfFlag is the role that a command needs with a flag.
var roleOfFlag = map[string]string{
	"verify --repair": "agui_maintainer", "job --rebuild": "agui_maintainer", "search --enable": "agui_maintainer", "search --disable": "agui_maintainer",
	"feed --consumer": "agui_writer", "retention hold --reason": "agui_maintainer", "retention hold --lift": "agui_maintainer",
}

// permissionError is a missing privilege with the advice how to grant it.
type permissionError struct {
	error
	advice string
}

func (e *permissionError) Error() string { return e.error.Error() + ": " + e.advice }
func (e *permissionError) Unwrap() error { return e.error }

// adviseOnPermission adds the role to grant to an error about a missing privilege, at each node.
func (p *program) adviseOnPermission(command *cobra.Command, err error) error {
	var nodes *cli.NodesError
	switch {
	case errors.As(err, &nodes):
	case p.Nodes != "": // the error does not say of which node it is
		return err
	default:
		return adviseAt(command, p.DatabaseURL, err)
	}
	for i, failed := range nodes.Nodes {
		nodes.Nodes[i].Err = adviseAt(command, failed.Node.URL, failed.Err)
	}
	return err
}

// adviseAt opens a new connection. If this fails, it returns the error unchanged.
func adviseAt(command *cobra.Command, databaseURL string, err error) error {
	const insufficientPrivilege = "42501"
	var refusal *pgconn.PgError
	if !errors.As(err, &refusal) || refusal == nil || refusal.Code != insufficientPrivilege || refusal.Hint != "" {
		return err
	}
	if !strings.HasPrefix(refusal.Message, "permission denied") && !strings.HasPrefix(refusal.Message, "must be owner") {
		return err // a function of the schema raised it; its message already says what it requires
	}
	path := strings.TrimPrefix(command.CommandPath(), command.Root().Name()+" ")
	if strings.HasPrefix(path, "cluster ") {
		return err // it names the node, which has another address
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	connection, connectErr := address.Connect(ctx, databaseURL)
	if connectErr != nil {
		return err
	}
	defer connection.Close(ctx)

	if path == "migrate up" || path == "migrate down" || path == "demo" || path == "dev" {
		return &permissionError{err, adviceForOwner(ctx, connection)}
	}
	group, _, _ := strings.Cut(path, " ")
	role := cmp.Or(roleOfCommand[path], roleOfCommand[group], "agui_reader")
	command.Flags().Visit(func(flag *pflag.Flag) { role = cmp.Or(roleOfFlag[path+" --"+flag.Name], role) })
	if advice := adviceForRole(ctx, connection, role); advice != "" {
		return &permissionError{err, advice}
	}
	return err
}

// adviceForOwner says who may install, upgrade and remove the schema.
func adviceForOwner(ctx context.Context, connection *pgx.Conn) string {
	var user, owner, database string
	err := connection.QueryRow(ctx, `
		select current_user::pg_catalog.regrole::pg_catalog.text, pg_catalog.quote_ident(pg_catalog.current_database()),
			coalesce((
				select nspowner::pg_catalog.regrole::pg_catalog.text
				from pg_catalog.pg_namespace
				where nspname operator(pg_catalog.=) 'agui'
			), '')`).Scan(&user, &database, &owner)
	switch {
	case err != nil:
		return "run it as the owner of the schema agui"
	case owner != "" && owner != user:
		return fmt.Sprintf("run it as %s, the owner of the schema agui, not as %s", owner, user)
	default:
		return fmt.Sprintf("grant create on database %s to %s", database, user)
	}
}

// adviceForRole says how to give the user the privileges of a role. It returns "" if the user has
// them.
func adviceForRole(ctx context.Context, connection *pgx.Conn, role string) string {
	var user string
	var exists, isMember bool
	err := connection.QueryRow(ctx, `
		select
			current_user::pg_catalog.regrole::pg_catalog.text, role.oid is not null,
			coalesce(pg_catalog.pg_has_role(role.oid, 'usage'), false)
		from (select pg_catalog.to_regrole($1)) as role (oid)`, role).Scan(&user, &exists, &isMember)
	switch {
	case err != nil:
		return ""
	case !exists:
		return fmt.Sprintf("the role %s does not exist: run pgagui migrate up as the owner of the schema agui, which creates it", role)
	case !isMember:
		return fmt.Sprintf("grant %s to %s", role, user)
	}
	var changes int
	if err := connection.QueryRow(ctx, `select pg_catalog.count(*) from agui_internal.privilege_changes()`).Scan(&changes); err != nil || changes > 0 {
		return fmt.Sprintf("privileges of %s are missing: run pgagui migrate up as the owner of the schema agui, which restores them", role)
	}
	return ""
}
