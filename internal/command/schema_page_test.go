package command

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/must"
)

// The commands of the page about schemas do what it says, with the files that it shows, and it names
// no flag that is not there.
func TestPageOfSchemas(t *testing.T) {
	page := string(must.Get(os.ReadFile("../../docs/schema.md"))(t))
	_, help, _ := inWorld(t, strings.NewReader(""), nil, "run", "--help")
	for _, flag := range regexp.MustCompile(`--[a-z][a-z-]+`).FindAllString(page, -1) {
		if !strings.Contains(help, flag) && flag != "--json" {
			t.Errorf("there is no %s", flag)
		}
	}
	t.Chdir(t.TempDir())
	for _, file := range regexp.MustCompile("(?s)`([a-z.]+)`:\n\n```json\n(.*?)```").FindAllStringSubmatch(page, -1) {
		must.Do(t, os.WriteFile(file[1], []byte(file[2]), 0o600))
	}
	codes := []int{0, 1, 0, 1} // as the page says
	said := ""
	for i, line := range regexp.MustCompile(`(?m)^headrace (.*)$`).FindAllStringSubmatch(page, -1) {
		code, out, errors := inWorld(t, strings.NewReader(""), nil, strings.Fields(line[1])...)
		if said += out + errors; code != codes[i] {
			t.Errorf("%s: %d: %s%s", line[1], code, out, errors)
		}
	}
	why := regexp.MustCompile("(?s)does not fit: `(.*?)`").FindStringSubmatch(page)
	for _, want := range []string{strings.ReplaceAll(why[1], "\n", " "), "name,age", "Ada,36"} {
		if !strings.Contains(said, want) {
			t.Errorf("no command says %q:\n%s", want, said)
		}
	}
}
