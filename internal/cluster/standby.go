package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/pgagui/pgagui/internal/daemon"
)

// Standby makes a hot standby of the cluster: a copy that streams the primary's changes and takes queries that only read.
// It is a Cluster like any other, with a port, a folder and a watchdog of its own, to be stopped by itself. The error is
// errors.ErrUnsupported where pg_basebackup is missing.
//
// Tests make it lag, or miss what the primary committed last, in SQL on the standby:
//
//	select pg_wal_replay_pause()                 what it receives is not shown until pg_wal_replay_resume()
//	alter system set primary_conninfo = ''       with pg_reload_conf(): receives nothing, until the setting is reset
func (c *Cluster) Standby(ctx context.Context, options Options) (*Cluster, error) {
	standby := &Cluster{programs: c.programs, account: c.account, password: c.password, log: options.Log}
	return standby.begin(ctx, options, func(ctx context.Context) error { return standby.copyFrom(ctx, c) })
}

// Promote makes a standby a primary, which takes writes when Promote returns. It first replays all that it has received,
// even when replay is paused.
func (c *Cluster) Promote(ctx context.Context) error {
	connection, err := pgx.Connect(ctx, c.URL("postgres"))
	if err != nil {
		return fmt.Errorf("promote the standby: %w", err)
	}
	defer connection.Close(ctx)
	var promoted bool
	err = connection.QueryRow(ctx, `select pg_catalog.pg_promote(wait => true, wait_seconds => $1)`, int(startTimeout.Seconds())).
		Scan(&promoted)
	if err == nil && !promoted {
		err = fmt.Errorf("it is still in recovery after %s", startTimeout)
	}
	if err != nil {
		return fmt.Errorf("promote the standby: %w", err)
	}
	return nil
}

// copyFrom makes the data folder a copy of the primary's that follows it.
func (c *Cluster) copyFrom(ctx context.Context, primary *Cluster) error {
	const program = "pg_basebackup"
	if _, err := exec.LookPath(filepath.Join(c.programs.folder, program)); err != nil {
		return fmt.Errorf("a standby needs %s, which is not in %s: install the package postgresql, or set %s to a folder that has it: %w",
			program, c.programs.folder, binariesVariable, errors.ErrUnsupported)
	}
	output := &tail{}
	backup := c.command(ctx, program, output,
		"--host="+daemon.Host, "--port="+strconv.Itoa(primary.port), "--username="+superuser, "--no-password",
		"--pgdata="+c.dataFolder(), "--checkpoint=fast", "--no-sync")
	backup.Env = append(backup.Env, "PGPASSWORD="+primary.password)
	if err := backup.Run(); err != nil {
		return fmt.Errorf("copy the primary with %s: %w: %s", backup.Path, err, output.reason())
	}
	signal := filepath.Join(c.dataFolder(), "standby.signal")
	if err := os.WriteFile(signal, nil, 0o600); err != nil {
		return err
	}
	if err := c.account.Own(signal); err != nil {
		return err
	}
	// Not written by pg_basebackup, which puts it where "alter system" would overwrite it for good.
	return c.configure(map[string]string{"primary_conninfo": primary.URL("postgres")})
}
