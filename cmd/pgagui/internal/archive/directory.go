// Package archive keeps whole threads as compressed files in a directory, and stores them in a
// database again.
//
// The directory has a manifest and a file for each thread. A file counts once the manifest names it
// with its checksum, and is never changed: a thread that is archived once more gets another file.
package archive

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/pgagui/pgagui/internal/eventfile"
)

const (
	format        = "pgagui archive"
	formatVersion = 1
	manifestName  = "manifest.ndjson"
	threadsFolder = "threads"
)

// Source is a line of the manifest: where the threads in the lines after it come from.
type Source struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	// Program is the version of pgagui, Database the database with its server.
	Program  string    `json:"pgagui"`
	Database string    `json:"database"`
	At       time.Time `json:"at"`
	// Tables has the columns of each table in the files.
	Tables json.RawMessage `json:"tables"`
}

// Thread is a line of the manifest: an archived thread.
type Thread struct {
	Scope    string    `json:"scope"`
	ThreadID string    `json:"threadId"`
	At       time.Time `json:"at"`
	Runs     int       `json:"runs"`
	// InProgress is how many of the runs were in progress.
	InProgress int `json:"inProgress,omitempty"`
	// Events is their number, which is the seq of the last.
	Events int64 `json:"events"`
	// IsChained reports that the log has a chain of hashes, which covers the scope.
	IsChained bool `json:"chained,omitempty"`
	// Digests are hashes of the parts of the thread (agui_internal.content_digests).
	Digests map[string]string `json:"digests"`

	File      string `json:"file"`
	FileBytes int64  `json:"fileBytes"`
	SHA256    string `json:"sha256"`
	// Bytes is the size of the file before compression.
	Bytes int64 `json:"bytes"`

	source *Source
}

// String names the thread in messages.
func (t Thread) String() string { return name(t.Scope, t.ThreadID) }

func name(scope, threadID string) string {
	if scope == "" {
		return fmt.Sprintf("thread %q", threadID)
	}
	return fmt.Sprintf("thread %q of scope %q", threadID, scope)
}

type threadName struct{ scope, threadID string }

// Directory is an archive.
type Directory struct {
	Path    string
	threads map[threadName]Thread
	order   []threadName

	manifest *os.File // nil while the archive is only read
	source   *Source  // of the threads that are added
}

// Open reads the manifest of an archive.
func Open(path string) (*Directory, error) {
	d := &Directory{Path: path, threads: map[threadName]Thread{}}
	file, err := os.Open(filepath.Join(path, manifestName))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content := bufio.NewReaderSize(file, 1<<20)
	var source *Source
	for line := 1; ; line++ {
		text, err := content.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF): // what is left was being written when a process was killed
			if source == nil {
				return nil, d.damaged(line, errors.New("the manifest has no lines: write the archive to another directory"))
			}
			return d, nil
		case err != nil:
			return nil, err
		}
		if source, err = d.read(text, source); err != nil {
			return nil, d.damaged(line, err)
		}
	}
}

func (d *Directory) damaged(line int, err error) error {
	return &eventfile.Error{File: filepath.Join(d.Path, manifestName), Line: line, Err: err}
}

// read adds a line of the manifest, and returns the source of the lines after it.
func (d *Directory) read(line []byte, source *Source) (*Source, error) {
	var next Source
	var thread Thread
	if err := errors.Join(json.Unmarshal(line, &next), json.Unmarshal(line, &thread)); err != nil {
		return nil, fmt.Errorf("the manifest is damaged: %w", err)
	}
	switch {
	case next.Format == format && next.Version != formatVersion:
		return nil, fmt.Errorf("the archive has version %d of its format, and this program reads version %d: use a newer pgagui", next.Version, formatVersion)
	case next.Format == format:
		return &next, nil
	case source == nil:
		return nil, errors.New("the file is no manifest of an archive of pgagui")
	case !filepath.IsLocal(thread.File) || !threadFile.MatchString(filepath.Base(thread.File)):
		return nil, fmt.Errorf("the manifest is damaged: %q is no file of a thread", thread.File)
	}
	thread.source = source
	d.put(thread)
	return source, nil
}

