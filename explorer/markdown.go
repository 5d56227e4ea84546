package explorer

import (
	"bytes"
	"html"
	"html/template"
	"net/url"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	markup "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// What becomes markup is bounded, because the work can grow with the square of what it has. A text that has more is shown as it is.
const (
	mostMarkdown = 100_000 // bytes
	mostLines    = 3000
	mostBrackets = 1000   // of links
	mostCells    = 20_000 // of tables: lines times bars of a line
	mostNesting  = 40     // of quotes and lists
	mostColumns  = 200    // of spaces at the beginning of a line: lists nest by them
	mostLink     = 2000   // bytes of a destination, which any number of links may name
	// mostMarkup bounds the HTML, in bytes.
	mostMarkup = 1 << 20
)

// markdown makes HTML of what an agent said. HTML in it stays text, an image becomes a link, and only
// http, https and mailto lead elsewhere.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.NewLinkify(
		extension.WithLinkifyAllowedProtocols([]string{"http:", "https:"}),
	)),
	goldmark.WithParserOptions(parser.WithASTTransformers(util.Prioritized(headings{}, 100))),
	goldmark.WithRendererOptions(markup.WithHardWraps(), renderer.WithNodeRenderers(util.Prioritized(careful{}, 100))),
)

// markdownHTML returns the HTML of a text; "" if that would take too much.
func markdownHTML(source string) template.HTML {
	if isCostly(source) {
		return ""
	}
	var out bytes.Buffer
	if err := markdown.Convert([]byte(source), &limited{to: &out, left: mostMarkup}); err != nil {
		return ""
	}
	return template.HTML(out.String())
}

// isCostly reports whether a text has more than what becomes markup.
func isCostly(source string) bool {
	if len(source) > mostMarkdown || strings.Count(source, "[") > mostBrackets {
		return true
	}
	lines, bars := 0, 0
	for line := range strings.Lines(source) {
		lines, bars = lines+1, max(bars, strings.Count(line, "|"))
		if nesting, columns := depthOf(line); nesting > mostNesting || columns > mostColumns {
			return true
		}
	}
	return lines > mostLines || lines*bars > mostCells
}

// depthOf returns how many marks of quotes and lists a line begins with, and how many columns of space are between them.
func depthOf(line string) (marks, columns int) {
	for i := range len(line) {
		switch c := line[i]; {
		case c == '\t':
			columns += 4
		case c == ' ':
			columns++
		case c == '>':
			marks++
		case strings.IndexByte("-+*.)", c) >= 0 && i+1 < len(line) && (line[i+1] == ' ' || line[i+1] == '\t'):
			marks++
		case '0' <= c && c <= '9':
		default:
			return marks, columns
		}
	}
	return marks, columns
}

// headings makes headings as small as those of a part of a page.
type headings struct{}

func (headings) Transform(document *ast.Document, _ text.Reader, _ parser.Context) {
	_ = ast.Walk(document, func(node ast.Node, isEntering bool) (ast.WalkStatus, error) {
		if heading, is := node.(*ast.Heading); is && isEntering {
			heading.Level = min(heading.Level+2, 6)
		}
		return ast.WalkContinue, nil
	})
}

// careful renders what could lead elsewhere.
type careful struct{}

func (c careful) RegisterFuncs(register renderer.NodeRendererFuncRegisterer) {
	register.Register(ast.KindLink, c.link)
	register.Register(ast.KindImage, c.image)
	register.Register(ast.KindAutoLink, c.autoLink)
	register.Register(ast.KindRawHTML, c.rawHTML)
	register.Register(ast.KindHTMLBlock, c.htmlBlock)
}

// isSafe reports whether a link may lead there.
func isSafe(destination string) bool {
	if len(destination) > mostLink {
		return false
	}
	parsed, err := url.Parse(strings.TrimSpace(destination))
	if err != nil {
		return false
	}
	switch strings.ToLower(parsed.Scheme) {
	case "http", "https":
		return parsed.Host != ""
	case "mailto":
		return true
	}
	return false // relative ones would lead into the explorer
}

func openLink(w util.BufWriter, destination string) {
	_, _ = w.WriteString(`<a rel="noopener noreferrer nofollow" target="_blank" href="` + html.EscapeString(strings.TrimSpace(destination)) + `">`)
}

func (careful) link(w util.BufWriter, _ []byte, node ast.Node, isEntering bool) (ast.WalkStatus, error) {
	destination := string(node.(*ast.Link).Destination)
	switch {
	case !isSafe(destination) && !isEntering:
		_, _ = w.WriteString(` <span class="muted">(` + html.EscapeString(short(destination, 200)) + `)</span>`)
	case !isSafe(destination):
	case isEntering:
		openLink(w, destination)
	default:
		_, _ = w.WriteString("</a>")
	}
	return ast.WalkContinue, nil
}

func (careful) image(w util.BufWriter, source []byte, node ast.Node, isEntering bool) (ast.WalkStatus, error) {
	if !isEntering {
		return ast.WalkContinue, nil
	}
	destination := string(node.(*ast.Image).Destination)
	label := "image"
	if alternative := strings.TrimSpace(textOfNode(node, source)); alternative != "" {
		label += ": " + alternative
	}
	if isSafe(destination) {
		openLink(w, destination)
		_, _ = w.WriteString("[" + html.EscapeString(label) + "]</a>")
	} else {
		_, _ = w.WriteString(`<span class="muted">[` + html.EscapeString(label) + `] (` + html.EscapeString(short(destination, 200)) + ")</span>")
	}
	return ast.WalkSkipChildren, nil
}

func textOfNode(node ast.Node, source []byte) string {
	var text strings.Builder
	_ = ast.Walk(node, func(node ast.Node, isEntering bool) (ast.WalkStatus, error) {
		if leaf, is := node.(*ast.Text); is && isEntering {
			text.Write(leaf.Value(source))
		}
		return ast.WalkContinue, nil
	})
	return text.String()
}

func (careful) autoLink(w util.BufWriter, source []byte, node ast.Node, isEntering bool) (ast.WalkStatus, error) {
	if !isEntering {
		return ast.WalkContinue, nil
	}
	link := node.(*ast.AutoLink)
	label, destination := string(link.Label(source)), string(link.URL(source))
	if link.AutoLinkType == ast.AutoLinkEmail {
		destination = "mailto:" + strings.TrimPrefix(destination, "mailto:")
	}
	if !isSafe(destination) {
		_, _ = w.WriteString(html.EscapeString(label))
		return ast.WalkContinue, nil
	}
	openLink(w, destination)
	_, _ = w.WriteString(html.EscapeString(label) + "</a>")
	return ast.WalkContinue, nil
}

func (careful) rawHTML(w util.BufWriter, source []byte, node ast.Node, isEntering bool) (ast.WalkStatus, error) {
	if isEntering {
		raw := node.(*ast.RawHTML)
		_, _ = w.WriteString(html.EscapeString(string(raw.Segments.Value(source))))
	}
	return ast.WalkSkipChildren, nil
}

func (careful) htmlBlock(w util.BufWriter, source []byte, node ast.Node, isEntering bool) (ast.WalkStatus, error) {
	if isEntering {
		block := node.(*ast.HTMLBlock)
		lines := string(block.Lines().Value(source))
		if block.HasClosure() {
			lines += string(block.ClosureLine.Value(source))
		}
		_, _ = w.WriteString("<p>" + html.EscapeString(lines) + "</p>\n")
	}
	return ast.WalkContinue, nil
}
