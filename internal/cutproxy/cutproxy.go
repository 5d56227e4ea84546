// Package cutproxy is a bad network between a test and its database: a proxy that cuts connections at chosen moments,
// refuses new ones, or hangs.
package cutproxy

import (
	"errors"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Proxy stands in front of one server. Its methods may be called at any time, from several goroutines.
type Proxy struct {
	url      string
	network  string // tcp or unix, of the server
	server   string // its address
	listener net.Listener
	running  sync.WaitGroup // the goroutines of the proxy

	mutex       sync.Mutex
	changed     *sync.Cond // held or connections have changed
	connections map[*connection]struct{}
	refusing    bool
	held        bool
	cuts        int    // still to be made by CutBeforeAnswer
	aim         string // what the statements to be cut contain
}

// Start starts a proxy in front of the database, without encryption on the way. It ends with the test.
func Start(t testing.TB, databaseURL string) *Proxy {
	t.Helper()
	database, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		t.Fatal("cutproxy:", err)
	}
	address, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal("cutproxy:", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal("cutproxy:", err)
	}
	address.Host = listener.Addr().String()
	parameters := address.Query()
	parameters.Set("sslmode", "disable")                                   // the proxy has to read what it passes on
	address.RawQuery = strings.ReplaceAll(parameters.Encode(), "+", "%20") // PostgreSQL's addresses know no other space

	proxy := &Proxy{url: address.String(), listener: listener, connections: make(map[*connection]struct{})}
	proxy.network, proxy.server = pgconn.NetworkAddress(database.Host, database.Port)
	proxy.changed = sync.NewCond(&proxy.mutex)
	proxy.running.Go(func() { proxy.accept(t) })
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error("cutproxy:", err)
		}
		proxy.Refuse(true) // those accepted in the meantime
		proxy.CutNow()
		proxy.running.Wait()
	})
	return proxy
}

// URL is the address of the database through the proxy.
func (p *Proxy) URL() string {
	return p.url
}

// CutBeforeAnswer cuts connections that have just committed: of the next n transactions with a statement that contains the
// text, the server executes and commits each, and its connection is cut before the client has got a byte of the answer to the
// commit. A statement outside a transaction is a transaction of its own. One that fails or is rolled back is answered, and
// not counted. The empty text is in every statement. A new call replaces the one before; n = 0 ends it.
func (p *Proxy) CutBeforeAnswer(n int, text string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.cuts, p.aim = n, text
}

// CutsLeft returns the number of cuts of CutBeforeAnswer that are yet to be made.
func (p *Proxy) CutsLeft() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.cuts
}

// CutNow cuts all connections, in whatever they are doing.
func (p *Proxy) CutNow() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for open := range p.connections {
		open.cut()
	}
	clear(p.connections)
	p.changed.Broadcast()
}

// Refuse lets no new connection through as long as it is true: the client's attempt fails at once.
func (p *Proxy) Refuse(refuse bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.refusing = refuse
}

// Hold lets the network hang: what either side sends from now on is accepted and not passed on, until Release. New connections
// hang too.
func (p *Proxy) Hold() { p.setHeld(true) }

// Release passes on what Hold held back.
func (p *Proxy) Release() { p.setHeld(false) }

func (p *Proxy) setHeld(held bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.held = held
	p.changed.Broadcast()
}

// accept serves clients until the listener is closed.
func (p *Proxy) accept(t testing.TB) {
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			t.Error("cutproxy:", err)
			return
		}
		server, err := net.Dial(p.network, p.server)
		if err != nil {
			_ = client.Close() // to the client this server is down
			continue
		}
		opened := &connection{proxy: p, client: client, server: server, statements: make(map[string]string)}
		if !p.add(opened) {
			opened.cut()
			continue
		}
		for _, pass := range []func() error{opened.passRequests, opened.passAnswers} {
			p.running.Go(func() {
				_ = pass()                  // the only possible error is that one side has closed
				p.waitUntilReleased(opened) // a network that hangs does not tell the other side
				p.remove(opened)
			})
		}
	}
}

func (p *Proxy) add(opened *connection) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.refusing {
		return false
	}
	p.connections[opened] = struct{}{}
	return true
}

func (p *Proxy) remove(ended *connection) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	ended.cut()
	delete(p.connections, ended)
	p.changed.Broadcast()
}

// takeCut reports whether a connection that has committed is to be cut now, and counts it.
func (p *Proxy) takeCut() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.cuts == 0 {
		return false
	}
	p.cuts--
	return true
}

// waitUntilReleased returns when the network does not hang, or the connection was cut.
func (p *Proxy) waitUntilReleased(waiting *connection) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for p.held && p.isOpen(waiting) {
		p.changed.Wait()
	}
}

func (p *Proxy) isOpen(c *connection) bool {
	_, open := p.connections[c]
	return open
}
