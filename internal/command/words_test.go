package command

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/must"
)

// innerPackages are the names of all packages of this module but the examples: what begins the errors of
// one tells a person nothing. The provider's name does: it is who has said something.
func innerPackages(t *testing.T) (names []string) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if name := d.Name(); name == "testdata" || name == "examples" || path != root && strings.HasPrefix(name, ".") {
			return filepath.SkipDir
		}
		if files, _ := filepath.Glob(filepath.Join(path, "*.go")); len(files) > 0 && d.Name() != settings.ProviderOpenAI && d.Name() != "headrace" {
			names = append(names, d.Name())
		}
		return nil
	})
	if err != nil || !slices.Contains(names, "journal") || !slices.Contains(names, "promptfile") || !slices.Contains(names, "disk") {
		t.Fatalf("%v, %v", names, err)
	}
	return names
}

// innerPrefix finds where a text has the prefix of an inner package: at its beginning, or
// behind what another package has put before it.
func innerPrefix(t *testing.T) *regexp.Regexp {
	t.Helper()
	return regexp.MustCompile(`(?m)(?:^|: |; |\(|^headrace: )(?:` + strings.Join(innerPackages(t), "|") + `): `)
}

// prefixed matches an error that begins with the name of its package.
var prefixed = regexp.MustCompile(`(?:errors\.New|Errorf)\("([a-z]+): `)

// Every package whose name begins an error is one that people are not shown.
func TestEveryPackagesNameIsTakenOut(t *testing.T) {
	inner, found := innerPackages(t), map[string]bool{}
	for _, folder := range []string{"batch", "coordinator", "limiter", "provider", "internal"} {
		must.Do(t, filepath.WalkDir(filepath.Join("..", "..", folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range prefixed.FindAllStringSubmatch(string(text), -1) {
				found[m[1]] = found[m[1]] || slices.Contains(inner, m[1])
			}
			return err
		}))
	}
	if !found["journal"] || !found["saver"] || !found["batch"] {
		t.Errorf("found %v", found)
	}
	for name, is := range found {
		if got := exit.WithoutPackages(name + ": why"); is && got != "why" {
			t.Errorf("%s is shown: %q", name, got)
		}
	}
}

// The name of a package is taken out wherever another has put something before it, and
// words that only look like one are not.
func TestPackagesWithin(t *testing.T) {
	for text, want := range map[string]string{
		"saver: write e.jsonl: journal: create e.jsonl: disk: no room": "write e.jsonl: create e.jsonl: no room",
		"promptfile: journal: one":                                     "one",
		"it (machine: stopped; batch: drained)":                        "it (stopped; drained)",
		"open journal: it is a directory":                              "open journal: it is a directory",
		"openai: invalid: 400: my batch: empty":                        "openai: invalid: 400: my batch: empty",
	} {
		two := errors.Join(errors.New(text), errors.New(text))
		if got := exit.PlainText(two); got != want+"\n"+want {
			t.Errorf("%q, want %q twice", got, want)
		}
	}
}

