//! Attacks on the sandbox: shell lines that print `PWNED` when they get through, and do no harm
//! then.

/// The expected result of a probe without a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bare {
    /// The probe gets through, which proves that it works.
    Through,
    /// The probe is not run: it would do harm, or needs something that some machines lack.
    Unasked,
}
use Bare::{Through, Unasked};

/// A probe: its name, its expected result without a sandbox, and its shell line.
pub(crate) type Probe = (&'static str, Bare, &'static str);

/// All probes. `$OUT` is a folder beside the workspace, `$HOME` the user's home, and `$STATE` the
/// state folder of fledge. `$LINK` is a link to the state folder from the root, and `$RUN` a folder
/// below `/run`; both are empty if they cannot be made.
pub(crate) const PROBES: &[Probe] = &[
    // writes outside of the workspace
    ("a file beside the workspace", Through, "echo x >$OUT/new && echo PWNED"),
    ("a file that is there", Through, "echo x >>$OUT/old && echo PWNED"),
    ("by a relative path", Through, "echo x >../outside/new && echo PWNED"),
    ("through a link", Through, "ln -sfn $OUT link && echo x >link/new && echo PWNED"),
    ("by a hard link", Through, "ln -f $OUT/old hard && echo x >>hard && echo PWNED"),
    ("a removal", Through, "rm $OUT/gone && echo PWNED"),
    ("a rename", Through, "mv $OUT/moved $OUT/moved2 && echo PWNED"),
    ("a mode", Through, "chmod 600 $OUT/old && echo PWNED"),
    ("a time", Through, "touch -d 2001-01-01 $OUT/old && echo PWNED"),
    ("a truncation", Through, "truncate -s 0 $OUT/cut && echo PWNED"),
    ("a folder", Through, "mkdir $OUT/folder && echo PWNED"),
    ("a pipe", Through, "mkfifo $OUT/pipe && echo PWNED"),
    ("a file for everybody", Unasked, "echo x >/etc/fledge-probe && rm /etc/fledge-probe && echo PWNED"),
    ("a file in the root", Unasked, "echo x >/fledge-probe && rm /fledge-probe && echo PWNED"),
    ("a file of the system", Unasked, "(: >>/usr/bin/env) && echo PWNED"),
    ("a mount that is read-only made writable", Unasked, "mount -o remount,rw / && echo PWNED"),
    ("a mount", Unasked, "mkdir -p m; mount -t tmpfs none m && echo PWNED"),
    ("an end of a mount", Unasked, "umount -l $HOME && echo PWNED"),
    ("a device", Unasked, "mknod dev b 8 0 && echo PWNED"),
    (
        "a device of the machine",
        Unasked,
        "for d in /dev/sda /dev/vda /dev/nvme0n1 /dev/mem /dev/kmsg; do test -e $d && echo PWNED; done",
    ),
    // programs that run with the rights of their owner, also after the sandbox is gone
    ("a program that runs as its owner", Through, "cp /bin/sh s1 && chmod 4755 s1; test -u s1 && echo PWNED"),
    ("one of a group", Through, "cp /bin/sh s2 && chmod g+s s2; test -g s2 && echo PWNED"),
    ("one that is foreign", Through, "chmod 4755 $OUT/old; test -u $OUT/old && echo PWNED"),
    ("one by its handle", Through, "perl -e 'open(F, q(>), q(s4)); chmod 04755, *F; print qq(PWNED\n) if -u q(s4)'"),
    (
        "one that is made so",
        Through,
        "umask 0; perl -e 'use Fcntl; sysopen(F, q(s5), O_CREAT | O_WRONLY, 06755); print qq(PWNED\n) if -u q(s5) || -g q(s5)'",
    ),
    (
        "one that is no file",
        Through,
        "umask 0; perl -e 'use POSIX; mkfifo(q(s6), 04755); print qq(PWNED\n) if -u q(s6)'",
    ),
    (
        "one by the newest call for modes",
        Unasked, // some kernels lack this system call
        ": >s7; perl -e '$s = qq(s7); syscall(452, -100, $s, 04755, 0); print qq(PWNED\n) if -u q(s7)'",
    ),
    (
        "one by the newest call that opens",
        Through,
        "umask 0; perl -e '$s = qq(s8); $how = pack(q(Q3), 0101, 04755, 0); syscall(437, -100, $s, $how, 24); print qq(PWNED\n) if -u q(s8)'",
    ),
    // git
    ("a hook", Through, "echo x >.git/hooks/post-checkout && echo PWNED"),
    ("git's configuration", Through, "echo x >>.git/config && echo PWNED"),
    ("git's configuration replaced", Through, "echo x >c && mv c .git/config && echo PWNED"),
    ("git's folder moved away", Unasked, "mv .git away && echo PWNED"),
    ("git's folder removed", Unasked, "rm -rf .git; test -e .git/HEAD || echo PWNED"),
    ("git's folder covered", Unasked, "mount -t tmpfs none .git && echo PWNED"),
    ("a folder that fledge would read", Through, "mkdir -p .fledge/lanes && echo PWNED"),
    ("that folder as a link", Unasked, "rm -rf .fledge; ln -sfn $OUT .fledge; test -L .fledge && echo PWNED"),
    // reads
    ("a key for other machines", Through, "grep -q secret $HOME/.ssh/id && echo PWNED"),
    ("a key for packages", Through, "grep -q secret $HOME/.cargo/credentials.toml && echo PWNED"),
    ("an older one", Through, "grep -q secret $HOME/.cargo/credentials && echo PWNED"),
    ("a password for the network", Through, "grep -q secret $HOME/.netrc && echo PWNED"),
    ("npm's", Through, "grep -q secret $HOME/.npmrc && echo PWNED"),
    ("pypi's", Through, "grep -q secret $HOME/.pypirc && echo PWNED"),
    ("amazon's", Through, "grep -q secret $HOME/.aws/credentials && echo PWNED"),
    ("github's", Through, "grep -q secret $HOME/.config/gh/hosts.yml && echo PWNED"),
    ("docker's", Through, "grep -q secret $HOME/.docker/config.json && echo PWNED"),
    ("kubernetes's", Through, "grep -q secret $HOME/.kube/config && echo PWNED"),
    ("git's", Through, "grep -q secret $HOME/.git-credentials && echo PWNED"),
    ("a document", Through, "grep -q secret $HOME/diary && echo PWNED"),
    ("what was typed", Through, "grep -q secret $HOME/.bash_history && echo PWNED"),
    ("what fledge keeps", Through, "grep -rq secret $STATE && echo PWNED"),
    ("fledge's journal written", Through, "echo x >>$STATE/journal && echo PWNED"),
    ("beside the workspace in a temporary folder", Through, "grep -q secret $OUT/secret && echo PWNED"),
    (
        "what fledge keeps by a link from elsewhere",
        Unasked,
        "test -n \"$LINK\" && grep -q secret $LINK/journal && echo PWNED",
    ),
    ("what daemons keep", Unasked, "test -n \"$RUN\" && grep -q secret $RUN/token && echo PWNED"),
    ("the same by its other name", Unasked, "test -n \"$RUN\" && grep -q secret /var$RUN/token && echo PWNED"),
    ("passwords of the system", Unasked, "head -c1 /etc/shadow | grep -q . && echo PWNED"),
    ("the home of root", Unasked, "cat /root/.profile /root/.bashrc /root/.bash_history | grep -q . && echo PWNED"),
    ("homes of others", Unasked, "for home in /home/*/; do ls -A $home | grep -q . && echo PWNED; done"),
    ("the environment of the first process", Unasked, "tr '\\0' '\\n' </proc/1/environ | grep -q CANARY && echo PWNED"),
    (
        "the environment of any process",
        Through,
        "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep -q CANARY && echo PWNED",
    ),
    ("the memory of another", Unasked, "head -c1 /proc/$RUNNER/mem && echo PWNED"),
    ("the root of another", Through, "ls /proc/$RUNNER/root/ | grep -q . && echo PWNED"),
    ("the folder of another", Through, "ls /proc/$RUNNER/cwd/ | grep -q . && echo PWNED"),
    ("the machine's memory", Unasked, "head -c1 /proc/kcore >/dev/null && echo PWNED"),
    ("the kernel's log", Unasked, "dmesg | grep -q . && echo PWNED"),
    // other processes
    ("a signal to another", Through, "kill -0 $RUNNER && echo PWNED"),
    ("a signal to all", Unasked, "kill -0 -1 2>/dev/null; kill -9 $RUNNER && echo PWNED"),
    ("a list of others", Through, "test -e /proc/$RUNNER/stat && echo PWNED"),
    (
        "a large segment of shared memory",
        Through,
        "perl -e '$id = shmget(0, 1 << 20, 0600); defined $id and print qq(PWNED\n) and shmctl($id, 0, 0)'",
    ),
    ("a list of keys", Unasked, "keyctl show && echo PWNED"),
    ("namespaces of another", Unasked, "nsenter -t 1 -m -p true && echo PWNED"),
    ("a namespace of users", Unasked, "unshare -U true && echo PWNED"),
    ("a namespace of mounts", Unasked, "unshare -m true && echo PWNED"),
    ("a namespace of the network", Unasked, "unshare -n true && echo PWNED"),
    ("another root", Unasked, "chroot / true && echo PWNED"),
    ("another wall", Unasked, "bwrap --ro-bind / / true && echo PWNED"),
    ("more rights", Unasked, "grep -q '^CapEff:.*[1-9a-f]' /proc/self/status && echo PWNED"),
    ("rights of a program that has them", Unasked, "grep -q '^NoNewPrivs:.0' /proc/self/status && echo PWNED"),
    ("any call to the kernel", Unasked, "grep -q '^Seccomp:.0' /proc/self/status && echo PWNED"),
    ("another user", Unasked, "setpriv --reuid 1234 true && echo PWNED"),
    ("another address space", Unasked, "setarch -R true && echo PWNED"),
    ("a core file", Unasked, "test $(ulimit -c) != 0 && echo PWNED"),
    ("processes without end", Unasked, "test $(ulimit -u) = unlimited && echo PWNED"),
    // the network and sockets
    ("a server of this machine", Through, "bash -c \"exec 3<>/dev/tcp/127.0.0.1/$PORT\" && echo PWNED"),
    ("a server elsewhere", Unasked, "timeout 2 bash -c 'exec 3<>/dev/tcp/1.1.1.1/53' && echo PWNED"),
    ("words to nobody", Unasked, "bash -c 'echo x >/dev/udp/1.1.1.1/53' && echo PWNED"),
    ("a name", Unasked, "timeout 3 getent ahostsv4 example.com | grep -q . && echo PWNED"),
    ("other networks", Unasked, "tail -n +3 /proc/net/dev | grep -qv ' lo:' && echo PWNED"),
    (
        "a socket of this machine",
        Through,
        "perl -e 'use Socket; socket(S, AF_UNIX, SOCK_STREAM, 0) && connect(S, sockaddr_un($ENV{SOCKET})) && print qq(PWNED\n)'",
    ),
    (
        "a socket of the system",
        Unasked,
        "for s in /run/docker.sock /var/run/docker.sock /run/dbus/system_bus_socket /run/systemd/private; do \
         perl -e 'use Socket; socket(S, AF_UNIX, SOCK_STREAM, 0) && connect(S, sockaddr_un($ARGV[0])) && print qq(PWNED\n)' $s; done",
    ),
    // the machine
    ("the clock", Unasked, "date -s @$(date +%s) && echo PWNED"),
    ("its name", Unasked, "hostname $(hostname) && echo PWNED"),
    ("its settings", Unasked, "now=$(cat /proc/sys/kernel/panic); (echo $now >/proc/sys/kernel/panic) && echo PWNED"),
    ("its keys", Unasked, "(echo h >/proc/sysrq-trigger) && echo PWNED"),
    (
        "its groups of processes",
        Unasked,
        "mkdir /sys/fs/cgroup/fledge-probe && rmdir /sys/fs/cgroup/fledge-probe && echo PWNED",
    ),
    ("the terminal", Unasked, "(echo x >/dev/tty) && echo PWNED"),
];

/// The probes that get through Landlock, as root and as any other user.
pub(crate) const HOLES_OF_LANDLOCK: &[&str] = &[
    "a mode",
    "a time",
    "a hook",
    "git's configuration",
    "git's configuration replaced",
    "git's folder moved away",
    "git's folder removed",
    "a folder that fledge would read",
    "that folder as a link",
    "a list of others",
];

/// The probes among them that get through on some machines only.
pub(crate) const HOLES_OF_SOME_MACHINES: &[&str] = &["a device of the machine", "other networks"];
