package test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testfile"
)

var (
	markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	inCode       = regexp.MustCompile("(?ms)^```.*?^```|`[^`\n]*`")
	heading      = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notInAnchor  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestLinksOfTheDocumentationLead follows the relative links of all pages, anchors too.
func TestLinksOfTheDocumentationLead(t *testing.T) {
	t.Parallel()
	links := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == "venv" || entry.Name() == "bin" || entry.Name() == ".git" || path == "../docs/site/pages") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		page, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, link := range markdownLink.FindAllStringSubmatch(inCode.ReplaceAllString(string(page), ""), -1) {
			if strings.Contains(link[1], "://") || strings.HasPrefix(link[1], "mailto:") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(link[1], "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", path, link[1])
			} else if anchor != "" && filepath.Ext(target) == ".md" && !hasAnchor(t, target, anchor) {
				t.Errorf("%s: %s has no heading #%s", path, target, anchor)
			}
		}
		return nil
	})
	must.Do(t, err)
	if links < 100 {
		t.Errorf("%d links were found: is the pattern still right?", links)
	}
}

// hasAnchor reports whether a page has a heading with the anchor that code hosts make of it.
func hasAnchor(t *testing.T, page, anchor string) bool {
	text := testfile.Read(t, page)
	for _, found := range heading.FindAllStringSubmatch(string(text), -1) {
		name := strings.ReplaceAll(strings.ToLower(notInAnchor.ReplaceAllString(found[1], "")), " ", "-")
		if name == anchor {
			return true
		}
	}
	return false
}
