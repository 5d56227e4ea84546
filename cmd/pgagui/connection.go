package main

import (
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

const connectionText = `Which database a command works on is said by the first of these that is there:

  --database-url ADDRESS     postgres://user@host:port/name, or "host=… dbname=… user=…"
  --database-url-file FILE   a file with the address as its only line
  $DATABASE_URL              the address
  $PGHOST, $PGPORT, $PGDATABASE, $PGUSER, $PGSERVICE, $PGSSLMODE, …, as libpq has them; they also complete an address

Command lines are shown to all users of a machine, so no password belongs into --database-url. It belongs into

  - the file of --database-url-file, readable for its owner alone: a mounted secret, for instance;
  - ~/.pgpass, or the file that $PGPASSFILE names: lines of host:port:database:user:password, mode 0600;
  - the environment: $DATABASE_URL or $PGPASSWORD, from a systemd EnvironmentFile or a Kubernetes secret.

In a password within an address, @ is written as %40, / as %2F, # as %23, ? as %3F and % as %25. Messages never quote the address.

psql shows its command line too: psql "$DATABASE_URL" only where the password is in ~/.pgpass.`

func connectionTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "connection",
		Short: "Which database a command works on, and where its password belongs",
		Long:  connectionText,
	}
}

// addressFile is the flag that reads the address of the database from a file.
type addressFile struct {
	address *string
	path    string
}

// Set implements pflag.Value.
func (f *addressFile) Set(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	address := strings.TrimSpace(string(text))
	if address == "" || strings.Contains(address, "\n") {
		return errors.New("the file must hold the address of the database as its only line")
	}
	f.path, *f.address = path, address
	return nil
}

// String implements pflag.Value.
func (f *addressFile) String() string { return f.path }

// Type implements pflag.Value.
func (f *addressFile) Type() string { return "string" }