func (d *Directory) put(thread Thread) {
	key := threadName{thread.Scope, thread.ThreadID}
	if _, known := d.threads[key]; !known {
		d.order = append(d.order, key)
	}
	d.threads[key] = thread
}

// Threads returns the threads of the archive, in the order in which they were archived first.
func (d *Directory) Threads() []Thread {
	all := make([]Thread, 0, len(d.order))
	for _, key := range d.order {
		all = append(all, d.threads[key])
	}
	return all
}

// Begin opens an archive to add threads, or creates it. It removes what a killed process left.
func Begin(path string, source Source) (*Directory, error) {
	d, err := Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(path, 0o700); err != nil {
			return nil, err
		}
		if others, err := os.ReadDir(path); err != nil || len(others) > 0 && !isLeftover(others) {
			return nil, cmp.Or(err, error(&fs.PathError{Op: "archive", Path: path, Err: errors.New("the directory has other files, and no archive: choose an empty one")}))
		}
		d = &Directory{Path: path, threads: map[threadName]Thread{}}
	case err != nil:
		return nil, err
	}
	source.Format, source.Version = format, formatVersion
	d.source = &source
	if err := d.rewriteManifest(); err != nil {
		return nil, err
	}
	return d, d.removeLeftovers()
}

// isLeftover reports whether a directory has only what Begin writes before there is a manifest.
func isLeftover(entries []fs.DirEntry) bool {
	return !slices.ContainsFunc(entries, func(entry fs.DirEntry) bool { return entry.Name() != manifestName+partial })
}

const partial = ".partial"

// rewriteManifest writes the manifest with a line for each thread, and opens it.
func (d *Directory) rewriteManifest() error {
	path := filepath.Join(d.Path, manifestName)
	file, err := os.OpenFile(path+partial, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	d.manifest = file
	var source *Source
	for _, thread := range d.Threads() {
		if source != thread.source {
			source = thread.source
			err = errors.Join(err, d.writeLine(source))
		}
		err = errors.Join(err, d.writeLine(thread))
	}
	err = errors.Join(err, d.writeLine(d.source), file.Sync())
	if err == nil {
		err = errors.Join(os.Rename(path+partial, path), syncFolder(d.Path))
	}
	if err != nil {
		_ = file.Close() // err has the cause
	}
	return err
}

func (d *Directory) writeLine(value any) error {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	_, err := d.manifest.Write(line.Bytes())
	return err
}

// syncFolder makes the names in a folder permanent.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	// Some file systems, and Windows, cannot do that.
	if err := folder.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrInvalid) && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// threadFile matches the name of the file of a thread: its key, and the beginning of the checksum.
var threadFile = regexp.MustCompile(`^[0-9a-f-]{36}\.[0-9a-f]{12}\.ndjson\.zst$`)

var unfinishedFile = regexp.MustCompile(`^[0-9a-f-]{36}` + regexp.QuoteMeta(partial) + `$`)

