package journal

// opening is the beginning of each line of ours; each # stands for a lower-case hex digit.
// No other program's line is likely to begin so by chance.
const opening = `{"id":"hr-########################","custom_id":"`

// opens reports whether a line of ours may begin with text, as far as both of them go.
func opens(text []byte) bool {
	for i := range min(len(text), len(opening)) {
		switch c := text[i]; {
		case opening[i] != '#':
			if c != opening[i] {
				return false
			}
		case (c < '0' || c > '9') && (c < 'a' || c > 'f'):
			return false
		}
	}
	return true
}
