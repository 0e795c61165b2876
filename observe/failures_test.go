package observe

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/provider"
)

// What differs from item to item is taken out, and what a person needs is left.
func TestFingerprint(t *testing.T) {
	for message, want := range map[string]string{
		"": "",
		"This model's maximum context length is 8192 tokens. However, your messages resulted in 9,001 tokens.": "This model's maximum context length is … tokens. However, your messages resulted in …,… tokens.",
		`Invalid value: 'abc'. Supported values are: "a", 'b c'`:                                               "Invalid value: …. Supported values are: …, …",
		"The model `gpt-x` does not exist":                                                                     "The model … does not exist",
		"gpt-4o-mini is busy":                                                                                  "gpt-…o-mini is busy",
		"request req_8f3a9c1b22 failed":                                                                        "request … failed",
		"id 3f9a1c2b-77aa-4e2d-9f00-0123456789ab":                                                              "id …",
		"don't, can't: it's the users' own":                                                                    "don't, can't: it's the users' own",
		`cut off: "and the rest was never s`:                                                                   "cut off: …",
		"“so” and «so» and ‘so’":                                                                               "… and … and …",
		"٣٤ was refused":                                                                                       "… was refused",
		"2026-11-21T15:16:00Z":                                                                                 "…:…:…",
		"日本語 12 です":                                                                                            "日本語 … です",
	} {
		if got := fingerprint(message); got != want {
			t.Errorf("%q\n got %q\nwant %q", message, got, want)
		}
	}
}

// A fingerprint is no longer than its message, without digits, its own fingerprint, and the
// same for messages that differ in digits only.
func FuzzFingerprint(f *testing.F) {
	for _, s := range []string{"", "a 1", `"`, "'x' y's", "‘", "req_12 'a'b' \xff", "…1…", "a\n\x1b[31mb", strings.Repeat("9x", 300)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		line := oneLine(s)
		if n := utf8.RuneCountInString(line); n > maxMessage || !utf8.ValidString(line) || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Fatalf("%q is no line: %q", s, line)
		}
		got := fingerprint(line)
		if utf8.RuneCountInString(got) > utf8.RuneCountInString(line) || strings.ContainsFunc(got, unicode.IsNumber) || !utf8.ValidString(got) {
			t.Fatalf("%q: %q", line, got)
		}
		if again := fingerprint(got); again != got {
			t.Fatalf("%q: %q: %q", line, got, again)
		}
		other := strings.Map(func(r rune) rune {
			if unicode.IsNumber(r) {
				return '7'
			}
			return r
		}, line)
		if fingerprint(other) != got {
			t.Fatalf("%q: %q\n%q: %q", line, got, other, fingerprint(other))
		}
		fingerprint(s) // whatever it is
	})
}

// At most MaxFailures ways are listed one by one, with MaxExamples each; the rest are counted.
func TestFailuresAreBounded(t *testing.T) {
	rec := New(Config{
		Redact:   func(s string) string { return strings.ReplaceAll(s, "sk-secret", "[key]") },
		Describe: func(in any) (string, int) { return "id-" + *in.(*string), 7 },
	})
	for k := range 50 {
		word := strings.Repeat("x", k+1)
		for range k + 1 {
			rec.countEnd(&batch.End{In: &word, Err: &provider.Error{Kind: provider.Invalid, Status: 400, Message: "sk-secret " + word + strings.Repeat(" long", 100)}})
		}
	}
	list := rec.Snapshot(start).Failures
	if len(list) != MaxFailures+1 {
		t.Fatalf("%d ways", len(list))
	}
	total := 0
	for k, f := range list[:MaxFailures] {
		total += f.Count
		if f.Count != MaxFailures-k || len(f.Examples) != min(f.Count, MaxExamples) || f.Kind != "invalid" || f.Code != "400" {
			t.Errorf("%d: %+v", k, f)
		}
		for _, e := range f.Examples {
			if !strings.HasPrefix(e.Message, "[key] x") || utf8.RuneCountInString(e.Message) > 200 || !strings.HasPrefix(e.ID, "id-x") || e.Line != 7 {
				t.Errorf("%+v", e)
			}
		}
	}
	if rest := list[MaxFailures]; rest.Kind != OtherFailures || total+rest.Count != 50*51/2 || len(rest.Examples) != 0 {
		t.Errorf("%+v", rest)
	}
}

// A failure is called by its kind and its status, or what else is known of it.
func TestCodes(t *testing.T) {
	rec := New(Config{})
	for want, err := range map[string]error{
		"invalid 400":            fmt.Errorf("wrapped: %w", &provider.Error{Kind: provider.Invalid, Status: 400, Code: "context_length_exceeded"}),
		"refused content_filter": &provider.Error{Kind: provider.Refused, Code: "content_filter"},
		"unknown ":               errors.New("plain"),
		"timeout ":               fmt.Errorf("mine: %w", provider.Timeout),
		"panic ":                 &batch.PanicError{Value: 3},
	} {
		if kind, code := rec.code(err); kind+" "+code != want {
			t.Errorf("%v is %q %q, want %q", err, kind, code, want)
		}
	}
	if text := rec.message(&batch.PanicError{Value: "boom", Stack: []byte("stack")}); text != "panic: boom" {
		t.Error(text)
	}
}

// A secret is not cut in two where a message is: half of it would not be known for one.
func TestSecretsAreNotCutInTwo(t *testing.T) {
	const secret = "sk-0123456789abcdef"
	rec := New(Config{Redact: func(s string) string { return strings.ReplaceAll(s, secret, "[redacted]") }})
	for before := range len(secret) + 2 {
		text := strings.Repeat(" ", maxRaw-before-1) + " " + secret
		if said := rec.message(errors.New(text + " tail")); strings.Contains(said, "sk") {
			t.Errorf("%d bytes of it before the cut: %q", before, said)
		}
	}
	for _, n := range []int{maxRaw, maxRaw + 1} {
		if said := rec.message(errors.New(strings.Repeat("x", n))); len(said) < maxMessage {
			t.Errorf("of %d bytes: %q", n, said)
		}
	}
}
