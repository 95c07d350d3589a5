//! Numbers in arguments of the command line.

use crate::limits::check_number;
use std::ops::RangeInclusive;

/// Returns a parser for a whole number in a range, which `u32` must include.
pub(super) fn whole_number(
    range: RangeInclusive<i64>,
) -> impl Fn(&str) -> Result<u32, String> + Clone + Send + Sync + 'static {
    move |text| check_number(text.parse().ok(), &range)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Arguments;
    use clap::{Command, CommandFactory};

    /// Returns the arguments of a command and of those below it that take a number or a duration,
    /// but nothing that begins with a hyphen.
    fn without_hyphen(command: &Command) -> Vec<String> {
        let names = ["N", "USD", "RATE", "DURATION", "TIME", "SIZE"];
        let is_number = |arg: &&clap::Arg| {
            arg.get_value_names().is_some_and(|own| own.iter().any(|name| names.contains(&name.as_str())))
        };
        let is_closed = |arg: &&clap::Arg| !arg.is_allow_negative_numbers_set() && !arg.is_allow_hyphen_values_set();
        let own = command.get_arguments().filter(is_number).filter(is_closed);
        let own = own.map(|arg| format!("{} {arg}", command.get_name()));
        own.chain(command.get_subcommands().flat_map(without_hyphen)).collect()
    }

    #[test]
    fn a_negative_number_or_duration_comes_to_the_parser_that_refuses_it() {
        let mut program = Arguments::command();
        program.build();
        assert_eq!(without_hyphen(&program), [""; 0]);
    }

    #[test]
    fn a_number_outside_its_range_is_refused_with_the_range() {
        let parse = whole_number(1..=100);
        assert_eq!((parse("1"), parse("100")), (Ok(1), Ok(100)));
        for wrong in ["0", "101", "-1", "1.5", "ten", "", "99999999999999999999"] {
            assert_eq!(parse(wrong).unwrap_err(), "expected a whole number from 1 to 100", "{wrong}");
        }
        assert_eq!(whole_number(1..=i64::from(u32::MAX))("x").unwrap_err(), "expected a whole number of at least 1");
    }
}
