test "$(sh "$(dirname "$0")/../src/total.sh" 0 0)" = 0
