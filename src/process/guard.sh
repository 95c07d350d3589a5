# Waits until the process at the other end of standard input is gone, then kills what that process
# has left. $1 is the leading part of the marks that the process gives its steps. The file at
# standard output lists process groups, one a line; a line may be blank.
trap '' HUP INT QUIT TERM TSTP
read -r _
while read -r group; do
    [ -z "$group" ] || kill -s KILL -- "-$group"
done <&1

# Repeats until it finds no process, since a process may fork during the search. The number of
# rounds is limited, because some processes cannot be killed. The kernel hands out process numbers
# in a circle, so a number that was just read does not yet belong to another process.
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
