package schema

import (
	"io/fs"

	"github.com/pgagui/pgagui/internal/migration"
)

// FromSources makes a function of this package work with other migrations than this program's.
func FromSources(functions, schema fs.FS) Option {
	return func(s *settings) { s.chain, s.err = migration.Assemble(functions, schema) }
}
