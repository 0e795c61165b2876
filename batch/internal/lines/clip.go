package lines

// shown is the number of bytes of a file's own text that a complaint repeats: enough to
// find it, too little to flood a terminal.
const shown = 60

// Clip shortens s for a message, at a whole character.
func Clip(s string) string { return ClipTo(s, shown) }

// ClipTo shortens s to no more than most bytes, and marks that by an ellipsis.
func ClipTo(s string, most int) string {
	if len(s) <= most {
		return s
	}
	end := most
	for end > 0 && s[end]&0xC0 == 0x80 {
		end--
	}
	return s[:end] + "…"
}
