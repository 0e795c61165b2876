package observe

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// takenOut stands for the parts that are taken out of a message.
const takenOut = '…'

// A word is taken out whole if it is arbitrary: an id, a hash, a date.
const (
	idDigits = 2  // a word with at least that many digits
	longWord = 16 // a word of at least that many runes, with a digit
)

// maxMessage is the number of runes kept of a message: two lines of a terminal.
const maxMessage = 200

// fingerprint returns a message without the parts that differ from item to item: digits, ids
// and quoted text. The result has at most as many runes as the message, and no digits. Its own
// fingerprint is the same text.
func fingerprint(message string) string {
	var b strings.Builder
	last := rune(0)
	put := func(r rune) {
		if r != takenOut || last != takenOut {
			b.WriteRune(r)
		}
		last = r
	}
	runes := []rune(strings.ToValidUTF8(message, ""))
	for i := 0; i < len(runes); {
		if end := quoteEnd(runes, i); end > i {
			put(takenOut)
			i = end
			continue
		}
		if !inWord(runes[i]) {
			put(runes[i])
			i++
			continue
		}
		end := wordEnd(runes, i)
		putWord(runes[i:end], put)
		i = end
	}
	return b.String()
}

// putWord puts a word with takenOut for its digits, or takenOut for the whole word.
func putWord(word []rune, put func(rune)) {
	digits := 0
	for _, r := range word {
		if unicode.IsNumber(r) {
			digits++
		}
	}
	if digits >= idDigits || digits > 0 && len(word) >= longWord {
		put(takenOut)
		return
	}
	for _, r := range word {
		if unicode.IsNumber(r) {
			r = takenOut
		}
		put(r)
	}
}

func inWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || r == '_' || r == '-' || r == takenOut
}

func wordEnd(runes []rune, i int) int {
	for i < len(runes) && inWord(runes[i]) {
		i++
	}
	return i
}

var closing = map[rune]rune{'"': '"', '\'': '\'', '`': '`', '“': '”', '‘': '’', '«': '»'}

// quoteEnd returns the end of the quoted text that begins at i; i if there is none. An apostrophe
// within a word quotes nothing. Text without a closing quote is quoted to the end, unless its
// quote may be an apostrophe.
func quoteEnd(runes []rune, i int) int {
	end, ok := closing[runes[i]]
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

// oneLine returns a text as one line of at most maxMessage runes, without control characters
// for a terminal.
func oneLine(text string) string {
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }), " ")
	if utf8.RuneCountInString(text) <= maxMessage {
		return text
	}
	return string([]rune(text)[:maxMessage-1]) + string(takenOut)
}
