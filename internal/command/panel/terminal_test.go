package panel

import (
	"strconv"
	"strings"
	"testing"
)

// terminal is a model of one: what is written to it is obeyed, as far as a Screen needs it,
// and all else is a fault. It has as many rows as were ever written; the last height of them
// are on the screen.
type terminal struct {
	t             *testing.T
	width, height int
	wide, reflows bool
	wrapped       map[int]bool // rows that go on with the one before them
	rows          [][]rune     // a cell each; 0 is the second of a sign of two
	row, column   int
	writes        int
}

func newTerminal(t *testing.T, width, height int, wide bool) *terminal {
	return &terminal{t: t, width: width, height: height, wide: wide, rows: make([][]rune, 1), wrapped: map[int]bool{}}
}

func (m *terminal) size() (width, height int) { return m.width, m.height }

func (m *terminal) Write(b []byte) (int, error) {
	m.writes++
	text := []rune(string(b))
	for len(text) > 0 {
		n := 1
		switch r := text[0]; r {
		case '\r':
			m.column = 0
		case '\n':
			m.down()
		case 0x1b:
			n = m.obey(text)
		default:
			m.put(r)
		}
		text = text[n:]
	}
	return len(b), nil
}

func (m *terminal) down() {
	if m.row++; m.row == len(m.rows) {
		m.rows = append(m.rows, nil)
	}
}

// obey does what a sequence says, and tells how long it is.
func (m *terminal) obey(text []rune) int {
	end := strings.IndexAny(string(text[1:]), "ABCDEFGHJKSTfhlmnrsu")
	if len(text) < 3 || text[1] != '[' || end < 0 {
		m.t.Fatalf("the terminal is steered by %q", string(text[:min(len(text), 20)]))
	}
	arg, order := string(text[2:end+1]), text[end+1]
	n, _ := strconv.Atoi(arg)
	switch {
	case order == 'A' && n > 0:
		m.row = max(m.row-n, m.top())
	case order == 'K' && arg == "2":
		m.rows[m.row] = nil
		delete(m.wrapped, m.row)
		delete(m.wrapped, m.row+1)
	case order == 'K' && arg == "":
		m.rows[m.row] = m.rows[m.row][:min(m.column, len(m.rows[m.row]))]
	case order != 'm':
		m.t.Fatalf("the terminal is steered by %q", string(text[:end+2]))
	}
	return end + 2
}

// top is the first row on the screen.
func (m *terminal) top() int { return max(0, len(m.rows)-m.height) }

// put shows a sign. One that has no room begins the next row.
func (m *terminal) put(r rune) {
	n := Style{Wide: m.wide}.cellsOf(r)
	if m.column+n > m.width {
		m.column = 0
		m.down()
		m.wrapped[m.row] = true
	}
	for len(m.rows[m.row]) < m.column+n {
		m.rows[m.row] = append(m.rows[m.row], ' ')
	}
	for i := range n {
		m.rows[m.row][m.column+i] = 0
	}
	if n > 0 {
		m.rows[m.row][m.column] = r
		m.column += n
	}
}

// resize drops what is empty below the cursor, as terminals do before they scroll.
func (m *terminal) resize(width, height int) {
	m.width, m.height = width, height
	for len(m.rows) > m.row+1 && len(m.rows[len(m.rows)-1]) == 0 {
		m.rows = m.rows[:len(m.rows)-1]
	}
	if m.reflows {
		m.reflow()
	}
}

// reflow breaks all lines anew. The cursor stays with its sign, the first of a row here.
func (m *terminal) reflow() {
	var lines [][]rune
	at := 0
	for i, row := range m.rows {
		if m.wrapped[i] && i > 0 {
			lines[len(lines)-1] = append(lines[len(lines)-1], row...)
		} else {
			lines = append(lines, row)
		}
		if i == m.row {
			at = len(lines) - 1
		}
	}
	m.rows, m.wrapped = nil, map[int]bool{}
	for i, line := range lines {
		if i == at {
			m.row = len(m.rows)
		}
		for first := true; first || len(line) > 0; first = false {
			n := min(len(line), m.width)
			m.wrapped[len(m.rows)] = !first
			m.rows, line = append(m.rows, line[:n:n]), line[n:]
		}
	}
}

// text is all that was shown and not erased: down to the cursor, or to what is below it.
func (m *terminal) text() []string {
	var lines []string
	for i, row := range m.rows {
		if i <= m.row || len(row) > 0 {
			lines = append(lines, strings.TrimRight(strings.ReplaceAll(string(row), "\x00", ""), " "))
		}
	}
	return lines
}

// ends is true if the last rows are those, as the terminal shows them.
func (m *terminal) ends(rows []string) bool {
	lines := m.text()
	if len(lines) < len(rows) {
		return false
	}
	for i, line := range lines[len(lines)-len(rows):] {
		if line != asShown(rows[i]) {
			return false
		}
	}
	return true
}

// asShown is a row without colour, and without what has no cell of its own.
func asShown(row string) string {
	return strings.TrimRight(strings.Map(func(r rune) rune {
		if narrow.RuneWidth(r) == 0 {
			return -1
		}
		return r
	}, withoutColour(row)), " ")
}
