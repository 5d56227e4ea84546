package main

import (
	"bytes"
	"fmt"
	"io"

	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// A canvas is an SVG file without text. It has the outline of each letter once, and its labels
// refer to these outlines. With text, a viewer without the font would use another one, which is
// wider or narrower than the space for the labels. Labels are in front of all other shapes.
type canvas struct {
	*vgsvg.Canvas
	outlines map[sfnt.GlyphIndex]bool
	defined  bytes.Buffer // the outlines
	written  bytes.Buffer // the labels
	labels   []label      // for the tests
}

type label struct {
	text string
	box  vg.Rectangle
}

func newCanvas(width, height vg.Length) *canvas {
	return &canvas{Canvas: vgsvg.New(width, height), outlines: map[sfnt.GlyphIndex]bool{}}
}

// FillString draws a line of text; at is the left end of its baseline. All labels are black and use
// one font, in any size.
func (c *canvas) FillString(face font.Face, at vg.Point, text string) {
	extents := face.Extents()
	c.labels = append(c.labels, label{text, vg.Rectangle{
		Min: vg.Point{X: at.X, Y: at.Y - extents.Descent},
		Max: vg.Point{X: at.X + face.Width(text), Y: at.Y + extents.Ascent},
	}})
	scale := face.Font.Size.Points() / float64(face.Face.UnitsPerEm())
	fmt.Fprintf(&c.written, `<g transform="translate(%.2f,%.2f) scale(%.5f,-%.5f)">`,
		at.X.Points(), at.Y.Points(), scale, scale)
	for i, letter := range text {
		glyph, err := c.define(face, letter)
		if err != nil {
			panic(fmt.Sprintf("the outline of %q: %v", letter, err)) // cannot happen: the font is part of the program
		}
		fmt.Fprintf(&c.written, `<use xlink:href="#g%d" x="%.0f"/>`, glyph, face.Width(text[:i]).Points()/scale)
	}
	c.written.WriteString("</g>\n")
}

// define writes the outline of a letter, in units of the font, when the letter is used for the
// first time.
func (c *canvas) define(face font.Face, letter rune) (sfnt.GlyphIndex, error) {
	var buffer sfnt.Buffer
	glyph, err := face.Face.GlyphIndex(&buffer, letter)
	if err != nil || c.outlines[glyph] {
		return glyph, err
	}
	segments, err := face.Face.LoadGlyph(&buffer, glyph, fixed.Int26_6(face.Face.UnitsPerEm()), nil)
	if err != nil {
		return glyph, err
	}
	c.outlines[glyph] = true
	fmt.Fprintf(&c.defined, `<path id="g%d" d="`, glyph)
	for _, segment := range segments {
		command, points := "M", 1
		switch segment.Op {
		case sfnt.SegmentOpLineTo:
			command = "L"
		case sfnt.SegmentOpQuadTo:
			command, points = "Q", 2
		case sfnt.SegmentOpCubeTo:
			command, points = "C", 3
		}
		c.defined.WriteString(command)
		for _, point := range segment.Args[:points] {
			fmt.Fprintf(&c.defined, "%d,%d ", point.X, point.Y)
		}
	}
	c.defined.WriteString(`"/>` + "\n")
	return glyph, nil
}

// WriteTo writes the file.
func (c *canvas) WriteTo(out io.Writer) (int64, error) {
	var drawn bytes.Buffer
	if _, err := c.Canvas.WriteTo(&drawn); err != nil {
		return 0, err
	}
	end := bytes.LastIndex(drawn.Bytes(), []byte("</g>")) // of the group that makes y point up
	shapes, rest := drawn.Bytes()[:end], drawn.Bytes()[end:]
	text := bytes.Join([][]byte{shapes, []byte("<defs>\n"), c.defined.Bytes(), []byte("</defs>\n"), c.written.Bytes(), rest}, nil)
	n, err := out.Write(text)
	return int64(n), err
}
