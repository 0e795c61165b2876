// The acceptance tests of the cluster, apart from it: who imports the cluster gets none of what
// only they need.
module github.com/headrace/headrace/cluster/tests

go 1.26.0

require (
	github.com/headrace/headrace v0.0.0
	github.com/jonboulle/clockwork v0.5.0
	go.uber.org/goleak v1.3.0
)

require (
	github.com/gofrs/flock v0.13.1 // indirect
	github.com/tidwall/gjson v1.20.0 // indirect
	github.com/tidwall/match v1.1.1 // indirect
	github.com/tidwall/pretty v1.2.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace (
	github.com/headrace/headrace => ../..
	github.com/headrace/headrace/cluster => ../
)
