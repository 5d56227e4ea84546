package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// Open opens a file and returns its name for error messages. The name - means stdin, which stays
// open.
func (p *Program) Open(name string) (content io.ReadCloser, called string, err error) {
	if name == "-" {
		return io.NopCloser(p.In), "stdin", nil
	}
	file, err := os.Open(name)
	return file, name, err
}

// Confirm asks for confirmation on the terminal. Without a terminal it returns an error. otherwise
// says what did not happen then.
func (p *Program) Confirm(command *cobra.Command, otherwise string) error {
	if TerminalOf(p.In) == nil {
		return WrongUsage(command, otherwise+": the command needs a confirmation (without a terminal, use --yes)")
	}
	fmt.Fprint(p.Messages, "Type yes to continue: ")
	answer, err := bufio.NewReader(p.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if strings.TrimSpace(answer) != "yes" {
		return WrongUsage(command, otherwise+": the answer was not yes")
	}
	return nil
}
