module github.com/headrace/headrace/cluster

go 1.26.0

require github.com/headrace/headrace v0.0.0

replace github.com/headrace/headrace => ../