// removeLeftovers removes files of threads that the manifest does not name.
func (d *Directory) removeLeftovers() error {
	named := map[string]bool{}
	for _, thread := range d.threads {
		named[thread.File] = true
	}
	root := os.DirFS(d.Path)
	err := fs.WalkDir(root, threadsFolder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || named[path] || !threadFile.MatchString(entry.Name()) && !unfinishedFile.MatchString(entry.Name()) {
			return err
		}
		return os.Remove(filepath.Join(d.Path, filepath.FromSlash(path)))
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Close closes the manifest.
func (d *Directory) Close() error {
	if d.manifest == nil {
		return nil
	}
	return d.manifest.Close()
}

// Add writes the file of a thread, whose lines write gives, and then its line in the manifest.
func (d *Directory) Add(thread Thread, key string, write func(lines io.Writer, thread *Thread) error) (added Thread, err error) {
	folder := filepath.Join(d.Path, threadsFolder, key[len(key)-2:])
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return added, err
	}
	unfinished := filepath.Join(folder, key+partial)
	file, err := os.OpenFile(unfinished, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return added, err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(unfinished) // err has the cause
		}
	}()
	hash := sha256.New()
	packed := &counter{to: io.MultiWriter(file, hash)}
	// One goroutine: the next rows come from the database meanwhile.
	encoder, err := zstd.NewWriter(packed, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault))
	if err == nil {
		plain := &counter{to: encoder}
		buffer := bufio.NewWriterSize(plain, 1<<16)
		err = write(buffer, &thread)
		err = errors.Join(err, buffer.Flush(), encoder.Close(), file.Sync())
		thread.Bytes = plain.n
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return added, err
	}
	thread.FileBytes, thread.SHA256 = packed.n, hex.EncodeToString(hash.Sum(nil))
	name := key + "." + thread.SHA256[:12] + ".ndjson.zst"
	if err := errors.Join(os.Rename(unfinished, filepath.Join(folder, name)), syncFolder(folder)); err != nil {
		return added, err
	}
	thread.File = threadsFolder + "/" + filepath.Base(folder) + "/" + name
	thread.source = d.source
	if err := errors.Join(d.writeLine(thread), d.manifest.Sync()); err != nil {
		return added, err
	}
	previous, known := d.threads[threadName{thread.Scope, thread.ThreadID}]
	d.put(thread)
	if known && previous.File != thread.File {
		// The next Begin removes it if this fails.
		_ = os.Remove(filepath.Join(d.Path, filepath.FromSlash(previous.File)))
	}
	return thread, nil
}

// counter counts the bytes that it passes on.
type counter struct {
	to io.Writer
	n  int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.n += int64(n)
	return n, err
}

// path is where the file of a thread is.
func (d *Directory) path(thread Thread) string {
	return filepath.Join(d.Path, filepath.FromSlash(thread.File))
}

// fileError says what is wrong with the file of a thread.
func (d *Directory) fileError(thread Thread, problem error) error {
	return &fs.PathError{Op: "unarchive", Path: d.path(thread), Err: fmt.Errorf("%w (%s): restore the file from a copy, or archive the thread once more", problem, thread)}
}

// mostInLine bounds a line, which is a row with all of its values: a few bytes may decompress to any number.
const mostInLine = 512 << 20

var (
	errDamaged  = errors.New("the file is damaged: it does not have the SHA-256 of the manifest")
	errNoThread = errors.New("the file is not what the manifest says")
)

// Check reads the file of a thread, and returns an error if it is not what was written.
func (d *Directory) Check(thread Thread) error {
	file, err := os.Open(d.path(thread))
	if err != nil {
		return err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return err
	}
	if hex.EncodeToString(hash.Sum(nil)) != thread.SHA256 {
		return d.fileError(thread, errDamaged)
	}
	return nil
}

// Lines calls each with the lines of the file of a thread, which must be as it was written. A line
// is valid during the call only.
func (d *Directory) Lines(thread Thread, each func(line []byte) error) error {
	// First, so that nothing of a damaged file comes to the database.
	if err := d.Check(thread); err != nil {
		return err
	}
	file, err := os.Open(d.path(thread))
	if err != nil {
		return err
	}
	defer file.Close()
	decoder, err := zstd.NewReader(file, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return d.fileError(thread, err)
	}
	defer decoder.Close()
	content := bufio.NewReaderSize(decoder, 1<<16)
	var line []byte
	for {
		part, err := content.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > mostInLine:
			return d.fileError(thread, fmt.Errorf("a line has more than %d MB", mostInLine>>20))
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(line) == 0:
			return nil
		case err != nil:
			return d.fileError(thread, err)
		}
		if err := each(line); err != nil {
			return err
		}
		line = line[:0]
	}
}
