//! The committer and the git settings that a commit uses, as they were before the agent started.
//! Without a sandbox, or with one that leaves `.git` writable, the agent could change them.

use super::{DeliveryError, RepositoryHead, UserRepository};
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// The settings that a commit uses, with the default of git. A setting without a default is pinned
/// only if it is set.
const KEYS: [(&str, Option<&str>); 5] = [
    ("commit.gpgsign", Some("false")),
    ("core.attributesfile", None),
    ("core.autocrlf", Some("false")),
    ("core.filemode", Some("true")),
    ("i18n.commitencoding", Some("UTF-8")),
];
/// The identities that git computes, and the section of the keys that set each.
const WHO: [(&str, &str); 2] = [("GIT_AUTHOR_IDENT", "author"), ("GIT_COMMITTER_IDENT", "committer")];

impl UserRepository<'_> {
    /// Returns `head` with the configuration that a commit would use now.
    ///
    /// # Errors
    /// [`DeliveryError`] if git fails.
    pub async fn with_config(
        &self,
        head: RepositoryHead,
        stop: &CancellationToken,
    ) -> Result<RepositoryHead, DeliveryError> {
        Ok(RepositoryHead { config: self.config(stop).await?, ..head })
    }

    async fn config(&self, stop: &CancellationToken) -> Result<Vec<(String, String)>, DeliveryError> {
        let names: Vec<String> = KEYS.iter().map(|(key, _)| key.replace('.', "\\.")).collect();
        let pattern = format!("^({})$", names.join("|"));
        let message = self.git.run(&["config", "-z", "--get-regexp", &pattern], b"", usize::MAX, stop).await?.output;
        let message = String::from_utf8_lossy(&message);
        // A key without a value is true (git-config(1)).
        let entries: Vec<(&str, &str)> =
            message.split_terminator('\0').map(|entry| entry.split_once('\n').unwrap_or((entry, "true"))).collect();
        let value = |key: &str| entries.iter().rev().find(|(own, _)| own.eq_ignore_ascii_case(key)).map(|it| it.1);
        let pinned =
            |(key, without): &(&str, Option<&str>)| Some(((*key).to_owned(), value(key).or(*without)?.to_owned()));
        let mut config: Vec<(String, String)> = KEYS.iter().filter_map(pinned).collect();
        for (variable, section) in WHO {
            let line = self.line(&["-c", "user.useConfigOnly=true", "var", variable], stop).await?;
            let who = line.as_deref().and_then(|line| line[..line.rfind('>')?].rsplit_once(" <"));
            if let Some((name, mail)) = who {
                config.push((format!("{section}.name"), name.to_owned()));
                config.push((format!("{section}.email"), mail.to_owned()));
            }
        }
        Ok(config)
    }

    /// Returns the repository with the configuration of `head` instead of the current one. An empty
    /// configuration changes nothing.
    #[must_use]
    pub fn as_configured(self, head: &RepositoryHead) -> Self {
        if head.config.is_empty() {
            return self;
        }
        let number = head.config.len().to_string();
        let mut git = self.git.with("GIT_CONFIG_COUNT", Path::new(&number));
        for (at, (key, value)) in head.config.iter().enumerate() {
            git = git.with(&format!("GIT_CONFIG_KEY_{at}"), Path::new(key));
            git = git.with(&format!("GIT_CONFIG_VALUE_{at}"), Path::new(value));
        }
        Self { git, pinned: Some(head.config.clone()), ..self }
    }

    /// Returns whether the committer is known. A pinned configuration takes precedence over the
    /// current one.
    pub(super) async fn knows_committer(&self, stop: &CancellationToken) -> Result<bool, DeliveryError> {
        if let Some(config) = &self.pinned {
            return Ok(config.iter().any(|(key, _)| key == "committer.email"));
        }
        let asked = ["-c", "user.useConfigOnly=true", "var", "GIT_COMMITTER_IDENT"];
        Ok(self.git.run(&asked, b"", 0, stop).await?.code == 0)
    }
}
