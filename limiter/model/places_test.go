package model

import (
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// What may be in flight follows from how long places are taken, and that is for longer than the
// answer took where the call was made far away.
func TestPlacesThatAreTakenForLonger(t *testing.T) {
	after := func(detour time.Duration) int {
		m := New(limiter.LawConfig{}, noon, seeded(1))
		now := noon
		for range 4000 {
			now = now.Add(5 * time.Millisecond)
			m.Tick(now, false)
			n := limiter.News{Ticket: m.Sent(now, one, 0), Sent: now, Cost: one, Good: true, Present: true, Latency: 10 * time.Millisecond, Detour: detour}
			m.Answered(now, n)
		}
		return m.Window(now)
	}
	if n := after(0); n != leastWindow {
		t.Errorf("200 calls a second of 10 ms may be %d in flight", n)
	}
	if n := after(490 * time.Millisecond); n < 300 || n > 350 {
		t.Errorf("200 calls a second that take a place for half a second may be %d in flight, want %d and three times 100", n, windowSpare)
	}
}

// A user's limit counts from that moment on: waiting calls ask for a place then, and perhaps never
// again before one is free.
func TestPlacesOfAConfiguredRateAtOnce(t *testing.T) {
	m := New(limiter.LawConfig{}, noon, seeded(1))
	m.Sent(noon, one, 0)
	if n := m.Window(noon); n != leastWindow {
		t.Errorf("%d places, and nobody told anything", n)
	}
	m.SetLimits(noon, limiter.Limits{RPM: 60 * 200})
	if n := m.Window(noon); n != 200 {
		t.Errorf("%d places of a rate of 200 a second", n)
	}
}

// How many calls a second configured tokens are follows from what the latest calls draw, and that is known as soon as one has left.
func TestPlacesOfConfiguredTokensAtOnce(t *testing.T) {
	m := New(limiter.LawConfig{Limits: limiter.Limits{TPM: 60 * 20_000}}, noon, seeded(1))
	m.Sent(noon, limiter.Cost{Requests: 1, Input: 200}, 0)
	before := m.Window(noon)
	m.Sent(noon, limiter.Cost{Requests: 1, Input: 10}, 1)
	if after := m.Window(noon); before != 100 || after <= before {
		t.Errorf("%d places after a call of 200 tokens, %d after one of 10", before, after)
	}
}
