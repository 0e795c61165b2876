package estimate

import "encoding/binary"

// class is the class of a character, as far as tokens go.
type class uint8

const (
	space class = iota // and tab
	newline
	punctuation
	digit
	upper
	lower
	accented // a Latin letter beyond ASCII: languages other than English
	cyrillic
	greek
	caucasian // Armenian, Georgian
	hebrew
	arabic
	indic
	thai
	kana
	han
	hangul
	wideMark // punctuation of East Asia
	symbol
	combining
	emoji
	rare
	classes
)

// scripts holds the weights of runs of one script, in hundredths of a token: for
// the first character, and for each further one.
var scripts = [classes]struct{ first, further uint16 }{
	cyrillic:  {127, 17},
	greek:     {125, 25},
	caucasian: {80, 32},
	hebrew:    {72, 27},
	arabic:    {47, 38},
	indic:     {51, 39},
	thai:      {91, 41},
	kana:      {100, 50},
	han:       {115, 84},
	hangul:    {110, 57},
	wideMark:  {90, 90},
	symbol:    {90, 90},
	combining: {60, 60},
	emoji:     {190, 190},
	rare:      {150, 150},
}

// Weights of ASCII text, and of Latin words, in hundredths of a token. The longer a word is, the
// more it costs: long ones are rarer, and are cut into pieces. A space in front of a word is part
// of its first token.
const (
	wordStart  = 82
	shortWord  = 4  // letters that come with the start
	middleWord = 20 // for each of the next
	mediumWord = 8  // letters until that rate ends
	longWord   = 65 // for each further one
	capital    = 50 // for each capital after another: few such words are known whole
	accent     = 60 // for each accented letter

	digits      = 100 // for a group of up to three
	mark        = 80
	furtherMark = 25

	indent        = 50 // for the second space
	furtherIndent = 2
	newlines      = 50 // for a run: often it is one with the mark before it
)

// The states of the automaton that reads a text. A state is entered with one
// character and has its weight.
const (
	begin = iota
	space1
	space2
	space3 // and further
	newline1
	newline2 // and further
	mark1
	mark2  // and further
	spaced // a digit after a space: the space is a token of its own
	digit1
	digit2
	digit3
	word1     = iota // to word1+words-1: the word's nth letter, a small one
	capital1  = word1 + words
	accented1 = capital1 + words
	script1   = accented1 + words // two for each class: its first character, and further ones
	states    = script1 + 2*int(classes)
	words     = mediumWord + 1 // a word stays in the last of these
	blockSize = 16             // Unicode's blocks begin at multiples of it
)

// automaton gives, for a state and the class of the next character, the next
// state; weight is the cost of entering a state.
var (
	automaton = buildAutomaton()
	weight    = buildWeights()
	asciis    = buildASCII()
	blocks    = buildBlocks()
	pairs     = buildPairs()
)

// scale is an automaton at work. A text put on it in parts weighs as much as the whole
// text, if no part ends within a character.
type scale struct {
	sum   int // exact, in hundredths, so that a text weighs the same in whatever parts it comes
	state uint8
}

func (s *scale) tokens() float64 { return float64(s.sum) / 100 }

// add runs the automaton over a text.
func (s *scale) add(text []byte) {
	sum, state := s.sum, s.state
	for i := 0; i < len(text); {
		kind, size := asciis[text[i]], 1
		if text[i] >= 0x80 {
			kind, size = classBeyondASCII(text, i)
		} else if n, end, cost := weighASCII(text[i:], state); n > 0 {
			sum, state, i = sum+cost, end, i+n
			continue
		}
		state = automaton[state][kind]
		sum += int(weight[state])
		i += size
	}
	s.sum, s.state = sum, state
}

// signBits are the bits that no byte of ASCII has.
const signBits = 0x8080808080808080

// weighASCII weighs eight characters at a time, in four steps of two, as long as all of them are ASCII.
// It returns the number of characters, the state after them and their cost.
func weighASCII(text []byte, state uint8) (i int, end uint8, sum int) {
	for ; i+8 <= len(text); i += 8 {
		t := text[i : i+8 : i+8]
		if binary.LittleEndian.Uint64(t)&signBits != 0 {
			break
		}
		a := pairs[state][asciis[t[0]]<<3|asciis[t[1]]]
		b := pairs[a.state][asciis[t[2]]<<3|asciis[t[3]]]
		c := pairs[b.state][asciis[t[4]]<<3|asciis[t[5]]]
		d := pairs[c.state][asciis[t[6]]<<3|asciis[t[7]]]
		sum += int(a.weight) + int(b.weight) + int(c.weight) + int(d.weight)
		state = d.state
	}
	return i, state, sum
}

// pair holds the state after two characters, and the weight of both states on the way.
type pair struct {
	weight uint16
	state  uint8
}

// asciiPairs is the number of pairs of classes of ASCII, each of which fits in three bits.
const asciiPairs = 64

// buildPairs returns the state and the cost after each two characters of ASCII, from each state.
func buildPairs() (next [states][asciiPairs]pair) {
	for state := range next {
		for k := range asciiPairs {
			one := automaton[state][k>>3]
			two := automaton[one][k&7]
			next[state][k] = pair{weight[one] + weight[two], two}
		}
	}
	return next
}

