# Prints, for each line of two numbers on standard input, their sum.
while read -r a b; do
    echo $((a - b))
done
