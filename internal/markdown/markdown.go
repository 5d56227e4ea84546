// Package markdown reads the blocks of code in pages, for the tests of the documentation.
package markdown

import (
	"bytes"
	"os"
	"regexp"
	"testing"
)

// Block is a block of code between fences. A block with more than its language behind the fence is none.
type Block struct {
	Language, Text string
	// File is the file that the paragraph before the block ends with ("`main.go`:"); empty if it names none.
	File string
	// Line is the line of the fence.
	Line int
}

var (
	fenced = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")
	named  = regexp.MustCompile("`([\\w./-]+)`:\\s*$")
)

// Blocks are the blocks of a page.
func Blocks(t testing.TB, page string) (blocks []Block) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	end := 0
	for _, at := range fenced.FindAllSubmatchIndex(text, -1) {
		block := Block{Language: string(text[at[2]:at[3]]), Text: string(text[at[4]:at[5]]), Line: 1 + bytes.Count(text[:at[0]], []byte("\n"))}
		if name := named.FindSubmatch(text[end:at[0]]); name != nil {
			block.File = string(name[1])
		}
		blocks, end = append(blocks, block), at[1]
	}
	return blocks
}

// Code is the text of the blocks in a language. The page must have some.
func Code(t testing.TB, page, language string) (texts []string) {
	t.Helper()
	for _, block := range Blocks(t, page) {
		if block.Language == language {
			texts = append(texts, block.Text)
		}
	}
	if len(texts) == 0 {
		t.Fatalf("%s has no %s", page, language)
	}
	return texts
}