// classBeyondASCII returns the class and size of the character beyond ASCII at i. It trusts that
// UTF-8 is well formed, but never reads past the end.
func classBeyondASCII(text []byte, i int) (class, int) {
	c, left := rune(text[i]), len(text)-i
	switch {
	case c < 0xC0:
	case c < 0xE0 && left >= 2:
		return blocks[(c&0x1F<<6|rune(text[i+1])&0x3F)/blockSize], 2
	case c >= 0xE0 && c < 0xF0 && left >= 3:
		return blocks[(c&0x0F<<12|rune(text[i+1])&0x3F<<6|rune(text[i+2])&0x3F)/blockSize], 3
	case c >= 0xF0 && left >= 4:
		return emoji, 4
	}
	return rare, 1
}

// buildASCII returns the class of each character of ASCII, where control characters count as
// punctuation. The classes of bytes beyond ASCII are not used.
func buildASCII() (kinds [256]class) {
	for c := range kinds {
		switch {
		case c == ' ' || c == '\t':
			kinds[c] = space
		case c == '\n' || c == '\r':
			kinds[c] = newline
		case c >= '0' && c <= '9':
			kinds[c] = digit
		case c >= 'A' && c <= 'Z':
			kinds[c] = upper
		case c >= 'a' && c <= 'z':
			kinds[c] = lower
		default:
			kinds[c] = punctuation
		}
	}
	return kinds
}

// buildBlocks returns the class of each block of 16 characters below U+10000.
func buildBlocks() (kinds [0x10000 / blockSize]class) {
	for i := range kinds {
		kinds[i] = rare
	}
	for _, r := range []struct {
		from, to int // to is the first after
		kind     class
	}{
		{0x80, 0xC0, symbol},
		{0xC0, 0x250, accented},
		{0x300, 0x370, combining},
		{0x370, 0x400, greek},
		{0x400, 0x530, cyrillic},
		{0x530, 0x590, caucasian},
		{0x590, 0x600, hebrew},
		{0x600, 0x780, arabic},
		{0x8A0, 0x900, arabic},
		{0x900, 0xE00, indic},
		{0xE00, 0x1000, thai},
		{0x10A0, 0x1100, caucasian},
		{0x1E00, 0x1F00, accented},
		{0x1F00, 0x2000, greek},
		{0x2000, 0x2E00, symbol},
		{0x3000, 0x3040, wideMark},
		{0x3040, 0x3100, kana},
		{0x3400, 0xA000, han},
		{0xAC00, 0xD7B0, hangul},
		{0xF900, 0xFB00, han},
		{0xFB50, 0xFE00, arabic},
		{0xFE00, 0xFE10, symbol},
		{0xFE70, 0xFF00, arabic},
		{0xFF00, 0xFFF0, wideMark},
	} {
		for i := r.from / blockSize; i < r.to/blockSize; i++ {
			kinds[i] = r.kind
		}
	}
	return kinds
}

// buildWeights returns the cost of entering each state, in hundredths of a token. The states that
// it does not name cost nothing.
func buildWeights() (w [states]uint16) {
	w[space2], w[space3], w[newline1] = indent, furtherIndent, newlines
	w[mark1], w[mark2] = mark, furtherMark
	w[spaced], w[digit1] = digits+100, digits
	for i := range words {
		letter := uint16(0)
		switch {
		case i == 0:
			letter = wordStart
		case i >= mediumWord:
			letter = longWord
		case i >= shortWord:
			letter = middleWord
		}
		w[word1+i], w[capital1+i], w[accented1+i] = letter, letter, letter+accent
		if i > 0 {
			w[capital1+i] += capital
		}
	}
	for k, s := range scripts {
		w[script1+2*k], w[script1+2*k+1] = s.first, s.further
	}
	return w
}

// buildAutomaton returns the state after each state and each class of character.
func buildAutomaton() (next [states][classes]uint8) {
	for state := range next {
		for k := range classes {
			next[state][k] = uint8(nextState(state, k))
		}
	}
	return next
}

// nextState returns the state that comes after state and a character of class k.
func nextState(state int, k class) int {
	switch k {
	case space:
		return nextInRun(state, space1, space3)
	case newline:
		return nextInRun(state, newline1, newline2)
	case punctuation:
		return nextInRun(state, mark1, mark2)
	case digit:
		return digitAfter(state)
	case lower:
		return word1 + letterAfter(state)
	case accented:
		return accented1 + letterAfter(state)
	case upper:
		if state >= word1 && state < capital1 { // a capital after a small letter begins a word
			return capital1
		}
		return capital1 + letterAfter(state)
	}
	return nextInRun(state, script1+2*int(k), script1+2*int(k)+1)
}

// digitAfter returns the state of a digit after state. A group of digits ends after three.
func digitAfter(state int) int {
	switch state {
	case space1, space2, space3:
		return spaced
	case spaced:
		return digit2
	case digit3:
		return digit1
	}
	return nextInRun(state, digit1, digit3)
}

// nextInRun returns the next state of a run whose states are first to last.
func nextInRun(state, first, last int) int {
	if state < first || state > last {
		return first
	}
	return min(state+1, last)
}

// letterAfter returns the index of the next letter in its word, from 0.
func letterAfter(state int) int {
	if state < word1 || state >= script1 {
		return 0
	}
	return min((state-word1)%words+1, words-1)
}
