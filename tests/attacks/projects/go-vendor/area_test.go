package area

import (
	"fmt"
	"os"
	"testing"

	"example.com/same"
)

func TestNothing(t *testing.T) {
	same.Int(t, Of(0, 0), 0)
}

func TestCases(t *testing.T) {
	text, err := os.Open("testdata/cases.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	for {
		var width, height, area int
		if _, err := fmt.Fscanln(text, &width, &height, &area); err != nil {
			return
		}
		same.Int(t, Of(width, height), area)
	}
}

func TestTwoByThree(t *testing.T) {
	same.Int(t, Of(2, 3), 6)
}
