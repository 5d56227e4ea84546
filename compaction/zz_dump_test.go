package compaction

import ("testing";"os";"bufio";"fmt";"strconv"
"github.com/pgagui/pgagui/compaction/compactiontest")

func TestDump(t *testing.T) {
	out := os.Getenv("DUMP"); if out == "" { t.Skip() }
	file, _ := os.Create(out); w := bufio.NewWriter(file)
	n, _ := strconv.Atoi(os.Getenv("N")); from, _ := strconv.Atoi(os.Getenv("FROM"))
	valid := os.Getenv("VALID") != ""; unicode := os.Getenv("UNICODE") != ""
	for seed := from; seed < from+n; seed++ {
		events := compactiontest.Stream(uint64(seed), compactiontest.Options{Wild: !valid, Unicode: unicode, Proposals: os.Getenv("PROPOSALS") != "", Numbers: os.Getenv("NUMBERS") != ""})
		f := New()
		batch := compactiontest.Batch(events)
		if err := f.ApplyBatch(batch); err != nil { t.Fatal(seed, err, string(batch)) }
		fmt.Fprintf(w, `{"seed":%d,"valid":%v,"events":`, seed, valid)
		c := []byte{}
		for _, b := range batch { if b == '\n' || b == '\t' { b = ' ' }; c = append(c, b) }
		w.Write(c)
		fmt.Fprint(w, `,"messages":[`)
		for i, m := range f.Messages() { if i > 0 { w.WriteByte(',') }; for _, b := range m.Body() { if b == '\n' || b == '\t' { b = ' ' }; w.WriteByte(b) } 
			if m.Size() < len(written(m.content())) { t.Fatal("size") } }
		fmt.Fprintf(w, `],"state":`)
		for _, b := range f.State() { if b == '\n' || b == '\t' { b = ' ' }; w.WriteByte(b) }
		fmt.Fprintf(w, `,"interrupts":`)
		for _, b := range f.Interrupts() { if b == '\n' || b == '\t' { b = ' ' }; w.WriteByte(b) }
		fmt.Fprintln(w, `}`)
	}
	w.Flush(); file.Close()
}
