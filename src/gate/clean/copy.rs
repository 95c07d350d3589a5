//! Copies of folders, which share their blocks where the file system can.

use crate::process::{self, Invocation, ProcessEnd};
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Copies a folder with all times, modes and links.
pub(in crate::gate) async fn copy_tree(
    from: &Path,
    to: &Path,
    env: &[(String, String)],
    stop: &CancellationToken,
) -> Result<(), String> {
    let reflink = if cfg!(target_os = "linux") { &["-a", "--reflink=auto"][..] } else { &["-a"][..] };
    let mut args: Vec<String> = reflink.iter().map(|arg| (*arg).to_owned()).collect();
    args.extend([from, to].map(|path| path.to_string_lossy().into_owned()));
    let ended = process::run(
        Invocation {
            program: "cp".into(),
            args,
            dir: "/".into(),
            env: env.to_vec().into(),
            timeout: None,
            grace: Duration::ZERO,
            linger: Duration::ZERO,
            log: None,
            log_limit: 0,
        },
        stop,
        &|_| {},
    )
    .await;
    match ended.end {
        ProcessEnd::Exited(0) => Ok(()),
        ProcessEnd::Stopped => Err("stopped".into()),
        ProcessEnd::NotStarted(why) | ProcessEnd::Exceeded(why) => Err(why),
        ProcessEnd::Exited(_) | ProcessEnd::Signalled(_) | ProcessEnd::TimedOut => {
            Err(ended.output.text(500).trim_end().to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    #[tokio::test]
    async fn a_cache_is_copied_with_its_times_modes_and_links() {
        let dir = crate::test_support::temp_dir();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir_all(from.join("bin")).unwrap();
        fs::write(from.join("bin/tool"), "x").unwrap();
        fs::set_permissions(from.join("bin/tool"), Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink("tool", from.join("bin/link")).unwrap();
        let old = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        fs::File::options().write(true).open(from.join("bin/tool")).unwrap().set_modified(old).unwrap();
        let env = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
        copy_tree(&from, &to, &env, &CancellationToken::new()).await.unwrap();
        let meta = fs::metadata(to.join("bin/tool")).unwrap();
        assert_eq!((meta.permissions().mode() & 0o777, meta.modified().unwrap()), (0o755, old));
        assert_eq!(fs::read_link(to.join("bin/link")).unwrap(), Path::new("tool"));
    }
}
