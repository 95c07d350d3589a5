//! The shell commands that need a person's approval. Patterns match the commands that a command
//! line runs, however they are quoted or wrapped. A command line that cannot be parsed needs
//! approval. So does one that runs code which is not part of it.

use super::command_line::{CommandWord, commands};
use globset::{GlobBuilder, GlobMatcher};

/// The longest command line that is parsed, in bytes.
const LONGEST: usize = 64 * 1024;
/// The maximum nesting of command lines in words of other command lines.
const DEPTH: u32 = 6;

/// Words that may precede a command.
const OPENERS: &str = "{ } ! if then elif else fi while until do done time in";
/// Commands that run a text given to them, or change the meaning of a name.
const EVALUATORS: &str = ". source eval alias hash enable trap fc coproc";
/// Shells, which run the text that they read.
const SHELLS: &str = "sh bash dash ash zsh ksh mksh fish csh tcsh rbash busybox toybox pwsh";
/// Commands that run a command given to them.
const WRAPPERS: &str = "env xargs parallel nice nohup timeout time sudo doas exec command builtin setsid stdbuf ionice chrt taskset chroot \
    unshare nsenter watch find fd ssh strace ltrace script su runuser flock at batch crontab systemd-run entr ld.so coproc";
/// Commands that append words to the command given to them.
const FEEDERS: &str = "xargs parallel fd find";
/// Interpreters of other languages.
const INTERPRETERS: &str =
    "python perl ruby node nodejs deno bun php lua tclsh expect osascript rscript gdb vim vi ex ed emacs";
/// Options after which the command line contains code for an interpreter.
const INLINE: &str = "- -c -e -E -r -p -pe -ne -le -i --eval --print --command eval --exec -ex +";
const AWKS: &str = "awk gawk mawk nawk";
/// Variables that change the program that a name means, or run additional code.
const LEADING: &str = "PATH ENV BASH_ENV IFS SHELLOPTS PROMPT_COMMAND";
/// Folders of programs that an agent cannot have written.
const PLACES: &str = "/bin/ /sbin/ /usr/ /opt/ /nix/store/ /run/current-system/ ~/.cargo/bin/ ~/.rustup/";

fn is_in(words: &str, word: &str) -> bool {
    words.split_whitespace().any(|known| known == word)
}

/// Returns whether this command line needs approval under these patterns. A pattern such as `git
/// push*` matches the text of a command, and also its words, skipping options before a word.
pub fn asks(command: &str, patterns: &[String]) -> bool {
    if patterns.is_empty() {
        return false;
    }
    let rules: Option<Vec<Rule>> = patterns.iter().map(|pattern| Rule::new(pattern)).collect();
    let (Some(rules), true) = (rules, command.len() <= LONGEST) else { return true };
    rules.iter().any(|rule| rule.whole.is_match(command.trim())) || is_asked(command, &rules, true, DEPTH)
}

/// A compiled pattern.
struct Rule {
    whole: GlobMatcher,
    /// The pattern followed by any text.
    begun: GlobMatcher,
    words: Vec<GlobMatcher>,
    /// True if the pattern may begin with any text.
    is_open: bool,
}

impl Rule {
    fn new(pattern: &str) -> Option<Self> {
        let glob = |text: &str| Some(GlobBuilder::new(text).case_insensitive(true).build().ok()?.compile_matcher());
        let pattern = pattern.trim();
        let words: Option<Vec<_>> = pattern.split_whitespace().map(glob).collect();
        Some(Self {
            whole: glob(pattern)?,
            begun: glob(&format!("{pattern}*"))?,
            words: words.filter(|words| !words.is_empty())?,
            is_open: pattern.starts_with(['*', '?', '[', '{']),
        })
    }

    /// Returns whether the pattern may mean the command that begins with the first word. `is_fed`
    /// means that further, unknown words may follow.
    fn means(&self, words: &[CommandWord], is_fed: bool) -> bool {
        let Some((name, rest)) = words.split_first() else { return false };
        let text = |name: &str| {
            let rest = rest.iter().map(|word| word.text.as_str());
            [name].into_iter().chain(rest).collect::<Vec<_>>().join(" ")
        };
        let names = [name.text.as_str(), base(&name.text)];
        if names.iter().any(|name| self.whole.is_match(text(name))) {
            return true;
        }
        if self.is_open && words.iter().any(|word| !word.is_whole) {
            return true;
        }
        if !names.iter().any(|name| self.words[0].is_match(name)) {
            return false;
        }
        if is_fed {
            return true; // the further words are unknown
        }
        let (mut wanted, mut may_be_value) = (self.words[1..].iter().peekable(), false);
        for word in rest {
            let Some(next) = wanted.peek() else { return true };
            if !word.is_whole {
                return true;
            } else if next.is_match(&word.text) {
                wanted.next();
                may_be_value = false;
            } else if word.text.starts_with(['-', '+']) {
                may_be_value = true;
            } else if !std::mem::take(&mut may_be_value) {
                return false;
            }
        }
        wanted.peek().is_none()
    }

    /// Returns whether the pattern matches at the start of a word of a text. Ignores quotes and
    /// backslashes, and joins blanks.
    fn occurs_in(&self, text: &str) -> bool {
        let text: String = text.chars().filter(|c| !"'\"\\`".contains(*c)).collect();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let belongs = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        let begins = |at: &usize| !text[..*at].ends_with(belongs);
        text.char_indices().map(|(at, _)| at).filter(begins).any(|at| self.begun.is_match(&text[at..]))
    }
}

