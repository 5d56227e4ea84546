package schema

import (
	"io/fs"
)

// FromSources makes a function of this package work with other migrations than this program's.
func FromSources(functions, schema fs.FS) Option {
	return func(s *settings) {
		s.sources = sources{functions, schema}
		s.chain, s.err = s.sources.chain()
	}
}
