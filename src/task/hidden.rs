//! The key `hidden`: files of the base that the agent does not see and the gate uses.

use super::file::check_glob;

/// The words before the share of test files to hide.
const AUTO: &str = "auto";
/// The word before the seed of a draw.
const SEED: &str = "seed";

/// An item of `hidden`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HiddenRule {
    /// A glob over the files of the base.
    Glob(String),
    /// A share of the base's test files, in percent, drawn by a seed.
    Share {
        /// The share, from 1 to 99.
        percent: u32,
        /// The seed. `None`: one for each run.
        seed: Option<String>,
    },
}

impl HiddenRule {
    /// Parses an item: a glob, `auto 25%` or `auto 25% seed WORD`.
    ///
    /// # Errors
    /// The problem and a hint.
    pub fn parse(text: &str) -> Result<Self, (String, String)> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let wrong = || {
            let why = "expected a share of the test files from 1% to 99%".to_owned();
            Err((why, "write `auto 25%` to hide a quarter of the test files, or `auto 25% seed WORD`".into()))
        };
        let share = |word: &str| word.strip_suffix('%')?.parse().ok().filter(|percent| (1..=99).contains(percent));
        match words.as_slice() {
            [AUTO, number] => share(number).map_or_else(wrong, |percent| Ok(Self::Share { percent, seed: None })),
            [AUTO, number, SEED, word] => {
                let seed = Some((*word).to_owned());
                share(number).map_or_else(wrong, |percent| Ok(Self::Share { percent, seed }))
            }
            [AUTO, ..] => wrong(),
            _ => check_glob(text).map(|()| Self::Glob(text.to_owned())),
        }
    }
}

/// Checks an item of `hidden`. An error is the problem and a hint.
pub(crate) fn check_hidden(text: &str) -> Result<(), (String, String)> {
    HiddenRule::parse(text).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_a_glob_or_a_share_of_the_test_files() {
        let share = |percent, seed: Option<&str>| HiddenRule::Share { percent, seed: seed.map(str::to_owned) };
        assert_eq!(HiddenRule::parse("tests/acceptance/**"), Ok(HiddenRule::Glob("tests/acceptance/**".into())));
        assert_eq!(HiddenRule::parse("auto 25%"), Ok(share(25, None)));
        assert_eq!(HiddenRule::parse(" auto  7%  seed x1 "), Ok(share(7, Some("x1"))));
        for wrong in ["auto", "auto 25", "auto 0%", "auto 100%", "auto 25% seed", "auto 25% x y", "/etc/x", "!tests/**"]
        {
            assert!(HiddenRule::parse(wrong).is_err(), "{wrong}");
        }
    }
}
