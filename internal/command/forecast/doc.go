// Package forecast says how long a batch will take. It runs the real machine in virtual time
// against the simulated provider. The forecast therefore is what the coordinator does, with
// its slow start and its reserve.
//
// It promises that no call is made, that the same batch gives the same forecast,
// and that a batch of any size takes a bounded sample of memory and a few seconds.
//
//	calls ─Add─▶ Sample ─▶ Run ─▶ machine ◀─────Ready───── world ──▶ gate: sim.Model
//	              (a part of the items,    ─────Settled──▶   │        (requests and tokens,
//	               all of the totals)                        ▼         input, output)
//	                                             Forecast: time, and how full each limit was
package forecast
