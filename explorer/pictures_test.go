package explorer_test

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testfile"
)

// The pictures of the documentation, of the recordings that pgagui demo imports: make pictures names the
// folder for them.
func TestPictures(t *testing.T) {
	folder := os.Getenv("PGAGUI_TEST_PICTURES")
	if folder == "" {
		t.Skip("PGAGUI_TEST_PICTURES names no folder")
	}
	s, _ := newOpenSite(t)
	b := newBrowser(t)
	for name, page := range map[string]string{
		"conversation": "thread?id=trip-to-lisbon&run=run-4", "time": "time?id=trip-to-lisbon&run=run-2&seq=77", "compare": "compare?id=trip-to-lisbon&from=run-4&to=run-7",
	} {
		b.run(chromedp.EmulateViewport(1280, 860), command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}},
		}), chromedp.Navigate(s.url+page))
		picture := must.Have(chromedp.Run(b.ctx, chromedp.CaptureScreenshot()))(t)
		testfile.Write(t, filepath.Join(folder, name+".png"), small(t, picture))
	}
}

// small returns a picture in fewer bytes.
func small(t *testing.T, picture []byte) []byte {
	t.Helper()
	decoded := must.Have(png.Decode(bytes.NewReader(picture)))(t)
	var out bytes.Buffer
	must.Do(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, decoded))
	return out.Bytes()
}
