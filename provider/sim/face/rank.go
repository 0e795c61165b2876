package face

import (
	"cmp"
	"slices"
)

// Rank is a document's place in an answer to a query.
type Rank struct {
	Index int     // of the document in the request
	Score float64 // from 0 to 1
}

// Ranks returns the documents by how well they answer the query, the best first, and at most
// top of them; 0 is all. A score depends on both texts alone: the same texts always have the
// same score, and other texts another.
func Ranks(query string, documents []string, top int) []Rank {
	ranks := make([]Rank, len(documents))
	for i, document := range documents {
		ranks[i] = Rank{i, float64(Mix(Sum(query, "\n", document))>>11) / (1 << 53)}
	}
	slices.SortStableFunc(ranks, func(a, b Rank) int { return cmp.Compare(b.Score, a.Score) })
	if top > 0 && top < len(ranks) {
		ranks = ranks[:top]
	}
	return ranks
}
