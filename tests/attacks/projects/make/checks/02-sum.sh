test "$(sh build/total.sh 2 3)" = 5
