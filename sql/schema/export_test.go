package schema

import (
	"io/fs"

	"github.com/pgagui/pgagui/internal/migration"
)

// FromSources makes a function of this package work with other migrations than this program's.
func FromSources(functions, schema fs.FS) Option {
	assembly, err := migration.Assemble(functions, schema)
	return func(s *settings) {
		if s.err = err; err == nil {
			s.chain, s.sources = assembly.Versions(), func() (*migration.Assembly, error) { return assembly, nil }
		}
	}
}
