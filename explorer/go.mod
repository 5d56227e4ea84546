module github.com/pgagui/pgagui/explorer

go 1.26.0

require (
	github.com/chromedp/chromedp v0.23.0
	github.com/chromedp/cdproto v0.159.0
	github.com/pgagui/pgagui v0.0.0
	github.com/pgagui/pgagui/devpg v0.0.0
	github.com/pgagui/pgagui/server v0.0.0
	github.com/yuin/goldmark v1.8.7
)
