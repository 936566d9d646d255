// Package bench measures one workload over several transports, so that their
// results can stand side by side.
//
// Two processes take part. The client (the active side) asks; the server (the
// passive side) answers. They agree on everything over one control connection
// (see Control), open a data connection for each transport (see Transport), and
// run Tasks on it: so many messages of one size by one operation, with the same
// depth and the same checked contents whatever the transport is.
//
// The transports live in packages of their own (tcpnet, verbsnet), what is
// shown to people and programs in package report.
package bench
