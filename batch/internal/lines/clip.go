package lines

// shown is how much of a file's own text a complaint repeats, in bytes: enough
// to find it, too little to flood a terminal.
const shown = 60

// Clip shortens s for a message, at a whole character.
func Clip(s string) string {
	if len(s) <= shown {
		return s
	}
	end := shown
	for end > 0 && s[end]&0xC0 == 0x80 {
		end--
	}
	return s[:end] + "…"
}
