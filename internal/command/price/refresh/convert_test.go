package main

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
)

var someday = release{"1.2.3", time.Date(2026, 9, 23, 10, 11, 0, 0, time.UTC), "MIT\n"}

// The list has the rates of all days and hours, steps, caches, and no price where none is per
// token. A rule that has no form in the list is named.
func TestConvert(t *testing.T) {
	data := must.Get(os.ReadFile("testdata/data.json"))(t)
	want := must.Get(os.ReadFile("testdata/list.json"))(t)
	l, leftOut, err := convert(someday, map[string][]string{"door": {"maker"}, "shop": {"seller"}}, data)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(l.text()); got != string(want) {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if !slices.Equal(leftOut, []string{`maker: odd: {"regex":"^odd-\\d"}`}) {
		t.Error(leftOut)
	}
}

// Data in another form than the one that is known makes no list.
func TestConvertRefuses(t *testing.T) {
	model := func(prices string) string {
		return `[{"id":"maker","models":[{"id":"m","match":{"equals":"m"},"prices":` + prices + `}]}]`
	}
	for data, why := range map[string]string{
		`{}`:                                 "cannot unmarshal",
		`[]`:                                 `provider "maker" has no models`,
		model(`{"input_mtok":"1"}`):          "maker: m: ",
		model(`{"input_mtok":{"tiers":[]}}`): "want a number, or base and tiers",
		model(`{"input_mtok":{"base":1,"tiers":[{"start":0,"price":2}]}}`):                                                        "a step starts at 0 tokens",
		model(`[{"constraint":{"type":"weekday"},"prices":{"input_mtok":1}}]`):                                                    `constraint "weekday": want start_date or time_of_date`,
		model(`[{"prices":{"input_mtok":1}},{"constraint":{"type":"start_date","start_date":"soon"},"prices":{"input_mtok":1}}]`): `from "soon": want a day`,
	} {
		if _, _, err := convert(someday, map[string][]string{"door": {"maker"}}, []byte(data)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %s", data, err, why)
		}
	}
	if _, _, err := convert(release{}, nil, []byte("[]")); err == nil || !strings.Contains(err.Error(), "its day or its licence is missing") {
		t.Error(err)
	}
}