// What cannot be written in the middle of a run is said without packages, and once.
func TestAFolderThatVanishes(t *testing.T) {
	inner := innerPrefix(t)
	t.Chdir(t.TempDir())
	must.Do(t, os.Mkdir("gone", 0o700))
	base := serverOf(t, func(w http.ResponseWriter, r *http.Request) {
		_ = os.RemoveAll("gone")
		says(400, "application/json", `{"error":{"message":"too long"}}`)(w, r)
	})
	code, _, errs := inWorld(t, strings.NewReader(`{"prompt":"a","id":"a"}`), nil,
		"run", "-", "-o", "o.jsonl", "--errors", "gone/e.jsonl", "--base-url", base, "--model", "m", "--progress", "none")
	if code != exit.Output || inner.MatchString(errs) || !strings.Contains(errs, "headrace: create gone/e.jsonl: no such file or directory: 1 result is not saved: a\n") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// A mistake is one that a new user makes, and what is said of it.
type mistake struct {
	args string // without --provider sim, which each has
	says []string
	not  []string
}

// mistakes are what a new user types. The files are those of writeMistakes.
var mistakes = map[string]mistake{
	"text read as JSONL":   {args: "run p.txt -o x.jsonl", says: []string{"p.txt is read as JSONL, one object a line: --format text reads each line as a prompt, --format csv each row as an item"}},
	"one line of text":     {args: "run one.txt -o x.jsonl", says: []string{"--format text reads"}},
	"table read as JSONL":  {args: "run p.tsv -o x.jsonl", says: []string{"p.tsv is read as JSONL", "--format csv"}},
	"csv read as JSONL":    {args: "run good.csv -o x.jsonl --format jsonl", says: []string{"good.csv is read as JSONL", "--format csv"}},
	"one bad line":         {args: "run bad.jsonl -o x.jsonl", says: []string{"1 bad line in bad.jsonl"}, not: []string{"--format"}},
	"an array":             {args: "run array.json -o x.jsonl", says: []string{"array.json:1: an array, not an object: write one object a line"}, not: []string{"--format"}},
	"no column prompt":     {args: "run p.csv -o x.jsonl", says: []string{"headrace: p.csv:1: the header cannot be used: no column is named prompt; the columns are name, text: rename one, or make prompts with a template"}},
	"template, no column":  {args: "run p.csv -o x.jsonl --template {{.txt}}", says: []string{"p.csv:2: the template asks for {{.txt}}, but the columns are name, text"}},
	"template, not parsed": {args: "run p.csv -o x.jsonl --template {{.txt", says: []string{"headrace: --template: unclosed action: write fields as in {{.text}}"}},
	"input is not there":   {args: "run none.jsonl -o x.jsonl", says: []string{"headrace: none.jsonl: there is no such file: check the name of the input"}},
	"input is a folder":    {args: "run folder -o x.jsonl", says: []string{"headrace: folder: it is a directory: name a prompt file in it"}},
	"output is a folder":   {args: "run p.jsonl -o folder", says: []string{"folder: it is a directory: name a file in it"}},
	"output in no folder":  {args: "run p.jsonl -o none/x.jsonl", says: []string{"headrace: none/x.jsonl: there is no folder none: create it first, or choose another"}},
	"errors in no folder":  {args: "run p.jsonl -o x.jsonl --errors none/e.jsonl", says: []string{"headrace: none/e.jsonl: there is no folder none: create it first, or choose another"}},
	"output is the input":  {args: "run p.jsonl -o p.jsonl", says: []string{"headrace: the output is the input, p.jsonl: choose another file"}},
	"by a hard link":       {args: "run p.jsonl -o hard.jsonl", says: []string{"headrace: the output, hard.jsonl, is the input, p.jsonl: choose another file"}},
	"errors is the output": {args: "run p.jsonl -o x.jsonl --errors x.jsonl", says: []string{"headrace: the errors file is the output, x.jsonl: choose another file"}},
	"output is notes":      {args: "run p.jsonl -o p.txt", says: []string{"p.txt: it is not a result file of headrace: move it away, or choose another file"}},
	"first line damaged":   {args: "run p.jsonl -o damaged.jsonl", says: []string{"damaged.jsonl: line 1: the line is damaged: headrace repair keeps the good ones"}},
	"status of notes":      {args: "status p.txt", says: []string{"p.txt: it is not a result file of headrace"}},
	"status of a folder":   {args: "status folder", says: []string{"folder: it is a directory: name a file in it"}},
	"status of two":        {args: "status a.jsonl b.jsonl", says: []string{"headrace: status takes one output: see headrace status --help"}},
	"repair of none":       {args: "repair", says: []string{"headrace: repair takes one output: see headrace repair --help"}},
	"prices of two":        {args: "prices a b", says: []string{"headrace: prices takes one model: see headrace prices --help"}},
	"repair of notes":      {args: "repair p.txt", says: []string{"p.txt: it is not a result file of headrace"}},
	"repair of a ruin":     {args: "repair ruin.jsonl", says: []string{"ruin.jsonl: it has no good line left: restore it from a copy, or start over with --fresh, which keeps it"}},
	"plan of a text":       {args: "plan p.txt --model m", says: []string{"p.txt is read as JSONL, one object a line: --format text reads"}},
	"plan of nothing":      {args: "plan none.jsonl --model m", says: []string{"headrace: none.jsonl: there is no such file: check the name of the input"}},
	"plan, limit":          {args: "plan p.jsonl --model m --rpm -1", says: []string{"headrace: --rpm: -1 is not a limit: want a number of 0 or more; 0 means not known"}},
	"packed and cut":       {args: "run cut.jsonl.gz -o x.jsonl", says: []string{"headrace: read cut.jsonl.gz after line 0: the gzip data (unexpected EOF) is cut short or corrupt"}},
	"flag misspelt":        {args: "run p.jsonl -o x.jsonl --modell m", says: []string{"headrace: unknown flag: --modell: did you mean --model? see headrace run --help"}},
	"flag of run":          {args: "plan p.jsonl -o x.jsonl", says: []string{"headrace: unknown flag: -o: headrace plan does without that flag of headrace run: leave it out"}},
	"long flag of run":     {args: "plan p.jsonl --pilot 5", says: []string{"headrace: unknown flag: --pilot: headrace plan does without that flag of headrace run: leave it out"}},
	"text of PowerShell":   {args: "run wide.jsonl -o x.jsonl --model m --provider sim", says: []string{"it seems to be UTF-16, as PowerShell's > writes it: iconv -f UTF-16 -t UTF-8 wide.jsonl makes UTF-8 of it"}},
	"mark in the settings": {args: "run p.jsonl -o x.jsonl --config mark.yaml", says: []string{`mark.yaml:1: rpm: "lots" is not a number`}},
	"flag far off":         {args: "run p.jsonl -o x.jsonl --verbatim", says: []string{"headrace: unknown flag: --verbatim: see headrace run --help"}},
	"flag without value":   {args: "run p.jsonl -o x.jsonl -c", says: []string{"headrace: --concurrency needs a whole number: see headrace run --help"}},
	"word without value":   {args: "run p.jsonl -o x.jsonl --model", says: []string{"headrace: --model needs a value: see headrace run --help"}},
	"negative limit":       {args: "run p.jsonl -o x.jsonl --tpm -1", says: []string{"headrace: --tpm: -1 is not a limit: want a number of 0 or more; 0 learns it"}, not: []string{"--rpm"}},
	"burst too long":       {args: "run p.jsonl -o x.jsonl --burst 2m", says: []string{"headrace: --burst: 2m0s is too large: at most 1m0s"}},
	"command misspelt":     {args: "rnu p.jsonl", says: []string{`headrace: unknown command "rnu": did you mean run? see headrace --help`}},
	"command forgotten":    {args: "p.jsonl -o x.jsonl", says: []string{`headrace: unknown command "p.jsonl": to run that file: headrace run p.jsonl -o results.jsonl`}},
	"no such command":      {args: "walk", says: []string{`headrace: unknown command "walk": see headrace --help`}},
	"no such topic":        {args: "help walk", says: []string{`headrace: unknown command "walk": see headrace --help`}},
	"config is not there":  {args: "run p.jsonl -o x.jsonl --config none.yaml", says: []string{"headrace: --config: none.yaml: there is no such file: check the name"}},
	"config is a folder":   {args: "run p.jsonl -o x.jsonl --config folder", says: []string{"headrace: --config: folder: it is a directory: name a YAML file of flags"}},
	"config with a slip":   {args: "run p.jsonl -o x.jsonl --config slip.yaml", says: []string{`headrace: slip.yaml:1: unknown setting "modell": did you mean model?`, `headrace: slip.yaml:2: rpm: "lots" is not a number`}},
	"simulated on real":    {args: "run p.jsonl -o real.jsonl", says: []string{"real.jsonl: its answers are not simulated, but this run's are: start over with --fresh"}},
	"address taken":        {args: "sim --addr 127.0.0.1:99999", says: []string{"127.0.0.1:99999: invalid port: name another with --addr"}, not: []string{"listen tcp"}},
	"address is public":    {args: "sim --addr 8.8.8.8:80", says: []string{"8.8.8.8:80: not a loopback address: the simulator listens on this machine only: use --addr 127.0.0.1:PORT"}},
}

// writeMistakes makes what the mistakes are made with.
func writeMistakes(t *testing.T, realLine string) {
	t.Helper()
	ruin := realLine[:50] + "\x00" + realLine[51:]
	for name, text := range map[string]string{
		"p.jsonl": `{"prompt":"a","id":"a"}` + "\n", "p.txt": "hello there\nand again\n", "one.txt": "hello\n", "p.tsv": "prompt\tid\na\tb\n",
		"bad.jsonl": "{\"prompt\":\n", "array.json": `[{"prompt":"a"}]`, "p.csv": "name,text\nx,y\n", "good.csv": "prompt,id\na,b\n",
		"cut.jsonl.gz": "\x1f\x8b\x08", "wide.jsonl": "\xff\xfe{\x00}\x00\n\x00", "slip.yaml": "modell: m\nrpm: lots\n", "mark.yaml": "\ufeffrpm: lots\r\n",
		"real.jsonl": realLine, "damaged.jsonl": "\n" + realLine, "ruin.jsonl": ruin,
	} {
		must.Do(t, os.WriteFile(name, []byte(text), 0o600))
	}
	must.Do(t, os.Mkdir("folder", 0o700))
	if err := os.Link("p.jsonl", "hard.jsonl"); err != nil {
		t.Skip(err)
	}
}

// What a new user does wrong is said in words that help: by the user's own names, once,
// and without the name of a package.
func TestMistakes(t *testing.T) {
	inner := innerPrefix(t)
	line := lineOfARealRun(t)
	t.Chdir(t.TempDir())
	writeMistakes(t, line)
	for name, m := range mistakes {
		t.Run(name, func(t *testing.T) {
			args := strings.Fields(m.args)
			if args[0] == "run" {
				args = append(args[:1:1], append([]string{"--provider", "sim", "--sim-profile", "fast"}, args[1:]...)...)
			}
			code, _, errs := inWorld(t, nil, nil, args...)
			if code != exit.Usage {
				t.Errorf("exit code %d", code)
			}
			for _, want := range m.says {
				if !strings.Contains(errs, want) {
					t.Errorf("%q is not in\n%s", want, errs)
				}
			}
			for _, not := range m.not {
				if strings.Contains(errs, not) {
					t.Errorf("%q is in\n%s", not, errs)
				}
			}
			if found := inner.FindString(errs); found != "" {
				t.Errorf("an inner package, %q, shows:\n%s", found, errs)
			}
			if _, err := os.Stat("x.jsonl"); err == nil {
				t.Error("an output was made")
			}
		})
	}
}

// serverOf serves calls, and gives its base URL.
func serverOf(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server.URL + "/v1"
}

// An input that may not be read is said with what may be done.
func TestUnreadableInput(t *testing.T) {
	err := fmt.Errorf("promptfile: %w: %w", &fs.PathError{Op: "open", Path: "p.jsonl", Err: fs.ErrPermission}, promptfile.ErrInput)
	if got := settings.InputFault("p.jsonl", err).Error(); got != "p.jsonl: permission denied: check the permissions of the input" {
		t.Error(got)
	}
}

// lineOfARealRun is a line of an output that says that it is not simulated.
func lineOfARealRun(t *testing.T) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.jsonl")
	base := serverOf(t, says(200, "application/json", goodAnswer))
	code, _, errs := inWorld(t, strings.NewReader(`{"prompt":"hi","id":"a"}`), nil, "run", "-", "-o", out, "--base-url", base, "--model", "m")
	text, err := os.ReadFile(out)
	if code != exit.OK || err != nil {
		t.Fatal(code, errs, err)
	}
	return string(text)
}

