package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"

	"github.com/pgagui/pgagui/internal/daemon"
)

// fetchable are the versions that can be fetched, by major version.
var fetchable = map[int]embeddedpostgres.PostgresVersion{
	15: embeddedpostgres.V15,
	16: embeddedpostgres.V16,
	17: embeddedpostgres.V17,
	18: embeddedpostgres.V18,
}

const fetchByDefault = 18

// fetchPrograms downloads the server programs of a major version, or takes them from the cache of an earlier download.
func fetchPrograms(ctx context.Context, major int) (programs, error) {
	if major == 0 {
		major = fetchByDefault
	}
	version, ok := fetchable[major]
	if !ok {
		return programs{}, fmt.Errorf("PostgreSQL %d cannot be fetched", major)
	}
	cache, err := cacheFolder()
	if err != nil {
		return programs{}, err
	}
	installed := filepath.Join(cache, "postgresql-"+string(version))
	bin := filepath.Join(installed, "bin")
	if found, err := inspect(ctx, bin); err == nil {
		return found, nil
	}

	// Unpacked beside its final place, for another process may be doing the same.
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return programs{}, err
	}
	work, err := os.MkdirTemp(cache, "fetch-")
	if err != nil {
		return programs{}, err
	}
	defer os.RemoveAll(work)
	unpacked := filepath.Join(work, "postgresql")
	if err := unpack(version, work, unpacked); err != nil {
		return programs{}, err
	}
	if err := os.Rename(unpacked, installed); err != nil && !errors.Is(err, os.ErrExist) {
		return programs{}, err
	}
	return inspect(ctx, bin)
}

// unpack downloads a version and unpacks it into a folder. The library has no call for that alone: it unpacks when it
// starts a server. That start may fail (it does as root) once the programs are there.
func unpack(version embeddedpostgres.PostgresVersion, work, folder string) error {
	port, err := daemon.FreePort()
	if err != nil {
		return err
	}
	server := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		Version(version).
		Port(uint32(port)).
		CachePath(filepath.Join(work, "download")).
		RuntimePath(filepath.Join(work, "run")).
		BinariesPath(folder).
		Logger(io.Discard))
	if err := server.Start(); err != nil {
		if _, missing := os.Stat(filepath.Join(folder, "bin", "postgres")); missing != nil {
			return err
		}
		return nil
	}
	return server.Stop()
}

// cacheFolder is where fetched programs stay. The account that runs the server must be able to read it, so root does
// not use its home.
func cacheFolder() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/cache/pgagui", nil
	}
	folder, err := os.UserCacheDir()
	return filepath.Join(folder, "pgagui"), err
}
