package cluster

import (
	"context"
	"errors"
	"fmt"
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
	folder, err := c.account.MakeFolder(options.Folder)
	if err != nil {
		return nil, err
	}
	standby := &Cluster{programs: c.programs, account: c.account, folder: folder, password: c.password, log: options.Log}
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
	if err := c.copyData(primary); err != nil {
		return fmt.Errorf("copy the primary: %w", err)
	}
	var label string
	if err := connection.QueryRow(ctx, `select labelfile from pg_catalog.pg_backup_stop(wait_for_archive => false)`).Scan(&label); err != nil {
		return fmt.Errorf("copy the primary: %w", err)
	}
	for name, content := range map[string]string{"backup_label": label, "standby.signal": ""} {
		if err := c.folder.Write(filepath.Join(dataFolder, name), strings.NewReader(content)); err != nil {
			return err
		}
	}
	return c.configure(map[string]string{"primary_conninfo": primary.URL("postgres")})
}

// copyData copies the data folder that a server is writing to. What vanishes meanwhile is left out: the log of the primary has it.
func (c *Cluster) copyData(primary *Cluster) error {
	return fs.WalkDir(primary.folder.FS(), dataFolder, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
		case entry.IsDir():
			err = c.folder.Mkdir(name)
		case strings.HasPrefix(entry.Name(), "postmaster."):
		default:
			err = c.copyFile(primary, name)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

func (c *Cluster) copyFile(primary *Cluster, name string) error {
	source, err := primary.folder.Open(name, os.O_RDONLY)
	if err != nil {
		return err
	}
	return errors.Join(c.folder.Write(name, source), source.Close())
}