/// Returns whether a command line needs approval. `is_run` means that the text is certainly run as
/// a command line. Otherwise, its use is unknown.
fn is_asked(text: &str, rules: &[Rule], is_run: bool, depth: u32) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return is_run };
    match commands(text) {
        Some(all) => all.iter().any(|words| must_ask(words, rules, is_run, depth)),
        None => is_run,
    }
}

fn must_ask(words: &[CommandWord], rules: &[Rule], is_run: bool, depth: u32) -> bool {
    let stands_before =
        |word: &CommandWord| is_in(OPENERS, &word.text) && word.is_whole || assigned(&word.text).is_some();
    let begin = words.iter().take_while(|word| stands_before(word)).count();
    if is_run && (words.iter().any(leads_astray) || words.get(begin).is_some_and(is_unclear)) {
        return true;
    }
    let (mut is_wrapped, mut is_fed) = (false, false);
    for (at, word) in words.iter().enumerate().skip(begin) {
        if !word.is_whole {
            if is_run && is_wrapped {
                return true;
            }
            continue;
        }
        let (name, rest) = (base(&word.text).to_ascii_lowercase(), &words[at + 1..]);
        if rules.iter().any(|rule| rule.means(&words[at..], is_fed))
            || is_text(&word.text) && rules.iter().any(|it| it.occurs_in(&word.text))
        {
            return true;
        }
        let stands_first = at == begin || is_wrapped;
        if is_run
            && (is_in(SHELLS, &name) && (is_fed || !is_clear_script(rest, rules, depth))
                || stands_first && runs_a_text(&name, rest))
        {
            return true;
        }
        let inner = word.text.strip_prefix("-S").filter(|_| is_wrapped).unwrap_or(&word.text);
        if is_text(inner) && is_asked(inner, rules, is_run && is_wrapped, depth) {
            return true;
        }
        let before = at.checked_sub(1).map_or("", |before| words[before].text.as_str());
        let is_in_place =
            ["-exec", "-ok"].iter().any(|it| before.starts_with(it)) || before.starts_with("-I") && before.len() > 2;
        if is_run && is_fed && (word.text == "{}" && is_in_place || rest.is_empty() && is_in(WRAPPERS, &name)) {
            return true;
        }
        is_wrapped |= is_in(WRAPPERS, &name);
        is_fed |= is_in(FEEDERS, &name);
    }
    false
}

/// Returns the name of a program without its folders.
fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns whether a word may itself be a command line.
fn is_text(word: &str) -> bool {
    word.contains(|c: char| c.is_whitespace() || ";|&$`()'\"\\<>".contains(c))
}

/// Returns the name of the variable that a word sets.
fn assigned(word: &str) -> Option<&str> {
    let (name, _) = word.split_once('=')?;
    let name = name.strip_suffix('+').unwrap_or(name);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!name.is_empty() && name.chars().all(is_name) && !name.starts_with(|c: char| c.is_ascii_digit())).then_some(name)
}

/// Returns whether a word changes the meaning of program names.
fn leads_astray(word: &CommandWord) -> bool {
    let is_leading =
        |name: &str| is_in(LEADING, name) || ["LD_", "DYLD_", "GIT_"].iter().any(|start| name.starts_with(start));
    assigned(&word.text).is_some_and(is_leading) || word.text.to_ascii_lowercase().contains("alias.")
}

/// Returns whether the name of a command does not tell what it runs.
fn is_unclear(name: &CommandWord) -> bool {
    let is_known_place = |place: &str| name.text.starts_with(place);
    !name.is_whole
        || is_in(EVALUATORS, &name.text)
        || name.text.contains('/') && (!PLACES.split_whitespace().any(is_known_place) || name.text.contains("/.."))
}

/// Returns whether these arguments of a shell contain a script (`-c SCRIPT`) that needs no
/// approval. Returns false if the shell reads a file or its input.
fn is_clear_script(arguments: &[CommandWord], rules: &[Rule], depth: u32) -> bool {
    let mut arguments = arguments.iter();
    let has_script = arguments
        .by_ref()
        .take_while(|word| word.text.starts_with('-'))
        .find(|word| !word.text.starts_with("--") && word.text.ends_with('c'));
    let script = arguments.next().filter(|script| has_script.is_some_and(|it| it.is_whole) && script.is_whole);
    script.is_some_and(|script| !script.text.starts_with('-') && !is_asked(&script.text, rules, true, depth))
}

/// Returns whether a program is an interpreter that runs code from these arguments or, without
/// arguments, from its input. Such code may start other programs.
fn runs_a_text(name: &str, arguments: &[CommandWord]) -> bool {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    let starts =
        |word: &CommandWord| !word.is_whole || ["system", "|", "getline", "-f"].iter().any(|it| word.text.contains(it));
    if is_in(AWKS, plain) {
        return arguments.iter().any(starts);
    }
    let is_inline = |word: &CommandWord| {
        is_in(INLINE, &word.text) || ["-c", "-e", "-r", "--eval="].iter().any(|it| word.text.starts_with(it))
    };
    is_in(INTERPRETERS, plain) && (arguments.is_empty() || arguments.iter().any(is_inline))
}

#[cfg(test)]
mod tests;
