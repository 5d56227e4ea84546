// Prose checks that documentation, comments and texts for users contain none of the words that
// words.md rules out:
//
//	go run ./prose ROOT PATH ...
//
// ROOT is the folder with tools/prose/words.md. Each PATH, a file or a folder relative to ROOT, is
// checked: Markdown without code, comments and string literals of Go and SQL. Generated files are
// skipped. Each finding is one line: file:line: what to replace by what.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: prose ROOT PATH ...")
		os.Exit(2)
	}
	findings, err := check(os.DirFS(os.Args[1]), os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(2)
	}
	for _, finding := range findings {
		fmt.Println(finding)
	}
	if len(findings) > 0 {
		os.Exit(1)
	}
}

const list = "tools/prose/words.md"

// A rule is a row of its table.
type rule struct {
	pattern     *regexp.Regexp
	word        string // every match contains it; a search for it first is much faster
	replacement string
}

var (
	tableRow = regexp.MustCompile(`(?m)^\| (` + "`" + `.*` + "`" + `) \| (.+?) \|$`)
	inCode   = regexp.MustCompile("`([^`]+)`")
	optional = regexp.MustCompile(`\([^)]*\)\??|\[[^]]*\]\??|\\.|.\?`)
	letters  = regexp.MustCompile(`[a-z]+`)
)

// parse reads the rules.
func parse(text string) ([]rule, error) {
	var rules []rule
	_, section, _ := strings.Cut(text, "## Words that we do not use")
	for _, row := range tableRow.FindAllStringSubmatch(section, -1) {
		for _, code := range inCode.FindAllStringSubmatch(row[1], -1) {
			// A table writes | as \|, and a line break may separate the words of a pattern.
			expression := strings.ReplaceAll(strings.ReplaceAll(code[1], `\|`, "|"), " ", `\s+`)
			pattern, err := regexp.Compile(`(?i)\b(?:` + expression + `)(?:\b|$)`)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", list, err)
			}
			word := ""
			for _, part := range letters.FindAllString(optional.ReplaceAllString(code[1], "-"), -1) {
				if len(part) > len(word) {
					word = part
				}
			}
			rules = append(rules, rule{pattern, word, row[2]})
		}
	}
	if rules == nil {
		return nil, fmt.Errorf("%s has no table of words that we do not use", list)
	}
	return rules, nil
}

func check(root fs.FS, paths []string) ([]string, error) {
	text, err := fs.ReadFile(root, list)
	if err != nil {
		return nil, err
	}
	rules, err := parse(string(text))
	if err != nil {
		return nil, err
	}
	var findings []string
	for _, path := range paths {
		err := fs.WalkDir(root, filepath.ToSlash(filepath.Clean(path)), func(name string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.IsDir() {
				if base := entry.Name(); name != "." && (base == "node_modules" || base == "venv" || strings.HasPrefix(base, ".")) {
					return fs.SkipDir
				}
				return nil
			}
			prose := proseOf[filepath.Ext(name)]
			if prose == nil || name == list && path != list {
				return nil
			}
			content, err := fs.ReadFile(root, name)
			if err != nil {
				return err
			}
			if generatedName.MatchString(name) || generated.Match(content) {
				return nil
			}
			if name == list { // the table of rules is no prose
				content, _, _ = bytes.Cut(content, []byte("## Words that we do not use"))
			}
			masked := prose(content)
			lower := bytes.ToLower(masked)
			for _, rule := range rules {
				if !bytes.Contains(lower, []byte(rule.word)) {
					continue
				}
				for _, place := range rule.pattern.FindAllIndex(masked, -1) {
					findings = append(findings, fmt.Sprintf("%s:%d: %q: write %s",
						name, 1+bytes.Count(masked[:place[0]], []byte("\n")),
						strings.Join(strings.Fields(string(masked[place[0]:place[1]])), " "), rule.replacement))
				}
			}
			return nil
		})
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: no such file or folder", path)
		} else if err != nil {
			return nil, err
		}
	}
	return findings, nil
}

var (
	generated     = regexp.MustCompile(`(?m)^(//|--) Code generated .* DO NOT EDIT`)
	generatedName = regexp.MustCompile(`^db/|_functions\.(up|down)\.sql$|^sql/sqlc/agui\.sql$`)
)

// proseOf has, by file type, what leaves the prose of a file and replaces all else by spaces, so
// that places stay where they are.
var proseOf = map[string]func([]byte) []byte{".md": ofMarkdown, ".sql": ofSQL, ".go": ofGo}

// blank returns text with everything but line ends replaced by spaces.
func blank(text []byte) []byte {
	spaces := bytes.Repeat([]byte(" "), len(text))
	for i, c := range text {
		if c == '\n' {
			spaces[i] = c
		}
	}
	return spaces
}

var markdownCode = regexp.MustCompile("(?ms)^ *```.*?^ *```|`[^`]*`|\\]\\([^)]*\\)")

func ofMarkdown(text []byte) []byte {
	return markdownCode.ReplaceAllFunc(text, func(code []byte) []byte {
		// A character in place of inline code keeps the words around it apart.
		spaces := blank(code)
		spaces[len(spaces)-1] = '`'
		return spaces
	})
}

var (
	sqlPart    = regexp.MustCompile(`--[^\n]*|'(?:[^']|'')*'`)
	sqlComment = regexp.MustCompile(`(?m)^--+`)
)

// ofSQL keeps comments and the string literals that are longer than a word. Adjacent ones join to
// one text, as PostgreSQL joins literals.
func ofSQL(text []byte) []byte {
	masked := blank(text)
	for _, place := range sqlPart.FindAllIndex(text, -1) {
		part := text[place[0]:place[1]]
		if part[0] == '-' || bytes.Contains(bytes.TrimSpace(part[1:len(part)-1]), []byte(" ")) {
			copy(masked[place[0]:], bytes.Trim(part, "'"))
			if part[0] == '-' {
				copy(masked[place[0]:], sqlComment.ReplaceAllFunc(part, blank))
			} else {
				masked[place[0]] = ' '
				copy(masked[place[0]+1:], part[1:len(part)-1])
			}
		}
	}
	return masked
}

// ofGo keeps comments and the string literals that are longer than a word.
func ofGo(text []byte) []byte {
	masked := blank(text)
	file := token.NewFileSet().AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, func(token.Position, string) {}, scanner.ScanComments)
	for {
		position, kind, literal := s.Scan()
		offset := file.Offset(position)
		switch kind {
		case token.EOF:
			return masked
		case token.COMMENT:
			copy(masked[offset+2:], literal[2:])
		case token.STRING:
			// Escapes are as long as what stands for them only in places without words.
			if value, err := strconv.Unquote(literal); err == nil && strings.Contains(strings.TrimSpace(value), " ") {
				copy(masked[offset+1:], literal[1:len(literal)-1])
			}
		}
	}
}
