package bench

import "fmt"

// also adds what went wrong while an error was dealt with, on the same line.
func also(err, then error) error {
	switch {
	case then == nil:
		return err
	case err == nil:
		return then
	}
	return fmt.Errorf("%w; and then: %w", err, then)
}
