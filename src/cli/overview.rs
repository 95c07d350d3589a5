//! The list of verbs in groups, for the help of the program.

use clap::Command;

/// The verbs by group.
pub(super) const GROUPS: [(&str, &[&str]); 4] = [
    ("Everyday", &["init", "run", "fix", "lanes", "apply", "doctor", "docs"]),
    ("Inspect", &["runs", "batch", "worktrees", "memory", "models", "config", "specs", "eval", "verify-report"]),
    ("Server", &["serve", "jobs", "monitors", "sync"]),
    ("Plumbing", &["schema", "completions", "man", "help"]),
];
/// The description of `help`, a verb that clap adds itself.
const HELP: &str = "Print the help of a command";

/// Lists the verbs in groups in the help of the program.
pub(super) fn grouped(command: Command) -> Command {
    let width = GROUPS.iter().flat_map(|(_, verbs)| *verbs).map(|verb| verb.len()).max().unwrap_or(0);
    let mut page = String::new();
    for (group, verbs) in GROUPS {
        page.push_str(&format!("{group}:\n"));
        for verb in verbs {
            let about = match command.find_subcommand(verb).map(Command::get_about) {
                Some(about) => about.map(ToString::to_string).unwrap_or_default(),
                None if *verb == "help" => HELP.to_owned(),
                None => continue, // left out of this build
            };
            page.push_str(&format!("  {verb:<width$}  {about}\n"));
        }
        page.push('\n');
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{page}Options:\n{{options}}{{after-help}}"
    ))
}
