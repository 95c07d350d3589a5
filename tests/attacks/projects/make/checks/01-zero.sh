test "$(sh build/total.sh 0 0)" = 0
