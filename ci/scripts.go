// Package ci carries the scripts that rdmalab needs where there is no clone of the repository.
package ci

import _ "embed"

// Setup is ci/setup, which installs packages.
//
//go:embed setup
var Setup string

// Kernel is ci/kernel, which prepares a kernel for the lab.
//
//go:embed kernel
var Kernel string
