// Package manifests tests the examples in examples/cluster for which this repository has no
// cluster: it checks what kubectl and docker compose would check before anything starts.
//
// It promises that a current server knows every field of each manifest, that each has what its
// schema demands, and that it fits the others: selectors, ports, volumes, settings and secrets.
//
//	examples/cluster/kubernetes/*.yaml ─┬─ strict decoding into k8s.io/api: no unknown field
//	                  secret.sh ────────┤─ the API's OpenAPI schemas: types, what is required
//	                                    └─ each reference is to something that is there
//	examples/cluster/compose.yaml ────── compose-go: schema, interpolation, dependencies
//
// The schemas are those that client-go carries for its own tests (core, apps and batch). Policy's
// is not among them: there, strict decoding must do. Checks that only a server can make are left
// out.
package manifests
