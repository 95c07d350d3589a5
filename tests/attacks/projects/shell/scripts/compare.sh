# compare INPUT EXPECTED
compare() {
    sh total.sh <"$1" | diff "$2" -
}
