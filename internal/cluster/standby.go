package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Standby makes a hot standby of the cluster: a copy that streams the primary's changes and takes queries that only read.
// It is a Cluster like any other, with a port, a folder and a watchdog of its own, to be stopped by itself.
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

// copyFrom makes the data folder a copy of the primary's that follows it. It copies the files itself, because packages with
// nothing but the server have no pg_basebackup.
func (c *Cluster) copyFrom(ctx context.Context, primary *Cluster) error {
	connection, err := pgx.Connect(ctx, primary.URL("postgres"))
	if err != nil {
		return fmt.Errorf("copy the primary: %w", err)
	}
	defer connection.Close(ctx)
	if _, err := connection.Exec(ctx, `select pg_catalog.pg_backup_start('standby', fast => true)`); err != nil {
		return fmt.Errorf("copy the primary: %w", err)
	}
	if err := c.copyTree(primary.dataFolder(), c.dataFolder()); err != nil {
		return fmt.Errorf("copy the primary: %w", err)
	}
	var label string
	if err := connection.QueryRow(ctx, `select labelfile from pg_catalog.pg_backup_stop(wait_for_archive => false)`).Scan(&label); err != nil {
		return fmt.Errorf("copy the primary: %w", err)
	}
	for name, content := range map[string]string{"backup_label": label, "standby.signal": ""} {
		path := filepath.Join(c.dataFolder(), name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return err
		}
		if err := c.account.Own(path); err != nil {
			return err
		}
	}
	return c.configure(map[string]string{"primary_conninfo": primary.URL("postgres")})
}

// copyTree copies a data folder that a server is writing to. What vanishes meanwhile is left out: the log of the primary has it.
func (c *Cluster) copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		switch {
		case entry.IsDir():
			err = os.Mkdir(target, 0o700)
		case strings.HasPrefix(name, "postmaster."):
			return nil
		default:
			err = copyFile(path, target)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		return c.account.Own(target)
	})
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}
