// Package parts is what became of a job's chunks: it joins the journals of a chunk into its part,
// knows which parts are there, sums them up, and makes files of them.
//
// It promises that a part is created once and whole, with one line for each line of its chunk that
// was asked or skipped, in the order of the input; that a part that is not what was written is
// found out when it is read; and that the files made of all parts are those that one process
// would have written with --order input. Memory is that of one chunk.
//
//	journals of work/7 ─Join─▶ lines in order ─Write─▶ parts/000000/007    the commit
//	                                                     │      └ a footer: counts, costs, sum
//	   Ledger: which are there ◀── lists, by thousands ──┤
//	   Ledger.Settle: sums of a thousand ─▶ sums/000000 ─┼─▶ Finish ─▶ DONE
//	                                                     └─ Fetch ─▶ results.jsonl, results.errors.jsonl
//
// Of a bucket, a job of n chunks asks: n parts to be created, n footers to be read and n/1000 sums
// to be created once; a list of the parts of folders that are not whole, a thousand a request, each
// time somebody looks; and n parts to be read for files. 16 requests are under way at most.
//
// A round that tries again what failed adds parts/000000/007.r1 with those lines alone; of each
// line the last round counts.
package parts
