package explorer

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"html/template"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"sync"
	"time"

	"github.com/pgagui/pgagui/server/problem"
)

//go:embed static
var staticFiles embed.FS

//go:embed templates/*.html
var templateFiles embed.FS

// asset is an embedded file.
type asset struct {
	name, mediaType string
	text            []byte
}

// assetFolder is where the files are. It has a hash of all of them, so browsers keep them.
var assets, assetFolder = loadAssets()

func loadAssets() (map[string]asset, string) {
	found, all := []asset{}, sha256.New()
	err := fs.WalkDir(staticFiles, "static", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := staticFiles.ReadFile(file)
		all.Write(text)
		found = append(found, asset{path.Base(file), mediaTypeOf(file), text})
		return err
	})
	if err != nil {
		panic(err) // they are part of the program
	}
	folder := "static/" + hex.EncodeToString(all.Sum(nil)[:6]) + "/"
	byPath := map[string]asset{}
	for _, one := range found {
		byPath[folder+one.name] = one
	}
	return byPath, folder
}

func mediaTypeOf(file string) string {
	switch path.Ext(file) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	}
	return mime.TypeByExtension(path.Ext(file))
}

func (a asset) serve(q *request) error {
	q.w.Header().Set("Content-Type", a.mediaType)
	q.w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, err := q.w.Write(a.text)
	_ = err // the client may be gone
	return nil
}

// templates are the pages, each with the layout.
type templates map[string]*template.Template

// pages are parsed when one is first needed, so that commands that show none do not wait for it.
var pages = sync.OnceValue(loadTemplates)

func loadTemplates() templates {
	shared := template.Must(template.New("").Funcs(functions).ParseFS(templateFiles, "templates/layout.html", "templates/parts.html"))
	files, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		panic(err)
	}
	loaded := templates{}
	for _, file := range files {
		name := path.Base(file)
		one := template.Must(template.Must(shared.Clone()).ParseFS(templateFiles, file))
		loaded[name[:len(name)-len(".html")]] = one
	}
	return loaded
}

// mostPage is how many bytes a page has at most.
const mostPage = 32 << 20

// text returns the text of a page.
func (t templates) text(name string, of page) ([]byte, error) {
	var text bytes.Buffer
	err := t[name].ExecuteTemplate(&limited{to: &text, left: mostPage}, "layout", of)
	if errors.Is(err, errFull) {
		err = problem.Errorf(http.StatusUnprocessableEntity, "the page would have more than %d MB", mostPage>>20)
	}
	return text.Bytes(), err
}

// limited is a writer that takes so many bytes.
type limited struct {
	to   *bytes.Buffer
	left int
}

var errFull = errors.New("there is no room for more")

func (l *limited) Write(text []byte) (int, error) {
	if l.left -= len(text); l.left < 0 {
		return 0, errFull
	}
	return l.to.Write(text)
}

// functions are those of the templates.
var functions = template.FuncMap{
	"link":     link,
	"asset":    func(name string) string { return assetFolder + name },
	"ago":      func(at time.Time) string { return ago(time.Since(at)) },
	"iso":      func(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) },
	"time":     func(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05 UTC") },
	"clock":    func(at time.Time) string { return at.UTC().Format("15:04:05.000") },
	"duration": func(of *time.Duration) string { return durationText(*of) },
	"count":    countText,
	"bytes":    bytesText,
	"status":   statusOf,
	"short":    short,
}
