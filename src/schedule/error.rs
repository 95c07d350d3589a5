//! Errors of schedules.

use croner::errors::CronError;

/// An invalid schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the fields are named after what they hold; the variants say the rest")]
pub enum ScheduleError {
    /// The text is not a cron expression.
    #[error("invalid schedule `{text}`: {why}")]
    Cron { text: String, why: String },
    /// The expression names a day that no year has.
    #[error("`{text}` is never due: no year has such a day")]
    Never { text: String },
    /// The interval is too short, too long, or not a whole number of seconds.
    #[error("invalid interval `{text}`: expected whole seconds from `1s` to `366d`")]
    Interval { text: String },
    /// The interval is not a duration.
    #[error("{why}")]
    Unread { why: String },
    /// The time zone does not exist.
    #[error("unknown time zone `{name}`{}", meant(.near))]
    Zone { name: String, near: Vec<String> },
    /// An interval has a time zone, which only a cron expression may have.
    #[error("`{text}` cannot have a time zone: only a cron expression can")]
    ZoneOfInterval { text: String },
}

impl ScheduleError {
    /// Returns advice on how to fix the schedule.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Cron { .. } => {
                "write five fields such as `30 3 * * 1-5`, or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`"
            }
            Self::Never { .. } => "name a day that exists",
            Self::Interval { .. } | Self::Unread { .. } => "write a duration such as `90s`, `15m` or `1h30m`",
            Self::Zone { .. } => "write an IANA name such as `Europe/Berlin`",
            Self::ZoneOfInterval { .. } => "remove the zone",
        }
    }
}

fn meant(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    if names.is_empty() { String::new() } else { format!(": did you mean {}?", names.join(" or ")) }
}

/// Formats an error of the parser as a clause.
pub(super) fn cron_error_text(error: &CronError) -> String {
    match error {
        CronError::InvalidPattern(why) | CronError::IllegalCharacters(why) | CronError::ComponentError(why) => {
            match why.as_str() {
                why if why.starts_with("Pattern must have") => "unknown word".into(),
                why => why
                    .trim_end_matches('.')
                    .replace("CronPattern contains", "it has")
                    .replacen("Number", "a number is", 1)
                    .replacen("Step", "a step", 1),
            }
        }
        CronError::EmptyPattern => "empty expression".into(),
        CronError::InvalidDate | CronError::InvalidTime | CronError::TimeSearchLimitExceeded => error.to_string(),
    }
}
