package observe

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/provider"
)

// Bounds of the memory for failures.
const (
	// MaxFailures is the number of ways of failing that are counted apart. All further ways
	// are counted under [OtherFailures].
	MaxFailures = 32
	// MaxExamples is the number of items named for each way of failing: the first ones.
	MaxExamples = 3

	// maxRaw bounds the part of a message that is read, in bytes, before secrets are taken out: well
	// over what is shown.
	maxRaw = 4 << 10
	// longSecret is the number of bytes dropped at the end of a message over maxRaw. The cut
	// may have split a secret there, and Redact does not recognise half of one.
	longSecret = 512
)

// OtherFailures is the kind of the failures that are counted together, after all others.
const OtherFailures = "other"

// failures are the ways in which items failed.
type failures struct {
	mu    sync.Mutex
	byKey map[failureKey]*Failure
	other int
}

// A way of failing is identified by what all its failures have in common.
type failureKey struct{ kind, code, message string }

// add counts a failure. It calls example only if there is room to keep one more.
func (f *failures) add(failure failureKey, example func() Example) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.byKey[failure]
	switch {
	case known == nil && len(f.byKey) == MaxFailures:
		f.other++
		return
	case known == nil:
		if f.byKey == nil {
			f.byKey = map[failureKey]*Failure{}
		}
		known = &Failure{Kind: failure.kind, Code: failure.code, Message: failure.message}
		f.byKey[failure] = known
	}
	if known.Count++; len(known.Examples) < MaxExamples {
		known.Examples = append(known.Examples, example())
	}
}

// list returns a copy of all failures, the most frequent first.
func (f *failures) list() []Failure {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]Failure, 0, len(f.byKey)+1)
	for _, known := range f.byKey {
		copied := *known
		copied.Examples = slices.Clone(known.Examples)
		list = append(list, copied)
	}
	slices.SortFunc(list, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message))
	})
	if f.other > 0 {
		list = append(list, Failure{Kind: OtherFailures, Count: f.other})
	}
	return list
}

// failed counts an item that failed, and may keep it as an example.
func (r *Recorder) failed(e *batch.End) {
	kind, code := r.code(e.Err)
	text := r.message(e.Err)
	r.failures.add(failureKey{oneLine(kind), oneLine(code), fingerprint(text)}, func() Example {
		id, line := r.describe(e)
		return Example{ID: oneLine(id), Line: line, Message: text}
	})
}

// code returns the kind and the code under which an error is counted.
func (r *Recorder) code(err error) (kind, code string) {
	defer r.caught("Code")
	kind = provider.Unknown.String()
	if r.cfg.Code != nil {
		return r.cfg.Code(err)
	}
	var panicked *batch.PanicError
	if errors.As(err, &panicked) {
		return "panic", ""
	}
	if e := faultOf(err); e != nil {
		if code = e.Code; e.Status != 0 {
			code = strconv.Itoa(e.Status)
		}
		return e.Kind.String(), code
	}
	var k provider.Kind
	if errors.As(err, &k) {
		kind = k.String()
	}
	return kind, ""
}

// faultOf returns the [provider.Error] in an error's chain; nil if there is none.
func faultOf(err error) *provider.Error {
	var e *provider.Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}

// message returns the text of an error in one line, without secrets.
func (r *Recorder) message(err error) (text string) {
	defer r.caught("Redact, or an error's Error,")
	var panicked *batch.PanicError
	switch e := faultOf(err); {
	case errors.As(err, &panicked):
		text = fmt.Sprintf("panic: %v", panicked.Value)
	case e != nil && e.Message != "":
		text = e.Message
	default:
		text = err.Error()
	}
	long := len(text) > maxRaw
	if long {
		text = text[:maxRaw]
	}
	if r.cfg.Redact != nil {
		unsafe := text
		text = "" // if it panics
		text = r.cfg.Redact(unsafe)
	}
	if long {
		text = text[:max(0, len(text)-longSecret)]
	}
	return oneLine(text)
}

// describe returns the id and the line of the item.
func (r *Recorder) describe(e *batch.End) (id string, line int) {
	defer r.caught("Describe")
	if r.cfg.Describe == nil {
		return "", int(e.Item) + 1
	}
	return r.cfg.Describe(e.In)
}

// placeholder stands for the parts that are taken out of a message.
const placeholder = '…'

// A word is taken out whole if it is arbitrary: an id, a hash, a date.
const (
	idDigits = 2  // a word with at least that many digits
	longWord = 16 // a word of at least that many runes, with a digit
)

// maxMessage is the number of runes kept of a message: two lines of a terminal.
const maxMessage = 200

// fingerprint returns a message without the parts that differ from item to item: digits, ids and
// quoted text. Messages of the same kind thus count together. The result has at most as many runes
// as the message. Taking its fingerprint again changes nothing.
func fingerprint(message string) string {
	var b strings.Builder
	last := rune(0)
	write := func(r rune) {
		if r != placeholder || last != placeholder {
			b.WriteRune(r)
		}
		last = r
	}
	runes := []rune(strings.ToValidUTF8(message, ""))
	for i := 0; i < len(runes); {
		if end := quoteEnd(runes, i); end > i {
			write(placeholder)
			i = end
			continue
		}
		word := wordAt(runes, i)
		if len(word) == 0 {
			write(runes[i])
			i++
			continue
		}
		i += len(word)
		if isID(word) {
			write(placeholder)
			continue
		}
		for _, r := range word {
			if unicode.IsNumber(r) {
				r = placeholder
			}
			write(r)
		}
	}
	return b.String()
}

// wordAt returns the word that begins at i; it is empty if none does.
func wordAt(runes []rune, i int) []rune {
	end := i
	for end < len(runes) && inWord(runes[end]) {
		end++
	}
	return runes[i:end]
}

// isID reports whether a word looks like an id, by its digits and its length.
func isID(word []rune) bool {
	digits := 0
	for _, r := range word {
		if unicode.IsNumber(r) {
			digits++
		}
	}
	return digits >= idDigits || digits > 0 && len(word) >= longWord
}

func inWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || r == '_' || r == '-' || r == placeholder
}

var closingQuote = map[rune]rune{'"': '"', '\'': '\'', '`': '`', '“': '”', '‘': '’', '«': '»'}

// quoteEnd returns the end of the quoted text that begins at i; i if none begins there. An
// apostrophe within a word quotes nothing. Text without a closing quote is quoted to the end,
// unless its quote may be an apostrophe.
func quoteEnd(runes []rune, i int) int {
	end, ok := closingQuote[runes[i]]
	if !ok || runes[i] == '\'' && i > 0 && inWord(runes[i-1]) {
		return i
	}
	for k := i + 1; k < len(runes); k++ {
		if runes[k] == end && (end != '\'' || k+1 == len(runes) || !inWord(runes[k+1])) {
			return k + 1
		}
	}
	if end == '\'' || end == '’' {
		return i
	}
	return len(runes)
}

// oneLine returns a text as one line of at most maxMessage runes, without characters that could
// control a terminal.
func oneLine(text string) string {
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }), " ")
	if utf8.RuneCountInString(text) <= maxMessage {
		return text
	}
	return string([]rune(text)[:maxMessage-1]) + string(placeholder)
}
