package cutproxy

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"
)

// connection is a client's connection to the server through the proxy. A goroutine passes on the messages of each side.
type connection struct {
	proxy          *Proxy
	client, server net.Conn

	// What follows belongs to the proxy's mutex.

	statements map[string]string // the texts of the prepared statements, by name
	// aimed says for each request under way whether it has a statement to be cut, the oldest first. A request ends with a
	// ReadyForQuery of the server.
	aimed []bool
	// aiming says it for the request that the client has not ended yet.
	aiming bool
}

// cut closes both sides. A second call does nothing.
func (c *connection) cut() {
	_ = c.client.Close()
	_ = c.server.Close()
}

// passRequests passes on what the client sends.
func (c *connection) passRequests() error {
	client := bufio.NewReader(c.client)
	if err := c.passStartup(client); err != nil {
		return err
	}
	for {
		message, err := readMessage(client)
		if err != nil {
			return err
		}
		if err := c.noteRequest(message); err != nil {
			return err
		}
		if err := c.write(c.server, message); err != nil {
			return err
		}
	}
}

// passStartup passes on the client's first message, which has no type, and refuses encryption before it.
func (c *connection) passStartup(client io.Reader) error {
	const encryptWithTLS, encryptWithGSS = 80877103, 80877104
	for {
		message, err := readSized(client, nil)
		if err != nil {
			return err
		}
		if len(message) < 8 {
			return fmt.Errorf("a first message of %d bytes", len(message))
		}
		switch binary.BigEndian.Uint32(message[4:]) {
		case encryptWithTLS, encryptWithGSS:
			if err := c.write(c.client, []byte("N")); err != nil {
				return err
			}
		default:
			c.proxy.mutex.Lock()
			c.aimed = append(c.aimed, false) // logging in ends as a request does
			c.proxy.mutex.Unlock()
			return c.write(c.server, message)
		}
	}
}

// noteRequest records which statements of a message are to be cut.
func (c *connection) noteRequest(message []byte) error {
	c.proxy.mutex.Lock()
	defer c.proxy.mutex.Unlock()
	kind, body := message[0], message[headerSize:]
	switch kind {
	case 'P': // Parse
		var parse pgproto3.Parse
		if err := parse.Decode(body); err != nil {
			return err
		}
		c.statements[parse.Name] = parse.Query
	case 'B': // Bind
		var bind pgproto3.Bind
		if err := bind.Decode(body); err != nil {
			return err
		}
		c.aimAt(c.statements[bind.PreparedStatement])
	case 'Q': // Query
		var query pgproto3.Query
		if err := query.Decode(body); err != nil {
			return err
		}
		c.aimAt(query.String)
	}
	switch kind {
	case 'Q', 'F', 'S': // Query, FunctionCall, Sync: the server answers them with ReadyForQuery
		c.aimed = append(c.aimed, c.aiming)
		c.aiming = false
	}
	return nil
}

func (c *connection) aimAt(statement string) {
	if c.proxy.cuts > 0 && strings.Contains(statement, c.proxy.aim) {
		c.aiming = true
	}
}

// passAnswers passes on what the server sends, and ends where the connection is to be cut. From the first statement that is
// aimed at to the end of its transaction, answers are held back until the server says how their request ended.
func (c *connection) passAnswers() error {
	server := bufio.NewReader(c.server)
	var held []byte
	var inAim, undone bool
	for {
		message, err := readMessage(server)
		if err != nil {
			return err
		}
		held = append(held, message...)
		inAim = inAim || c.answersAim()
		kind, body := message[0], message[headerSize:]
		switch kind {
		case 'E': // ErrorResponse
			undone = true
		case 'C': // CommandComplete; that of "commit" says so too when the transaction had failed
			undone = string(body) == "ROLLBACK\x00"
		case 'Z': // ReadyForQuery
			c.endRequest()
			if outsideTransaction := string(body) == "I"; outsideTransaction {
				if inAim && !undone && c.proxy.takeCut() {
					return nil
				}
				inAim = false
			}
			undone = false
		}
		if inAim && kind != 'Z' {
			continue
		}
		if err := c.write(c.client, held); err != nil {
			return err
		}
		held = held[:0]
	}
}

// answersAim reports whether the server's messages now answer a request that is aimed at.
func (c *connection) answersAim() bool {
	c.proxy.mutex.Lock()
	defer c.proxy.mutex.Unlock()
	if len(c.aimed) > 0 {
		return c.aimed[0]
	}
	return c.aiming // a long answer begins before the client has ended its request
}

func (c *connection) endRequest() {
	c.proxy.mutex.Lock()
	defer c.proxy.mutex.Unlock()
	if len(c.aimed) > 0 {
		c.aimed = c.aimed[1:]
	}
}

// write passes a message on, once the network does not hang.
func (c *connection) write(side net.Conn, message []byte) error {
	c.proxy.waitUntilReleased(c)
	_, err := side.Write(message) // fails when the connection was cut
	return err
}

// headerSize is that of a message's type and length.
const headerSize = 1 + 4

func readMessage(reader *bufio.Reader) ([]byte, error) {
	kind, err := reader.ReadByte()
	if err != nil {
		return nil, err
	}
	return readSized(reader, []byte{kind})
}

// readSized appends a length and what it counts, itself included.
func readSized(reader io.Reader, message []byte) ([]byte, error) {
	const largest = 1 << 30 // that of PostgreSQL
	var size [4]byte
	if _, err := io.ReadFull(reader, size[:]); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(size[:])
	if length < uint32(len(size)) || length > largest {
		return nil, fmt.Errorf("a message of %d bytes", length)
	}
	message = append(message, size[:]...)
	begin := len(message)
	message = append(message, make([]byte, int(length)-len(size))...)
	_, err := io.ReadFull(reader, message[begin:])
	return message, err
}
