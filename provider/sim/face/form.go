package face

import (
	"math"
	"slices"

	"github.com/tidwall/gjson"
)

// Type is a set of JSON types.
type Type int

// The types. An Integer is a number without a fraction.
const (
	String Type = 1 << iota
	Number
	Integer
	Bool
	Object
	Array
)

// TypeWords are the words of a face for types.
type TypeWords struct{ String, Integer, Number, Bool, Array, Other string }

// Of returns the word for the first type of a set for which there is one; else Other.
func (w TypeWords) Of(t Type) string {
	for _, c := range [...]struct {
		is   Type
		word string
	}{{String, w.String}, {Integer, w.Integer}, {Number, w.Number}, {Bool, w.Bool}, {Array, w.Array}} {
		if t&c.is != 0 && c.word != "" {
			return c.word
		}
	}
	return w.Other
}

// Form describes the values that may stand at a place of a body. The zero value takes anything.
type Form struct {
	Is     Type            // 0: anything
	Fields map[string]Form // of an object; nil: any
	Need   []string        // of these an object must have each, in this order
	Items  *Form           // of an array; nil: any
	Words  []string        // that a string may be; nil: any

	// Least and Most bound a number, or the length of an array. Most counts only if it
	// is above Least.
	Least, Most float64

	// Spell returns the name under which Fields has a field; nil: the field's own.
	Spell func(string) string
}

// Flaw is the first thing in a body that does not fit its form.
type Flaw struct {
	Path  []Step
	What  Mistake
	Form  Form         // which was not met
	Value gjson.Result // that stands there; nothing, if it is missing
}

// Step is a name in an object, or a place in an array.
type Step struct {
	Name  string
	Place int // where Name is ""
}

// Mistake says in which way a value does not fit.
type Mistake int

// The mistakes.
const (
	NoMistake Mistake = iota
	Unknown           // a name that the object does not have
	Missing           // a name that it must have
	WrongType
	WrongWord
	TooSmall
	TooGreat
)

// Check finds the first flaw of a value. null counts as a missing value. It goes as deep as the
// form does, and no deeper.
func (f Form) Check(v gjson.Result) (Flaw, bool) {
	flaw := Flaw{What: NoMistake}
	f.check(v, nil, &flaw)
	return flaw, flaw.What != NoMistake
}

// check sets flaw to the first flaw in v, which is at path; without a flaw it changes nothing. It
// copies the path, whose memory serves for the values after v.
func (f Form) check(value gjson.Result, path []Step, flaw *Flaw) {
	if what := f.mistakeIn(value); what != NoMistake {
		*flaw = Flaw{Path: slices.Clone(path), What: what, Form: f, Value: value}
		return
	}
	switch {
	case value.IsObject() && f.Fields != nil:
		f.checkFields(value, path, flaw)
	case value.IsArray() && f.Items != nil:
		place := 0
		value.ForEach(func(_, item gjson.Result) bool {
			f.Items.check(item, append(path, Step{Place: place}), flaw)
			place++
			return flaw.What == NoMistake
		})
	}
}

// checkFields checks the fields of an object in the order in which they come. Missing ones are
// looked for last, and null counts as missing.
func (f Form) checkFields(object gjson.Result, path []Step, flaw *Flaw) {
	seen := map[string]bool{}
	object.ForEach(func(key, value gjson.Result) bool {
		name, fieldPath := key.String(), append(path, Step{Name: key.String()})
		if f.Spell != nil {
			name = f.Spell(name)
		}
		field, known := f.Fields[name]
		if !known {
			*flaw = Flaw{Path: slices.Clone(fieldPath), What: Unknown, Value: value}
			return false
		}
		if value.Type != gjson.Null {
			seen[name] = true
			field.check(value, fieldPath, flaw)
		}
		return flaw.What == NoMistake
	})
	for _, name := range f.Need {
		if flaw.What == NoMistake && !seen[name] {
			*flaw = Flaw{Path: slices.Clone(append(path, Step{Name: name})), What: Missing, Form: f.Fields[name]}
		}
	}
}

// mistakeIn returns the mistake in the type, the word or the size of a value. It does not look at the
// fields or items in the value.
func (f Form) mistakeIn(value gjson.Result) Mistake {
	valueType := typeOf(value)
	if f.Is != 0 && f.Is&valueType == 0 {
		return WrongType
	}
	if valueType == String && f.Words != nil && !slices.Contains(f.Words, value.Str) {
		return WrongWord
	}
	size, counts := 0.0, f.Most > f.Least || f.Least > 0
	switch {
	case !counts:
		return NoMistake
	case valueType == Array:
		size = value.Get("#").Num
	case valueType&(Number|Integer) != 0:
		size = value.Num
	default:
		return NoMistake
	}
	if size < f.Least {
		return TooSmall
	}
	if f.Most > f.Least && size > f.Most {
		return TooGreat
	}
	return NoMistake
}

// typeOf returns the types of a value, none for null. A whole number is both a Number and an
// Integer.
func typeOf(value gjson.Result) Type {
	switch {
	case value.IsObject():
		return Object
	case value.IsArray():
		return Array
	case value.Type == gjson.String:
		return String
	case value.IsBool():
		return Bool
	case value.Type == gjson.Number && value.Num == math.Trunc(value.Num) && !math.IsInf(value.Num, 0):
		return Integer | Number
	case value.Type == gjson.Number:
		return Number
	}
	return 0
}
