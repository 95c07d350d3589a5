//! System calls that are forbidden in a sandbox. They look into other processes, change mounts, or
//! lead to parts of the kernel that ordinary programs do not need and attackers use.

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;
type Refused = seccompiler::BackendError;

/// Calls that are refused with any arguments.
const NEVER: &[i64] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_madvise,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_userfaultfd,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_personality,
];
#[cfg(target_arch = "x86_64")]
const NEVER_HERE: &[i64] = &[
    libc::SYS_kexec_file_load,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS_ustat,
];
#[cfg(not(target_arch = "x86_64"))]
const NEVER_HERE: &[i64] = &[];

/// Flags by which a new process would get a new namespace.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];
/// Modes by which a program runs with the rights of its file's owner or group. They would also take
/// effect outside the sandbox, for any user who starts the program.
const AS_OWNER: [u32; 2] = [libc::S_ISUID, libc::S_ISGID];
/// System calls that set the mode of a file, each with the index of the mode among its arguments.
const MODES: &[(i64, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (libc::SYS_fchmodat2, 2),
    (libc::SYS_mkdirat, 2),
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mkdir, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
];
/// System calls that set the mode only if they create a file, each with the index of the flags and
/// that of the mode.
const OPENS: &[(i64, u8, u8)] = &[
    (libc::SYS_openat, 2, 3),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1, 2),
];
/// Flags that create a file. Of `O_TMPFILE`, only the bit that `O_DIRECTORY` does not share.
const MAKING: [i32; 2] = [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY];
/// Requests of `ioctl` that put characters into a terminal (`TIOCSTI`) or its clipboard
/// (`TIOCLINUX`).
const TYPING: [u32; 2] = [0x5412, 0x541c];

/// The largest segment of shared memory (shmget(2)), in bytes. Linux has at most 4096 segments.
const LARGEST_SEGMENT: u64 = 64 << 10;

/// Forbids the calls to this process and to all that it starts. With `sockets`, it can make network
/// sockets, in a private namespace or because the network is granted. With `alone`, it cannot make
/// sockets that reach a path, since nothing else separates it from those of the machine.
pub(super) fn forbid(sockets: bool, alone: bool) -> Result<(), String> {
    let message = |error: &dyn std::fmt::Display| format!("cannot forbid system calls: {error}");
    let denied =
        denied(sockets, alone).and_then(|rules| program(rules, libc::EPERM)).map_err(|error| message(&error))?;
    // These calls take their arguments from memory, which no filter can read. Programs that find
    // them missing use the older calls.
    let absent = [libc::SYS_clone3, libc::SYS_openat2].map(|call| (call, Vec::new()));
    let absent = program(Rules::from(absent), libc::ENOSYS).map_err(|error| message(&error))?;
    [denied, absent].iter().try_for_each(seccompiler_apply).map_err(|error| message(&error))
}

fn seccompiler_apply(program: &BpfProgram) -> Result<(), seccompiler::Error> {
    seccompiler::apply_filter(program)
}

fn program(rules: Rules, errno: i32) -> Result<BpfProgram, Refused> {
    let errno = SeccompAction::Errno(errno.unsigned_abs());
    SeccompFilter::new(rules, SeccompAction::Allow, errno, std::env::consts::ARCH.try_into()?)?.try_into()
}

fn denied(sockets: bool, alone: bool) -> Result<Rules, Refused> {
    let mut rules: Rules = NEVER.iter().chain(NEVER_HERE).map(|call| (*call, Vec::new())).collect();
    let flags = NAMESPACES.map(|flag| u64::from(flag.unsigned_abs()));
    let spaces =
        flags.map(|flag| rule(vec![condition(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(flag), flag)?]));
    rules.insert(libc::SYS_clone, spaces.into_iter().collect::<Result<_, _>>()?);
    let typing =
        TYPING.map(|request| rule(vec![condition(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, request.into())?]));
    rules.insert(libc::SYS_ioctl, typing.into_iter().collect::<Result<_, _>>()?);
    modes(&mut rules)?;
    // The memory of these segments belongs to no process, so fledge cannot count it.
    let is_large = condition(1, SeccompCmpArgLen::Qword, SeccompCmpOp::Gt, LARGEST_SEGMENT)?;
    rules.insert(libc::SYS_shmget, vec![rule(vec![is_large])?]);

    let mut families = Vec::new();
    if sockets {
        families.extend([libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]);
    }
    if !alone {
        families.push(libc::AF_UNIX);
    }
    let others = families
        .iter()
        .map(|family| condition(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, u64::from(family.unsigned_abs())));
    let others = others.collect::<Result<Vec<_>, _>>()?;
    let denied = if others.is_empty() { Vec::new() } else { vec![rule(others)?] };
    rules.insert(libc::SYS_socket, denied);
    if alone {
        rules.insert(libc::SYS_socketpair, datagrams()?);
    }
    #[cfg(target_arch = "x86_64")]
    {
        // The kernel may support the x32 ABI, which has other numbers for these calls, and
        // additional calls.
        const OTHER_FORM: i64 = 0x4000_0000;
        let doubles: Vec<i64> =
            rules.keys().copied().chain([libc::SYS_clone3, libc::SYS_openat2]).chain(512..=547).collect();
        rules.extend(doubles.into_iter().map(|call| (OTHER_FORM | call, Vec::new())));
    }
    Ok(rules)
}

/// Returns rules against pairs of datagram sockets: each end of a pair can send to any socket with
/// a path. The ends of other pairs reach only each other.
fn datagrams() -> Result<Vec<SeccompRule>, Refused> {
    const KIND: u64 = 0xf; // the rest of the argument is flags
    let kinds = [libc::SOCK_DGRAM, libc::SOCK_RAW].map(|kind| u64::from(kind.unsigned_abs()));
    let denied =
        kinds.map(|kind| rule(vec![condition(1, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(KIND), kind)?]));
    denied.into_iter().collect()
}

/// Adds rules that keep files from getting a mode in [`AS_OWNER`].
fn modes(rules: &mut Rules) -> Result<(), Refused> {
    let has = |argument, bits: u32| {
        condition(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(bits.into()), bits.into())
    };
    for (call, mode) in MODES {
        let denied = AS_OWNER.map(|bits| rule(vec![has(*mode, bits)?]));
        rules.insert(*call, denied.into_iter().collect::<Result<_, _>>()?);
    }
    for (call, flags, mode) in OPENS {
        let both = MAKING.iter().flat_map(|making| AS_OWNER.map(|bits| (making.unsigned_abs(), bits)));
        let denied = both.map(|(making, bits)| rule(vec![has(*flags, making)?, has(*mode, bits)?]));
        rules.insert(*call, denied.collect::<Result<_, _>>()?);
    }
    Ok(())
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, Refused> {
    SeccompRule::new(conditions)
}

fn condition(
    argument: u8,
    length: SeccompCmpArgLen,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, Refused> {
    SeccompCondition::new(argument, length, operator, value)
}
