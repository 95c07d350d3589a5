// Package half halves.
package half

// Of is one of two.
func Of(n int) int {
	return n / 2
}
