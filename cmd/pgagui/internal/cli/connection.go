package cli

import (
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

const connectionText = `A command uses the first address that is set, in this order:

  --database-url ADDRESS     postgres://user@host:port/name, or "host=… dbname=… user=…"
  --database-url-file FILE   a file with the address as its only line
  $DATABASE_URL              the address
  $PGHOST, $PGPORT, $PGDATABASE, $PGUSER, $PGSERVICE, $PGSSLMODE, …
                             the variables of libpq; they also complete an address

--nodes FILE or $PGAGUI_NODES describe a cluster, which comes before $DATABASE_URL. --node NAME is
one database of it (see: pgagui cluster --help).

pgagui serve can have more addresses: --live-database-url, --read-database-url and
--worker-database-url, each also with -file, or in the environment: $PGAGUI_LIVE_DATABASE_URL.

All users of a machine can read command lines. Do not put a password into --database-url. Put it
into one of these:

  - the file of --database-url-file, readable by its owner only, for example a mounted secret;
  - ~/.pgpass, or the file that $PGPASSFILE names: lines of host:port:database:user:password, with
    the mode 0600;
  - $DATABASE_URL or $PGPASSWORD, from a systemd EnvironmentFile or a Kubernetes secret.

In a password within an address, write @ as %40, / as %2F, # as %23, ? as %3F and % as %25. Messages
never quote the address.

psql also shows its command line: use psql "$DATABASE_URL" only if the password is in ~/.pgpass.`

// ConnectionTopic returns the help about the connection.
func ConnectionTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "connection",
		Short: "How to select the database and where to put its password",
		Long:  connectionText,
	}
}

// AddressFile is a flag that reads the address of the database from a file.
type AddressFile struct {
	Address *string
	path    string
}

// Set implements pflag.Value: it reads the file.
func (f *AddressFile) Set(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	address := strings.TrimSpace(string(text))
	if address == "" || strings.Contains(address, "\n") {
		return errors.New("the file must hold the address of the database as its only line")
	}
	f.path, *f.Address = path, address
	return nil
}

// String implements pflag.Value.
func (f *AddressFile) String() string { return f.path }

// Type implements pflag.Value.
func (f *AddressFile) Type() string { return "string" }
