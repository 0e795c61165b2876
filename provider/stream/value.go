package stream

import (
	"errors"
	"slices"

	"github.com/headrace/headrace/provider/rawjson"
)

// Bounds of one object or list of an answer. Members and elements are searched for one by one.
const (
	maxMembers  = 256
	maxElements = 4096
)

// valueCost is about the memory of a Value besides its text, in bytes.
const valueCost = 128

// Errors of pieces that do not go together.
var (
	errKinds    = errors.New("two pieces of a value are of different kinds")
	errMembers  = errors.New("an object has too many members")
	errElements = errors.New("a list has too many elements")
)

// A Value is JSON that grows piece by piece. The zero value is not there.
type Value struct {
	kind     byte    // '"', '{', '[', or 'v' for any other
	text     []byte  // its text so far, without the last quote or bracket
	children []child // members of an object, or elements of a list that have an index
}

type child struct {
	name  string
	index float64
	Value
}

// IsSet reports whether the value is there.
func (v *Value) IsSet() bool { return v.kind != 0 }

// IsNull reports whether the value is null, or not there.
func (v *Value) IsNull() bool { return v.kind == 0 || v.kind == 'v' && v.text[0] == 'n' }

// Find returns the member of that name, nil if there is none.
func (v *Value) Find(name string) *Value {
	for i := range v.children {
		if v.children[i].name == name {
			return &v.children[i].Value
		}
	}
	return nil
}

// AppendTo appends the value as JSON.
func (v *Value) AppendTo(dst []byte) []byte {
	switch {
	case v.kind == '"':
		return append(append(dst, v.text...), '"')
	case v.kind == '[' && len(v.children) == 0:
		return append(append(dst, v.text...), ']')
	case v.kind == 0:
		return append(dst, "null"...)
	case v.kind == 'v':
		return append(dst, v.text...)
	}
	opens, closes := v.kind, v.kind+2 // {} and [] stand so in ASCII
	dst = append(dst, opens)
	for i := range v.children {
		if i > 0 {
			dst = append(dst, ',')
		}
		if v.kind == '{' {
			dst = append(rawjson.AppendString(dst, v.children[i].name), ':')
		}
		dst = v.children[i].AppendTo(dst)
	}
	return append(dst, closes)
}

// AppendWith appends an object with one more member.
func (v *Value) AppendWith(dst []byte, name string, value []byte) []byte {
	if dst = append(dst, '{'); v.kind == '{' && len(v.children) > 0 {
		dst = v.AppendTo(dst[:len(dst)-1])
		dst[len(dst)-1] = ','
	}
	return append(append(append(rawjson.AppendString(dst, name), ':'), value...), '}')
}

// A Builder changes values and counts what they keep. It keeps the first fault that it meets in
// a piece; Err returns that.
type Builder struct {
	size int
	err  error
}

// Size returns about how many bytes the values keep.
func (b *Builder) Size() int { return b.size }

// Err returns the first thing that was wrong.
func (b *Builder) Err() error { return b.err }

// Kept counts bytes that are kept elsewhere.
func (b *Builder) Kept(bytes int) { b.size += bytes }

// Fail notes a fault, unless there is one already.
func (b *Builder) Fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// Member returns the member of that name, a new one if an object has none.
func (b *Builder) Member(v *Value, name []byte) *Value {
	if !b.convertTo(v, '{') {
		return new(Value)
	}
	for i := range v.children {
		if v.children[i].name == string(name) {
			return &v.children[i].Value
		}
	}
	if len(v.children) == maxMembers {
		b.Fail(errMembers)
		return new(Value)
	}
	v.children = append(v.children, child{name: string(name)})
	b.size += valueCost + len(name)
	return &v.children[len(v.children)-1].Value
}

// Element returns the element with that index, a new one if a list has none.
func (b *Builder) Element(v *Value, index float64) *Value {
	if !b.convertTo(v, '[') || len(v.text) > 1 {
		b.Fail(errKinds)
		return new(Value)
	}
	for i := len(v.children) - 1; i >= 0; i-- {
		if v.children[i].index == index { //nolint:gocritic // identity: both are as the server wrote them
			return &v.children[i].Value
		}
	}
	return b.Insert(v, index)
}

