package printable

import "strings"

// marks are the characters that mean something in Markdown, or in the HTML that it may hold.
var marks = strings.NewReplacer(`\`, `\\`, "|", `\|`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "#", `\#`, "!", `\!`, "~", `\~`, "@", "&#64;", "://", "&#58;//")

// Markdown makes a text of others a text in Markdown, on one line: nothing of it is a link, or names a person.
func Markdown(s string) string { return marks.Replace(Line(s)) }
