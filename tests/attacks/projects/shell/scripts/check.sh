# Holds what total.sh prints for each case against what is expected.
set -u
PATH="$PWD/bin:$PATH"
. scripts/compare.sh
for input in cases/*.in; do
    name=$(basename "$input" .in)
    compare "$input" "expected/$name.out" || exit 1
done
