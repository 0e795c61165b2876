// Package parts handles the results of a job's chunks: it joins the journals of a chunk into its part,
// knows which parts exist, sums them up, and makes files of them.
//
// A part is created once and whole. It has one line for each line of its chunk that was asked or skipped,
// in the order of the input. Reading a part detects any change since it was written. The files made of
// all parts are those that one process would have written with --order input. The package holds one
// chunk in memory.
//
//	journals of work/7 ─Join─▶ lines in order ─Write─▶ parts/000000/007    the commit
//	                                                     │      └ a footer: counts, costs, sum
//	   Ledger: which are there ◀── lists, by thousands ──┤
//	   Ledger.Settle: sums of a thousand ─▶ sums/000000 ─┼─▶ Finish ─▶ DONE
//	                                                     └─ Fetch ─▶ results.jsonl, results.errors.jsonl
//
// In a bucket, a job of n chunks costs these requests. Once it creates n parts, reads n footers and creates
// n/1000 sums. Each look lists the parts of folders that are not whole, a thousand a request. Files take n
// reads of parts. At most 16 requests are under way.
//
// A round that tries failed items again adds parts/000000/007.r1 with those lines alone. Of each line the
// last round counts.
package parts