// What stops a run is said without the name of a package too, on the terminal and in the
// errors file.
func TestStopsAreSaidInWords(t *testing.T) {
	inner := innerPrefix(t)
	t.Chdir(t.TempDir())
	must.Do(t, os.WriteFile("p.jsonl", []byte("{\"prompt\":\"a\",\"id\":\"a\"}\n{\"prompt\":\"b\",\"id\":\"b\"}\n"), 0o600))
	for kind, says := range map[string]string{
		"html": "the address answers, but is not the API", "empty": "the address answers, but is not the API", "shape": "no upstream", "fails": "the model did not load",
		"hangs": "raise --timeout", "closed": "nobody listens there", "elsewhere": "try https://", "wait": "wait until then",
	} {
		t.Run(kind, func(t *testing.T) {
			base := "http://127.0.0.1:1/v1" // nobody listens there
			if answer := wrongAnswers[kind]; answer != nil {
				base = serverOf(t, answer())
			}
			var shown strings.Builder
			for _, how := range []string{"plain", "json", "none"} {
				_, _, errs := inWorld(t, nil, nil, "run", "p.jsonl", "-o", kind+".jsonl", "--model", "m", "--base-url", base, "--progress", how, "--log-level", "info",
					"--max-attempts", "1", "--timeout", "300ms", "--first-answer", "1s", "--fresh", "--forget", "--item-timeout", "3s")
				shown.WriteString(errs)
			}
			failed, _ := os.ReadFile(kind + ".errors.jsonl")
			text := shown.String() + string(failed)
			if found := inner.FindString(strings.NewReplacer(`"message":"`, "\n", `error="`, "\n").Replace(text)); found != "" {
				t.Errorf("an inner package, %q, shows:\n%s", found, text)
			}
			if !strings.Contains(text, says) {
				t.Errorf("%q is not in\n%s", says, text)
			}
		})
	}
}

