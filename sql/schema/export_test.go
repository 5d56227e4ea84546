package schema

import "io/fs"

// FromFiles makes a function of this package work with other migrations than this program's.
func FromFiles(files fs.FS) Option {
	return func(s *settings) { s.chain, s.err = newChain(files) }
}
