package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pgagui/pgagui/devpg/daemon"
)

// OpenOptions say which server to open.
type OpenOptions struct {
	// Folder is where the data is. Open makes the folder and the data if they are not there. One process at a time may use
	// it: the caller sees to that.
	Folder string
	// Password is that of the superuser. It must always be the same.
	Password string
	// Programs are folders to look for server programs in, besides those that Start looks in.
	Programs []string
	// Log gets what the server and initdb print; nil drops it.
	Log io.Writer
}

// Open starts a server whose data stays in a folder. Stop ends the server and leaves the data. If the machine has no programs of
// the data's major version, or for new data none at all, the error is a *NoProgramsError.
func Open(ctx context.Context, options OpenOptions) (*Cluster, error) {
	account, err := daemon.ServerAccount()
	if err != nil {
		return nil, err
	}
	folder, err := account.KeepFolder(options.Folder)
	if err != nil {
		return nil, err
	}
	major, err := dataMajor(folder)
	var found programs
	if err == nil {
		found, err = findPrograms(ctx, account, major, options.Programs...)
	}
	if err == nil && major != 0 && found.major != major { // of binariesVariable
		err = &NoProgramsError{major, []int{found.major}}
	}
	if err != nil {
		return nil, errors.Join(err, folder.Release())
	}
	cluster := &Cluster{programs: found, account: account, folder: folder, password: options.Password, log: options.Log}
	return cluster.begin(ctx, Options{}, func(ctx context.Context) error {
		if major != 0 {
			return nil
		}
		// Under another name first: data that is there is complete.
		const unfinished = dataFolder + ".new"
		if err := folder.RemoveTree(unfinished); err != nil {
			return err
		}
		if err := cluster.create(ctx, unfinished); err != nil {
			return err
		}
		return folder.Rename(unfinished, dataFolder)
	})
}

// dataMajor returns the major version that the data in a folder is of. 0: there is no data.
func dataMajor(folder *daemon.Folder) (int, error) {
	file, err := folder.Open(filepath.Join(dataFolder, "PG_VERSION"), os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, 20))
	if err != nil {
		return 0, err
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || major == 0 {
		return 0, fmt.Errorf("%s is of no known version of PostgreSQL: %q", filepath.Join(folder.Path(), dataFolder), text)
	}
	return major, nil
}

// Major is the major version of the server.
func (c *Cluster) Major() int { return c.programs.major }
