package store

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
)

// writerVariable makes a process of the test's binary a writer in the folder that it names.
const writerVariable = "HEADRACE_STORE_WRITER"

// kills is the number of times that the writer is killed, each time after up to killAfter.
const (
	kills     = 25
	killAfter = 60 * time.Millisecond
)

// wholesome is content that shows whether it is whole, and whose it is.
func wholesome(name string, size int) []byte {
	content := bytes.Repeat([]byte(name+"\n"), size/len(name)+1)
	return fmt.Appendf(content, "%08x", crc32.ChecksumIEEE(content))
}

func isWholesome(name string, content []byte) bool {
	if len(content) < 8 || !bytes.HasPrefix(content, []byte(name+"\n")) {
		return false
	}
	body, sum := content[:len(content)-8], content[len(content)-8:]
	return string(sum) == fmt.Sprintf("%08x", crc32.ChecksumIEEE(body))
}

// write writes objects and a journal until it is killed, and prints what the store confirmed.
func write(root string) {
	ctx, s := context.Background(), newFolder(root, fileMode)
	me := fmt.Sprint(os.Getpid())
	j, err := CreateJournal(ctx, s, "work/1-"+me, JournalConfig{})
	for n := 0; err == nil; n++ {
		name := fmt.Sprintf("parts/%s/%06d", me, n)
		err = CreateBytes(ctx, s, name, wholesome(name, n%9*50_000))
		if err == nil {
			err = j.Write(ctx, []byte(name))
		}
		if err == nil {
			err = j.Sync(ctx)
		}
		fmt.Println(name)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// A writer that is killed at any moment leaves no part under a name that is not whole. Everything that the
// store confirmed is there.
func TestKilledWriters(t *testing.T) {
	root, chance := t.TempDir(), rand.New(rand.NewPCG(11, 12))
	said := map[string]bool{}
	for range kills {
		for _, name := range killed(t, root, time.Duration(chance.Int64N(int64(killAfter)))) {
			said[name] = true
		}
	}
	f := newFolder(root, fileMode)
	there := 0
	for o, err := range f.List(t.Context(), "parts/", "") {
		if err != nil {
			t.Fatal(err)
		}
		content, err := ReadAll(t.Context(), f, o.Name, 1<<20)
		if err != nil || !isWholesome(o.Name, content) || int64(len(content)) != o.Size {
			t.Errorf("%s: %d bytes are not whole, %v", o.Name, len(content), err)
		}
		delete(said, o.Name)
		there++
	}
	for name := range said {
		t.Errorf("%s was said to be there", name)
	}
	left := len(temporaries(t, f))
	t.Logf("%d objects by %d writers; %d temporary files were left", there, kills, left)
	if there == 0 || left == 0 {
		t.Error("nobody was killed while he wrote: this shows nothing")
	}
	journaled(t, f)
}

// killed returns one writer's output before it was killed.
func killed(t *testing.T, root string, after time.Duration) []string {
	t.Helper()
	self := must.Get(os.Executable())(t)
	child := exec.Command(self)
	child.Env = append(os.Environ(), writerVariable+"="+root)
	var complaint strings.Builder
	child.Stderr = &complaint
	out := must.Get(child.StdoutPipe())(t)
	must.Do(t, child.Start())
	lines := bufio.NewReader(out)
	first, err := lines.ReadString('\n') // from now on it writes
	if err != nil {
		t.Errorf("%v: %s", err, complaint.String())
	}
	time.AfterFunc(after, func() { _ = child.Process.Kill() })
	rest, err := io.ReadAll(lines)
	if err != nil {
		t.Error(err)
	}
	_ = child.Wait()
	said := strings.SplitAfter(first+string(rest), "\n")
	var whole []string
	for _, line := range said {
		if name, ok := strings.CutSuffix(line, "\n"); ok {
			whole = append(whole, name)
		}
	}
	return whole
}

// temporaries returns the names in the folder that no list reads.
func temporaries(t testing.TB, f *folder) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(f.root, tempFolder))
	if err != nil && !isAbsent(err) {
		t.Fatal(err)
	}
	var found []string
	for _, e := range entries {
		found = append(found, e.Name())
	}
	return found
}

// journaled compares the journals with the objects: a line that was synced is read, and one that was
// torn is not.
func journaled(t *testing.T, f *folder) {
	t.Helper()
	for name, err := range Journals(t.Context(), f, "work/") {
		if err != nil {
			t.Fatal(err)
		}
		writer := strings.TrimPrefix(name, "work/1-")
		n := 0
		for line, err := range ReadJournal(t.Context(), f, name) {
			if err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprintf("parts/%s/%06d", writer, n); string(line) != want {
				t.Errorf("%s: line %q, not %q", name, line, want)
			}
			n++
		}
		objects := 0
		for range f.List(t.Context(), "parts/"+writer+"/", "") {
			objects++
		}
		if n > objects || n < objects-1 {
			t.Errorf("%s has %d lines for %d objects", name, n, objects)
		}
	}
}
