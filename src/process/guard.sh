# Waits until the process at the other end of standard input is gone, then kills what it has left. $1 is that process's own part of
# the numbers that its steps bear. Lines of the file that is standard output are process groups, or blank.
trap '' HUP INT QUIT TERM TSTP
read -r _
while read -r group; do
    [ -z "$group" ] || kill -s KILL -- "-$group"
done <&1

# Rounds until nobody is found, since a process may fork while it is looked for. One that cannot be killed ends them, too. Process
# numbers are handed out in a circle, so that one which was read a moment ago has not come round to somebody else.
sweep() {
    round=0
    while [ $((round += 1)) -le 120 ]; do
        found=
        for file in $(grep -ls -e "$2" /proc/[0-9]*/"$1"); do
            pid=${file#/proc/} pid=${pid%/*} state=
            read -r state <"/proc/$pid/stat"
            case ${state##*) } in [XZ]*) ;; *) found="$found $pid" ;; esac
        done
        [ "$found" ] || return
        kill -s KILL $found
        [ $round -lt 100 ] || sleep 1
    done
}
sweep limits "^Max file locks  *$1[0-9]\{6\} "
sweep environ "[A-Z]_ID=$1[0-9]\{6\}"
