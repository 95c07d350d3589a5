//! The access token: given by the operator, or created at the first start and readable only by its
//! owner.

use super::{ServeError, secret};
use crate::store::{make_private, read_text, sha256, write_whole};
use ring::hmac;
use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The allowed length of a token, in characters.
const LENGTH: std::ops::RangeInclusive<usize> = 24..=1024;

/// The access token.
#[derive(Clone)]
pub struct AccessToken {
    /// A random key per process. Comparing keyed tags reveals nothing through its timing.
    key: hmac::Key,
    tag: hmac::Tag,
    mark: String,
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(***)")
    }
}

impl AccessToken {
    /// Creates a token from a given text; `place` names its source for errors.
    ///
    /// # Errors
    /// If the text is too short for a secret, too long, or not valid in a header.
    pub fn given(text: &str, place: &str) -> Result<Self, ServeError> {
        let text = text.trim();
        let wrong = |why: String| Err(ServeError::Token { place: place.to_owned(), why });
        if !LENGTH.contains(&text.len()) {
            let (least, most) = (LENGTH.start(), LENGTH.end());
            return wrong(format!("expected {least} to {most} characters, found {}", text.len()));
        }
        // token68 (RFC 9110, 11.2)
        if !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte)) {
            return wrong("expected only letters, digits and - . _ ~ + / =".into());
        }
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret()?.as_bytes());
        let tag = hmac::sign(&key, text.as_bytes());
        Ok(Self { key, tag, mark: sha256(sha256(text.as_bytes()).as_bytes()) })
    }

    /// Reads a token from a file.
    ///
    /// # Errors
    /// If the file cannot be read, or does not contain a valid token.
    pub fn of_file(path: &Path) -> Result<Self, ServeError> {
        let text = read_text(path, *LENGTH.end() + 2)?;
        let place = format!("of {}", path.display());
        match text {
            Some(text) => Self::given(&text, &place),
            None => Err(ServeError::Token { place, why: "file not found".into() }),
        }
    }

    /// Reads the token in a server's folder, and creates it if it is missing.
    ///
    /// # Errors
    /// If the token cannot be read or written, or other users may read it.
    pub fn kept(folder: &Path) -> Result<Self, ServeError> {
        let path = folder.join("token");
        make_private(folder)?;
        match std::fs::metadata(&path) {
            Ok(meta) if meta.permissions().mode() & 0o077 != 0 => {
                let mode = meta.permissions().mode() & 0o777;
                let why = format!("others can read the file (mode {mode:03o}): remove it to get a new token");
                return Err(ServeError::Token { place: format!("of {}", path.display()), why });
            }
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                write_whole(&path, format!("{}\n", secret()?).as_bytes())?;
            }
            Err(error) => return Err(ServeError::file("read", &path)(error)),
        }
        Self::of_file(&path)
    }

    /// Returns true if the given bytes are the token.
    pub(super) fn is(&self, given: &[u8]) -> bool {
        hmac::verify(&self.key, given, self.tag.as_ref()).is_ok()
    }

    /// Returns the mark that distinguishes the sessions of this token from others.
    pub(super) fn mark(&self) -> &str {
        &self.mark
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_made_once_and_kept_for_its_owner_alone() {
        let home = crate::test_support::temp_dir();
        let folder = home.path().join("serve");
        let made = AccessToken::kept(&folder).unwrap();
        let text = std::fs::read_to_string(folder.join("token")).unwrap();
        assert!(made.is(text.trim().as_bytes()) && !made.is(b"") && !made.is(text.as_bytes()));
        assert_eq!(std::fs::metadata(folder.join("token")).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(AccessToken::kept(&folder).unwrap().mark(), made.mark());
        assert_eq!(format!("{made:?}"), "Token(***)");
        std::fs::set_permissions(folder.join("token"), std::fs::Permissions::from_mode(0o644)).unwrap();
        let refused = AccessToken::kept(&folder).unwrap_err().to_string();
        assert!(refused.ends_with("others can read the file (mode 644): remove it to get a new token"), "{refused}");
    }

    #[test]
    fn what_cannot_be_a_secret_is_refused() {
        for (text, why) in [
            ("", "expected 24 to 1024 characters, found 0"),
            ("short", "expected 24 to 1024 characters, found 5"),
            ("with blanks in it, which no header takes", "expected only letters, digits and - . _ ~ + / ="),
        ] {
            let refused = AccessToken::given(text, "of X").unwrap_err().to_string();
            assert_eq!(refused, format!("the token of X: {why}"));
        }
        assert!(AccessToken::given(" 0123456789abcdef01234567\n", "of X").is_ok());
    }
}
