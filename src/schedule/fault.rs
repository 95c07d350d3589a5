//! Why a text is no schedule.

use croner::errors::CronError;

/// A schedule that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the fields are named after what they hold; the variants say the rest")]
pub enum ScheduleFault {
    /// It is no cron expression.
    #[error("`{text}` is no schedule: {why}")]
    Cron { text: String, why: String },
    /// It is one, of a day that no year has.
    #[error("`{text}` is never due: no year has such a day")]
    Never { text: String },
    /// The interval is too short, too long, or no whole number of seconds.
    #[error("an interval is whole seconds, from `1s` to `366d`, and `{text}` is not")]
    Interval { text: String },
    /// The interval is no duration.
    #[error("{why}")]
    Unread { why: String },
    /// There is no such zone.
    #[error("there is no time zone `{name}`{}", meant(.near))]
    Zone { name: String, near: Vec<String> },
    /// An interval has no zone.
    #[error("`{text}` is the same in every zone: only a cron expression has one")]
    ZoneOfInterval { text: String },
}

impl ScheduleFault {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Cron { .. } => {
                "write five fields like `30 3 * * 1-5`, or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`"
            }
            Self::Never { .. } => "name a day that there is",
            Self::Interval { .. } | Self::Unread { .. } => "durations read `90s`, `15m`, `1h30m`",
            Self::Zone { .. } => "write a name of the IANA's list, like `Europe/Berlin`",
            Self::ZoneOfInterval { .. } => "remove the zone",
        }
    }
}

fn meant(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    if names.is_empty() { String::new() } else { format!(": did you mean {}?", names.join(" or ")) }
}

/// What a parser has against an expression, as a clause.
pub(super) fn said(error: &CronError) -> String {
    match error {
        CronError::InvalidPattern(why) | CronError::IllegalCharacters(why) | CronError::ComponentError(why) => {
            match why.as_str() {
                why if why.starts_with("Pattern must have") => "there is no such word".into(),
                why => why
                    .trim_end_matches('.')
                    .replace("CronPattern contains", "it has")
                    .replacen("Number", "a number is", 1)
                    .replacen("Step", "a step", 1),
            }
        }
        CronError::EmptyPattern => "it is empty".into(),
        CronError::InvalidDate | CronError::InvalidTime | CronError::TimeSearchLimitExceeded => error.to_string(),
    }
}
