// Package same compares.
package same

// Int fails a test where two figures differ.
func Int(t interface{ Fatalf(string, ...any) }, is, ought int) {
	if is != ought {
		t.Fatalf("%d is not %d", is, ought)
	}
}
