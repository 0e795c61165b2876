package observe

import "math"

// amounts holds what ended in some time: items, their tokens and their cost. It also holds the
// seconds of it in which a limit on tokens, or on input tokens, held the lane or the run back.
type amounts struct{ items, input, output, usd, byTokens, byInput float64 }

func (a amounts) plus(b amounts) amounts {
	return amounts{
		a.items + b.items, a.input + b.input, a.output + b.output, a.usd + b.usd, a.byTokens + b.byTokens, a.byInput + b.byInput,
	}
}

func (a amounts) minus(b amounts) amounts { return a.plus(b.times(-1)) }

func (a amounts) times(x float64) amounts {
	return amounts{a.items * x, a.input * x, a.output * x, a.usd * x, a.byTokens * x, a.byInput * x}
}

// A block is a stretch of time, of span seconds, and what ended in it.
type block struct {
	span float64
	amounts
}

func (b block) rate() float64 { return b.items / b.span }

// Blocks, in seconds. They are of 30 s, long enough for the items of a slow run to be counted
// and for the answers of a fast one to mix. A run begins with blocks of an eighth of that, so
// that after 20 s there are five. Each time there are 16, neighbours become one, until they
// have their full length. So there are 8 to 16 in the first four minutes, and the spread does
// not depend on their length.
const (
	paceSpan    = 30.0
	firstSpan   = paceSpan / 8
	growAt      = 16
	mostBlocks  = 240      // two hours: what is older weighs less than 1/250
	paceHalf    = 15 * 60. // seconds after which a block weighs half as much
	spreadPrior = 0.3      // spread of 30 s blocks, and correlation of neighbours, while few are known
)

// A pace is the speed at which items ended, in blocks, and how surely it goes on. The zero
// value knows nothing yet.
type pace struct {
	blocks     []block // oldest first
	span       float64 // of a block
	open       block   // is being filled
	totalSpan  float64 // seconds that were ever counted
	blockCount int     // blocks that were ever closed, in blocks as they are now

	recent amounts // of the blocks, weighed
	weight float64 // seconds, weighed
	noise  float64 // seconds: spread² of a block, times its span, times the effect of neighbours
}

// add counts span seconds, and what ended in them.
func (p *pace) add(span float64, a amounts) {
	if span <= 0 {
		return
	}
	if p.span == 0 {
		p.span, p.noise = firstSpan, spreadPrior*spreadPrior*paceSpan*together(spreadPrior)
	}
	p.totalSpan += span
	p.open.span += span
	p.open.amounts = p.open.plus(a)
	if p.open.span < p.span-0.5*span { // the nearest of the moments at which something is counted
		return
	}
	p.closeBlock()
}

// closeBlock ends the block that is being filled, and weighs all blocks anew. Once there are growAt
// short blocks, neighbours are joined in pairs, and later blocks are twice as long.
func (p *pace) closeBlock() {
	if len(p.blocks) == mostBlocks {
		p.blocks = append(p.blocks[:0], p.blocks[1:]...)
	}
	p.blocks = append(p.blocks, p.open)
	p.open = block{}
	p.blockCount++
	if len(p.blocks) == growAt && p.span < paceSpan { // one block of each two
		for i := range growAt / 2 {
			a, b := p.blocks[2*i], p.blocks[2*i+1]
			p.blocks[i] = block{a.span + b.span, a.plus(b.amounts)}
		}
		p.blocks = p.blocks[:growAt/2]
		p.blockCount = growAt / 2
		p.span *= 2
	}
	// A half-life of 15 min makes the end follow a limit that has changed, and lets waves of
	// refusals average out.
	p.recent, p.weight = amounts{}, 0
	age := 0.0
	for i := len(p.blocks) - 1; i >= 0; i-- {
		b := &p.blocks[i]
		weight := math.Exp2(-(age + b.span/2) / paceHalf)
		p.weight += weight * b.span
		p.recent = p.recent.plus(b.times(weight))
		age += b.span
	}
	p.noise = p.largestNoise()
}

// largestNoise returns the largest noise of the blocks, taken singly and joined in groups of two,
// four and eight. In short blocks a slow drift hides behind items that happen to end a little
// sooner.
func (p *pace) largestNoise() float64 {
	mean := p.recent.items / p.weight
	if mean == 0 {
		return p.noise
	}
	most := 0.0
	for join := 1; join == 1 || join <= 8 && len(p.blocks) >= leastJoined*join; join *= 2 {
		most = max(most, p.noiseOfGroups(join, mean))
	}
	return most
}

// noiseOfGroups returns the noise of the blocks, joined in groups of that size. While the groups
// are few, it is drawn towards the usual noise.
func (p *pace) noiseOfGroups(size int, mean float64) float64 {
	squares, products, previous, n := 0.0, 0.0, 0.0, 0.0
	for i := len(p.blocks) % size; i < len(p.blocks); i += size {
		var b block
		for _, of := range p.blocks[i : i+size] {
			b = block{b.span + of.span, b.plus(of.amounts)}
		}
		deviation := b.rate()/mean - 1
		squares += deviation * deviation
		products += deviation * previous
		previous = deviation
		n++
	}
	correlation := 0.0
	if squares > 0 {
		correlation = products / squares
	}
	correlation = (n*correlation + correlationWeight*spreadPrior) / (n + correlationWeight)
	squares = (squares*p.span*float64(size) + spreadWeight*spreadPrior*spreadPrior*paceSpan) / (n + spreadWeight)
	return squares * together(min(mostCorrelation, max(leastCorrelation, correlation)))
}

// The weights of the usual spread and the usual correlation, in blocks. The bounds of the
// correlation of neighbours. The least number of joined blocks that have a spread.
const (
	spreadWeight      = 0.5
	correlationWeight = 4
	leastCorrelation  = -0.3 // waves of refusals take turns with good times
	mostCorrelation   = 0.95
	leastJoined       = 8
)

// together returns the factor by which the mean of blocks spreads more than the mean of
// independent ones, where neighbours correlate by rho.
func together(rho float64) float64 { return (1 + rho) / (1 - rho) }

// now returns what ended lately, weighed, and the time that took, the open block included.
func (p *pace) now() (amounts, float64) {
	return p.recent.plus(p.open.amounts), p.weight + p.open.span
}

// rate returns the items a second; 0 if no rate is known.
func (p *pace) rate() float64 {
	a, span := p.now()
	if span == 0 {
		return 0
	}
	return a.items / span
}

// The part of the end's uncertainty that the run's own noise does not show. A limit that drifts,
// a neighbour that wakes up: such things come with time that has not been seen yet.
const (
	unseenAlways = 0.012
	unseenAhead  = 0.016 // times the root of how much longer the rest is than what was seen
	fewBlocks    = 4
	mostSpread   = 1.0 // an interval from a quarter to four times as long says all that can be said
)

// deviation returns the standard deviation of the logarithm of the time left. rest is the expected
// time in seconds.
func (p *pace) deviation(rest float64) float64 {
	_, span := p.now()
	if span == 0 {
		return mostSpread
	}
	if rest <= 0 {
		return 0
	}
	unseen := unseenAlways + unseenAhead*math.Sqrt(rest/p.totalSpan)
	v := p.noise*(1/rest+1/span) + unseen*unseen
	return min(mostSpread, math.Sqrt(v*(1+fewBlocks/float64(max(1, p.blockCount)))))
}
