package migration

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// ReleasedFile is the list of the files in the folder schema that may not change any more, in the form of sha256sum.
const ReleasedFile = "released.sum"

// Release returns the files of the folder schema that freeze the migrations as they are, by name: all migrations with their records, and the list of
// them.
func Release(functions, schema fs.FS) (map[string][]byte, error) {
	if err := CheckReleased(schema); err != nil {
		return nil, err
	}
	a, err := assemble(functions, schema, false)
	if err != nil {
		return nil, err
	}
	migrations, err := a.Chain()
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	var list bytes.Buffer
	add := func(name, text string) {
		files[name] = []byte(text)
		fmt.Fprintf(&list, "%x  %s\n", sha256.Sum256([]byte(text)), name)
	}
	for _, m := range migrations {
		add(m.UpFile(), m.Up)
		add(m.DownFile(), m.Down)
	}
	files[ReleasedFile] = list.Bytes()
	return files, nil
}

// CheckReleased reports whether the released migrations are as they were released, and no other migration has a record, as only they have.
func CheckReleased(schema fs.FS) error {
	list, err := fs.ReadFile(schema, ReleasedFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	released := map[string]bool{}
	for line := range strings.Lines(string(list)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		content, err := fs.ReadFile(schema, name)
		if err != nil {
			return fmt.Errorf("%s was released and must stay: %w", name, err)
		}
		if fmt.Sprintf("%x", sha256.Sum256(content)) != sum {
			return fmt.Errorf("%s was released and must stay as it was: databases have it. Put the change into a new migration", name)
		}
		released[name] = true
	}
	migrations, err := read(schema)
	if err != nil {
		return err
	}
	for _, m := range migrations {
		if m.isReleased() != released[m.UpFile()] {
			return fmt.Errorf("%s has a record of the install, but %s does not list it: only released migrations have one", m.UpFile(), ReleasedFile)
		}
	}
	return nil
}
