package functions_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/sql/functions"
)

func TestEverySourceIsEmbedded(t *testing.T) {
	t.Parallel()
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".sql" {
			return err
		}
		want, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if got, err := functions.Files.ReadFile(filepath.ToSlash(file)); err != nil || string(got) != string(want) {
			t.Errorf("%s is not part of the migrations: sources are in FLOOR/AREA.sql (%v)", file, err)
		}
		return nil
	})
	must.Do(t, err)
}
