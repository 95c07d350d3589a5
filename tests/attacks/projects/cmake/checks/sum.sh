test "$(sh "$(dirname "$0")/../src/total.sh" 2 3)" = 5
