//! Notifications from the kernel: the paths where something happened, collected until fledge reads
//! them. Linux (inotify) needs a watch for each folder; other kernels watch a whole tree.

use notify::event::{AccessKind, AccessMode};
use notify::{Config, ErrorKind, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// True if each folder needs a watch.
const ASKS_EACH: bool = cfg!(any(target_os = "linux", target_os = "android"));
/// The maximum number of collected paths. After that, fledge checks the whole tree.
const MOST: usize = 4096;

/// The notifications received so far.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FsNotice {
    /// Absolute paths where something happened.
    pub(super) paths: BTreeSet<PathBuf>,
    /// True if something may have happened at any path.
    pub(super) anywhere: bool,
}

/// Received notifications, shared with the thread that receives them.
#[derive(Debug, Default)]
pub(super) struct FsHints {
    heard: Mutex<FsNotice>,
    bell: tokio::sync::Notify,
}

impl FsHints {
    /// Waits for a notification and returns everything received.
    pub(super) async fn next(&self) -> FsNotice {
        self.bell.notified().await;
        std::mem::take(&mut *self.heard.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add_event(&self, event: notify::Result<Event>) {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            // Opening and reading do not count. Closing a file after writing counts, because a
            // write through a memory mapping sends no other notification.
            Ok(Event { kind: EventKind::Access(kind), .. }) if kind != AccessKind::Close(AccessMode::Write) => return,
            Ok(event) if !event.need_rescan() && heard.paths.len() < MOST => heard.paths.extend(event.paths),
            Ok(_) | Err(_) => *heard = FsNotice { paths: BTreeSet::new(), anywhere: true },
        }
        self.bell.notify_one();
    }
}

/// A receiver of notifications. It is active until it is dropped.
#[derive(Debug)]
pub(super) struct FsEvents {
    watcher: Option<RecommendedWatcher>,
    /// The reason why it receives no notifications.
    pub(super) deaf_because: Option<String>,
}

impl FsEvents {
    /// Starts to watch `root`: only this folder where each folder needs a watch, otherwise the
    /// whole tree below it.
    pub(super) fn open(root: &Path, hints: Arc<FsHints>) -> Self {
        let config = Config::default().with_follow_symlinks(false);
        let mut ears = Self { watcher: None, deaf_because: None };
        match RecommendedWatcher::new(move |event| hints.add_event(event), config) {
            Ok(watcher) => ears.watcher = Some(watcher),
            Err(error) => ears.fail(&error),
        }
        if !ASKS_EACH {
            ears.ask(root, RecursiveMode::Recursive);
        }
        ears
    }

    /// Creates a receiver that never receives a notification.
    pub(super) fn deaf(why: String) -> Self {
        Self { watcher: None, deaf_because: Some(why) }
    }

    /// Watches this folder too.
    pub(super) fn listen(&mut self, folder: &Path) {
        if ASKS_EACH {
            self.ask(folder, RecursiveMode::NonRecursive);
        }
    }

    /// Stops watching this folder, which may no longer exist.
    pub(super) fn forget(&mut self, folder: &Path) {
        if let Some(watcher) = self.watcher.as_mut().filter(|_| ASKS_EACH) {
            let _it_may_be_gone = watcher.unwatch(folder);
        }
    }

    fn ask(&mut self, folder: &Path, mode: RecursiveMode) {
        let Some(watcher) = &mut self.watcher else { return };
        match watcher.watch(folder, mode) {
            Err(error) if !is_harmless(&error) => self.fail(&error),
            Ok(()) | Err(_) => {}
        }
    }

    /// Turns off all notifications. With only a part of them, fledge would miss changes.
    fn fail(&mut self, error: &notify::Error) {
        *self = Self::deaf(reason(error));
    }
}

/// Returns true if the folder is gone or cannot be entered. Nothing can change there that fledge
/// could read.
fn is_harmless(error: &notify::Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    match &error.kind {
        ErrorKind::PathNotFound => true,
        ErrorKind::Io(error) => matches!(error.kind(), NotFound | NotADirectory | PermissionDenied),
        _ => false,
    }
}

/// Describes the error and its remedy.
fn reason(error: &notify::Error) -> String {
    const TOO_MANY_OPEN: i32 = 24; // EMFILE: a user has few inotify instances
    match &error.kind {
        ErrorKind::MaxFilesWatch => "the kernel watches no more folders for this user (raise it: sysctl \
            fs.inotify.max_user_watches=524288)"
            .into(),
        ErrorKind::Io(error) if error.raw_os_error() == Some(TOO_MANY_OPEN) => {
            "the kernel lets this user have no more \
            watchers (raise it: sysctl fs.inotify.max_user_instances=1024)"
                .into()
        }
        _ => format!("the kernel cannot watch files here ({error})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use notify::event::{DataChange, Flag, ModifyKind};

    fn event(kind: EventKind, path: &str) -> notify::Result<Event> {
        Ok(Event::new(kind).add_path(path.into()))
    }

    async fn heard(events: impl IntoIterator<Item = notify::Result<Event>>) -> FsNotice {
        let hints = FsHints::default();
        events.into_iter().for_each(|event| hints.add_event(event));
        hints.bell.notify_one();
        hints.next().await
    }

    #[tokio::test]
    async fn what_was_only_opened_or_read_is_not_heard() {
        let events = [
            event(EventKind::Access(AccessKind::Open(AccessMode::Any)), "/opened"),
            event(EventKind::Access(AccessKind::Close(AccessMode::Read)), "/read"),
            event(EventKind::Access(AccessKind::Close(AccessMode::Write)), "/mapped"),
            event(EventKind::Modify(ModifyKind::Data(DataChange::Any)), "/written"),
        ];
        let expected = ["/mapped", "/written"].map(PathBuf::from).into();
        assert_eq!(heard(events).await, FsNotice { paths: expected, anywhere: false });
    }

    #[tokio::test]
    async fn lost_and_countless_notifications_mean_anywhere() {
        let anywhere = FsNotice { paths: BTreeSet::new(), anywhere: true };
        let lost = Event::new(EventKind::Other).set_flag(Flag::Rescan);
        assert_eq!(heard([Ok(lost)]).await, anywhere);
        let countless = (0..=MOST).map(|n| event(EventKind::Modify(ModifyKind::Any), &format!("/{n}")));
        assert_eq!(heard(countless).await, anywhere);
    }

    #[test]
    fn a_limit_of_the_kernel_is_told_with_what_to_do() {
        let (mut ears, limit) = (FsEvents::deaf(String::new()), notify::Error::new(ErrorKind::MaxFilesWatch));
        ears.fail(&limit);
        assert!(ears.deaf_because.unwrap().contains("sysctl fs.inotify.max_user_watches="));
        let instances = notify::Error::io(std::io::Error::from_raw_os_error(24));
        assert!(reason(&instances).contains("sysctl fs.inotify.max_user_instances="));
    }
}
