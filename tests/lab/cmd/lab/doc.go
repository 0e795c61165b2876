// Command lab prints how laws of admission do against simulated providers, in
// virtual time.
//
// It promises the same table each time: nothing in it depends on the machine it
// runs on.
//
//	-scenario, -law, -seeds ─▶ lab.Table ─▶ ratio · refusals (other calls wasted)
package main