// A text on standard input names --format too, once, and so does one whose bad lines are
// skipped.
func TestTextOnStandardInputNamesFormat(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, how := range []string{"fail", "skip"} {
		_, _, errs := inWorld(t, strings.NewReader("hello\nthere\n"), nil, "run", "-", "-o", how+".jsonl", "--provider", "sim", "--progress", "plain", "--on-bad-line", how)
		if strings.Count(errs, "standard input is read as JSONL, one object a line: --format text reads") != 1 {
			t.Errorf("%s: %s", how, errs)
		}
	}
}

// That something failed for good says how it is asked once more, unless it just was.
func TestWhatFailedCanBeAskedOnceMore(t *testing.T) {
	t.Chdir(t.TempDir())
	base := serverOf(t, says(400, "application/json", `{"error":{"message":"too long"}}`))
	for n, args := range [][]string{{"-o", "o.jsonl"}, {"-o", "o.jsonl"}, {"-o", "o.jsonl", "--retry-failed"}, {"-o", "-"}} {
		args = append([]string{"run", "-", "--base-url", base, "--model", "m", "--progress", "none"}, args...)
		code, _, errs := inWorld(t, strings.NewReader(`{"prompt":"a","id":"a"}`), nil, args...)
		if said := strings.Contains(errs, "\nheadrace: retry them with the same command and --retry-failed\n"); code != exit.ItemsFailed || said != (n < 2) {
			t.Errorf("%v: exit code %d: %s", args, code, errs)
		}
	}
}

