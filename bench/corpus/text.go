package corpus

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// enough is the number of bytes of text to collect, more than a conversation uses.
const enough = 1_000_000

// errEnough ends the walk through the source tree.
var errEnough = errors.New("enough text")

// collectParagraphs returns paragraphs of English prose from the comments of the standard library
// of Go, in the order of its files.
func collectParagraphs(ctx context.Context) ([]string, error) {
	output, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("find the Go source tree, whose comments are the text of the corpus, with go env GOROOT: %w", err)
	}
	root := filepath.Join(strings.TrimSpace(string(output)), "src")

	var paragraphs []string
	size, seen := 0, map[string]bool{}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			// Commands, copies of other modules and tables of system calls have hardly any prose.
			switch entry.Name() {
			case "cmd", "vendor", "testdata", "syscall":
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, paragraph := range prose(file.Comments) {
			if seen[paragraph] {
				continue
			}
			seen[paragraph] = true
			paragraphs = append(paragraphs, paragraph)
			if size += len(paragraph); size >= enough {
				return errEnough
			}
		}
		return nil
	})
	if err != nil && err != errEnough {
		return nil, fmt.Errorf("collect the comments of Go's source tree: %w", err)
	}
	if len(paragraphs) == 0 {
		return nil, fmt.Errorf("no Go source tree in %s: install Go from go.dev, or the source package of your system's Go", root)
	}
	return paragraphs, nil
}

// prose returns the paragraphs of comments that are prose: no code, lists, headings or licences.
func prose(comments []*ast.CommentGroup) []string {
	var paragraphs []string
	for _, comment := range comments {
		for paragraph := range strings.SplitSeq(comment.Text(), "\n\n") {
			paragraph = strings.TrimRight(paragraph, "\n")
			if len(paragraph) < 120 || strings.Contains(paragraph, "\n\t") || strings.Contains(paragraph, "\n ") ||
				strings.Contains(paragraph, "Copyright") || !utf8.ValidString(paragraph) {
				continue
			}
			if first := paragraph[0]; first < 'A' || first > 'Z' || !strings.HasSuffix(paragraph, ".") {
				continue
			}
			paragraphs = append(paragraphs, strings.Join(strings.Fields(paragraph), " "))
		}
	}
	return paragraphs
}

// A reader reads the text from a paragraph on. At the end it continues with the first paragraph.
type reader struct {
	paragraphs []string
	next       int
	rest       string
}

// read returns the next piece of text: at most size bytes, cut at the end of a word.
func (r *reader) read(size int) string {
	var text strings.Builder
	for text.Len() < size {
		if r.rest == "" {
			r.rest = r.paragraphs[r.next%len(r.paragraphs)] + "\n\n"
			r.next++
		}
		room := size - text.Len()
		if len(r.rest) <= room {
			text.WriteString(r.rest)
			r.rest = ""
			continue
		}
		end := strings.LastIndexByte(r.rest[:room+1], ' ')
		if end <= 0 {
			if text.Len() > 0 {
				break
			}
			end = len(r.rest)
		}
		text.WriteString(r.rest[:end])
		r.rest = r.rest[end:]
		break
	}
	return strings.TrimSpace(text.String())
}

// pieces cuts a text into pieces of about size bytes, before spaces if possible. With size 4 they
// look like the tokens of a model.
func pieces(text string, size int) []string {
	var cut []string
	begin := 0
	for i := range text {
		length := i - begin
		if length > 0 && (text[i] == ' ' && length >= size/2 || length >= max(1, size*3/2)) {
			cut = append(cut, text[begin:i])
			begin = i
		}
	}
	if begin < len(text) {
		cut = append(cut, text[begin:])
	}
	return cut
}
