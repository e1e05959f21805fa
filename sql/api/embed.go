// Package api holds the repeatable SQL: every function, view and grant that an operator sees. The migration runner
// applies the files in the order of ORDER whenever one of them has changed.
package api

import "embed"

// FS holds the files and ORDER.
//
//go:embed *.sql ORDER
var FS embed.FS