// Where the results are, and how to read them, are the last words of a run that went well;
// one with nothing to do has no figures.
func TestResultsAndHowToReadThem(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		t.Helper()
		must.Do(t, os.WriteFile(name, []byte(text), 0o600))
	}
	write("p.jsonl", `{"prompt":"a","id":"a"}`+"\n")
	write("e.jsonl", `{"url":"/v1/embeddings","body":{"model":"e","input":"a"}}`+"\n")
	write("both.jsonl", `{"url":"/v1/embeddings","body":{"model":"e","input":"a"}}`+"\n"+`{"prompt":"a","id":"a"}`+"\n")
	write("none.jsonl", "\n")
	sim := func(args ...string) string {
		t.Helper()
		code, _, errs := inWorld(t, strings.NewReader(""), nil, append([]string{"run", "--provider", "sim", "--sim-profile", "fast", "--progress", "plain"}, args...)...)
		if code != exit.OK {
			t.Errorf("%v: exit code %d: %s", args, code, errs)
		}
		return errs
	}
	for input, read := range map[string]string{
		"p.jsonl":    `jq -c '[.custom_id, .response.body.choices[0].message.content]' 'a result.jsonl'`,
		"e.jsonl":    `jq -c '[.custom_id, .response.body.data[0].embedding]' 'a result.jsonl'`,
		"both.jsonl": `jq -c '[.custom_id, .response.body]' 'a result.jsonl'`,
	} {
		got := sim(input, "-o", "a result.jsonl", "--fresh")
		if want := "\nresults        a result.jsonl; to read them:\n  " + read + "\n"; !strings.HasSuffix(got, want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	sim("p.jsonl", "-o", "r.jsonl")
	for _, c := range []struct{ input, output, says string }{
		{"p.jsonl", "r.jsonl", "headrace: resuming: of 1 item, 1 is in r.jsonl already: 0 to do\n"},
		{"none.jsonl", "n.jsonl", "headrace: none.jsonl has no items: nothing to do\n"},
		{"-", "s.jsonl", "headrace: the input has no items: nothing to do\n"},
	} {
		if got := sim(c.input, "-o", c.output); !strings.HasSuffix(got, c.says) || strings.Contains(got, "\nitems ") {
			t.Errorf("%s: %s", c.input, got)
		}
	}
	if got := sim("p.jsonl", "-o", "-"); strings.Contains(got, "to read them") {
		t.Errorf("of standard output: %s", got)
	}
}

// A run that has not all of its results has no other last word than how it goes on.
func TestNothingToReadBeforeTheEnd(t *testing.T) {
	t.Chdir(t.TempDir())
	must.Do(t, os.WriteFile("p.jsonl", []byte(strings.Repeat("{\"prompt\":\"a\"}\n", 20)), 0o600))
	var calls atomic.Int64
	base := serverOf(t, func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) > 3 {
			says(429, "application/json", `{"error":{"code":"insufficient_quota"}}`)(w, r)
			return
		}
		says(200, "application/json", goodAnswer)(w, r)
	})
	code, _, errs := inWorld(t, nil, nil, "run", "p.jsonl", "-o", "o.jsonl", "--base-url", base, "--model", "m", "-c", "1", "--progress", "plain")
	if code != exit.Stopped || strings.Contains(errs, "to read them") || !strings.Contains(errs, "\nresults        o.jsonl\n") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