// Insert returns a new element of a list, behind all whose index is not greater.
func (b *Builder) Insert(v *Value, index float64) *Value {
	if len(v.children) == maxElements {
		b.Fail(errElements)
		return new(Value)
	}
	position := len(v.children)
	for position > 0 && v.children[position-1].index > index {
		position--
	}
	v.children = slices.Insert(v.children, position, child{index: index})
	b.size += valueCost
	return &v.children[position].Value
}

// convertTo turns a value into one of a kind that can grow, and returns false if it cannot. Null may
// become any kind.
func (b *Builder) convertTo(v *Value, kind byte) bool {
	switch {
	case v.kind == kind:
	case v.IsNull():
		v.kind, v.text = kind, append(v.text[:0], kind)
	case v.kind == 'v' && v.text[0] == kind && kind == '[':
		v.kind, v.text = kind, rawjson.Trim(v.text[:len(v.text)-1])
	case v.kind == 'v' && v.text[0] == kind: // an object
		whole := v.text
		v.kind, v.text = kind, nil
		b.Open(v, whole)
	default:
		b.Fail(errKinds)
		return false
	}
	return true
}

// Set makes valid JSON the contents of a value.
func (b *Builder) Set(v *Value, raw []byte) {
	if grown := len(raw) - len(v.text); grown > 0 {
		b.size += grown
	}
	v.children = nil
	switch raw[0] {
	case '"':
		v.kind, raw = '"', raw[:len(raw)-1]
	default: // objects and lists, too, are kept as they are
		v.kind = 'v'
	}
	v.text = append(v.text[:0], raw...)
}

// Replace makes valid JSON the contents of a value, without a copy.
func (b *Builder) Replace(v *Value, raw []byte) { *v = Value{kind: 'v', text: raw} }

// Open makes a valid JSON object the contents of a value, with members that are values of their own.
func (b *Builder) Open(v *Value, object []byte) {
	for w := rawjson.WalkIn(object); w.Next(); {
		b.Set(b.Member(v, w.Name), w.Skip())
	}
}

// Append adds the contents of a text to a text. Null adds nothing.
func (b *Builder) Append(v *Value, raw []byte) {
	switch {
	case raw[0] == 'n':
		if v.kind == 0 {
			b.Set(v, raw)
		}
	case raw[0] != '"':
		b.Fail(errKinds)
	case b.convertTo(v, '"'):
		v.text = append(v.text, rawjson.Inner(raw)...)
		b.size += len(raw) - len(`""`)
	}
}

// Push adds an element to a list.
func (b *Builder) Push(v *Value, raw []byte) {
	if !b.convertTo(v, '[') {
		return
	}
	if len(v.children) > 0 {
		b.Fail(errKinds)
		return
	}
	if len(v.text) > 1 {
		v.text = append(v.text, ',')
	}
	v.text = append(v.text, raw...)
	b.size += len(raw) + 1
}

// Merge adds a piece to a value: texts and lists grow, objects grow member by member, and of
// anything else the last counts. Elements with an index grow one by one. Members that isWhole
// names come whole, and are replaced. Null adds nothing.
func (b *Builder) Merge(v *Value, raw []byte, isWhole func(name []byte) bool) {
	switch raw[0] {
	case 'n':
		if v.kind == 0 {
			b.Set(v, raw)
		}
	case '"':
		b.Append(v, raw)
	case '{':
		b.convertTo(v, '{')
		for w := rawjson.WalkIn(raw); w.Next(); {
			value := w.Skip()
			if member := b.Member(v, w.Name); isWhole(w.Name) {
				b.Update(member, value)
			} else {
				b.Merge(member, value, isWhole)
			}
		}
	case '[':
		b.convertTo(v, '[')
		for w := rawjson.WalkIn(raw); w.Next(); {
			element := w.Skip()
			if index := rawjson.Lookup(element, "index"); index != nil {
				b.Merge(b.Element(v, rawjson.Number(index)), element, isWhole)
			} else {
				b.Push(v, element)
			}
		}
	default:
		b.Set(v, raw)
	}
}

// Update sets a value, unless null or an empty text comes where there is more.
func (b *Builder) Update(v *Value, raw []byte) {
	if v.kind == 0 || raw[0] != 'n' && string(raw) != `""` {
		b.Set(v, raw)
	}
}
