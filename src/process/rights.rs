//! A check of whether programs in a sandbox can write in a folder at all. In a sandbox even root
//! has only the rights of an ordinary user. So fledge cannot work in a checkout that belongs to
//! another user, and it reports that before anything is spent.

use rustix::fs::{Access, access};
use rustix::process::{getegid, geteuid, getgroups};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The reason why tools cannot write in a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unwritable {
    /// The reason in one line, with the users involved.
    pub why: String,
    /// The remedy in one line.
    pub hint: String,
}

/// Returns why programs in a sandbox cannot write in this folder. `None` if they can.
pub fn unwritable(workspace: &Path) -> Option<Unwritable> {
    let meta = workspace.metadata().ok()?;
    let (own, owner, group) = (geteuid().as_raw(), meta.uid(), meta.gid());
    let can = if geteuid().is_root() { is_given(&meta) } else { may_be_written(workspace) };
    let shown = workspace.display();
    match can {
        true => None,
        false if own != owner => Some(Unwritable {
            why: format!(
                "{shown} belongs to user {owner}, but fledge runs as user {own}: \
                 programs in the sandbox cannot write there"
            ),
            hint: format!(
                "run fledge as user {owner} (`setpriv --reuid {owner} --regid {group} --clear-groups fledge …`), \
                 or `chown -R {own} {shown}`, or use --sandbox off"
            ),
        }),
        false => Some(Unwritable {
            why: format!("{shown} is not writable for user {own}, who owns it"),
            hint: format!("`chmod u+rwx {shown}`, or mount it writable"),
        }),
    }
}

/// Returns whether the folder's mode lets this user create files in it, without any privileges.
fn is_given(meta: &Metadata) -> bool {
    const MAKING: u32 = 0o3;
    let has_group =
        |group| getegid().as_raw() == group || getgroups().is_ok_and(|all| all.iter().any(|it| it.as_raw() == group));
    let bits = match () {
        () if meta.uid() == geteuid().as_raw() => meta.mode() >> 6,
        () if has_group(meta.gid()) => meta.mode() >> 3,
        () => meta.mode(),
    };
    bits & MAKING == MAKING
}

fn may_be_written(folder: &Path) -> bool {
    access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_folder_that_its_mode_closes_cannot_be_written_not_even_by_root() {
        let folder = crate::test_support::temp_dir();
        assert_eq!(unwritable(folder.path()), None);
        fs::set_permissions(folder.path(), Permissions::from_mode(0o555)).unwrap();
        let found = unwritable(folder.path()).unwrap();
        assert!(found.why.contains("who owns it") && found.hint.contains("chmod"), "{found:?}");
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    }
}
