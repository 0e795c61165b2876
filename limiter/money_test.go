package limiter

import (
	"math"
	"math/big"
	"testing"
)

// Dollars become picodollars and back, rounded once; what does not fit is the nearest that does.
func TestMoney(t *testing.T) {
	for usd, want := range map[float64]Money{
		0: 0, 1: 1e12, 0.00000285: 2_850_000, 1e-12: 1, 0.4e-12: 0, 0.6e-12: 1, -2.5: -2.5e12, 9e6: 9e18,
		1e7: math.MaxInt64, math.Inf(1): math.MaxInt64, -1e7: math.MinInt64, math.Inf(-1): math.MinInt64,
	} {
		if got := USD(usd); got != want {
			t.Errorf("%v: %d, want %d", usd, got, want)
		}
	}
	if got := USD(math.NaN()); got != 0 {
		t.Errorf("NaN: %d", got)
	}
	if got := Money(2_850_000).USD(); got != 0.00000285 {
		t.Error(got)
	}
}

// A sum never wraps around: a cap that was passed stays passed.
func TestMoneySaturates(t *testing.T) {
	for _, tt := range []struct{ a, b, want Money }{
		{1, 2, 3},
		{-5, 3, -2},
		{math.MaxInt64, 1, math.MaxInt64},
		{math.MaxInt64 - 1, 2, math.MaxInt64},
		{math.MinInt64, -1, math.MinInt64},
		{math.MaxInt64, math.MinInt64, -1},
		{math.MaxInt64, math.MaxInt64, math.MaxInt64},
	} {
		if got := tt.a.Plus(tt.b); got != tt.want {
			t.Errorf("%d + %d = %d, want %d", tt.a, tt.b, got, tt.want)
		}
		if got := tt.b.Plus(tt.a); got != tt.want {
			t.Errorf("%d + %d = %d, want %d", tt.b, tt.a, got, tt.want)
		}
	}
}

// People read a sum in dollars, with all of its digits and no more.
func TestMoneyReadsAsDollars(t *testing.T) {
	for m, want := range map[Money]string{
		0: "$0", 1: "$0.000000000001", USD(0.00015): "$0.00015", USD(25): "$25", USD(-2.5): "-$2.5",
	} {
		if got := m.String(); got != want {
			t.Errorf("%d picodollars read %s, want %s", int64(m), got, want)
		}
	}
}

// A sum is that of whole numbers, as far as it fits.
func FuzzMoneyPlus(f *testing.F) {
	f.Add(int64(1), int64(-1))
	f.Add(int64(math.MaxInt64), int64(1))
	f.Add(int64(math.MinInt64), int64(math.MinInt64))
	f.Fuzz(func(t *testing.T, a, b int64) {
		want := new(big.Int).Add(big.NewInt(a), big.NewInt(b))
		if most := big.NewInt(math.MaxInt64); want.Cmp(most) > 0 {
			want = most
		}
		if least := big.NewInt(math.MinInt64); want.Cmp(least) < 0 {
			want = least
		}
		if got := Money(a).Plus(Money(b)); int64(got) != want.Int64() {
			t.Errorf("%d + %d is %d, want %d", a, b, int64(got), want)
		}
	})
}
