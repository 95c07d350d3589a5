//! Which commands of the shell a person must agree to: patterns over what a command line runs, in whatever dress it comes. What cannot be
//! taken apart is asked about, and so is what runs something that does not stand in the command line.

use super::command_line::{Word, commands};
use globset::{GlobBuilder, GlobMatcher};

/// The longest command line that is taken apart, in bytes.
const LONGEST: usize = 64 * 1024;
/// How deep command lines may stand in words of others.
const DEPTH: u32 = 6;

/// Words that stand before a command.
const OPENERS: &str = "{ } ! if then elif else fi while until do done time in";
/// What runs the text that it is given, or has a name mean something else.
const EVALUATORS: &str = ". source eval alias hash enable trap fc coproc";
/// Shells, which run what they read.
const SHELLS: &str = "sh bash dash ash zsh ksh mksh fish csh tcsh rbash busybox toybox pwsh";
/// What runs the command that it is given.
const WRAPPERS: &str = "env xargs parallel nice nohup timeout time sudo doas exec command builtin setsid stdbuf ionice chrt taskset chroot \
    unshare nsenter watch find fd ssh strace ltrace script su runuser flock at batch crontab systemd-run entr ld.so coproc";
/// What adds words of its own to the command that it is given.
const FEEDERS: &str = "xargs parallel fd find";
/// What runs programs in a language of its own.
const INTERPRETERS: &str =
    "python perl ruby node nodejs deno bun php lua tclsh expect osascript rscript gdb vim vi ex ed emacs";
/// Options after which such a program stands in the command line.
const INLINE: &str = "- -c -e -E -r -p -pe -ne -le -i --eval --print --command eval --exec -ex +";
const AWKS: &str = "awk gawk mawk nawk";
/// Variables that say which programs a name means, or what is run besides.
const LEADING: &str = "PATH ENV BASH_ENV IFS SHELLOPTS PROMPT_COMMAND";
/// Where programs are that no agent has written.
const PLACES: &str = "/bin/ /sbin/ /usr/ /opt/ /nix/store/ /run/current-system/ ~/.cargo/bin/ ~/.rustup/";

fn is_in(words: &str, word: &str) -> bool {
    words.split_whitespace().any(|known| known == word)
}

/// Whether a person must agree to this command line, by these patterns. `git push*` is a pattern over the text of a command, and over its
/// words: options before one are passed over.
pub fn asks(command: &str, patterns: &[String]) -> bool {
    if patterns.is_empty() {
        return false;
    }
    let rules: Option<Vec<Rule>> = patterns.iter().map(|pattern| Rule::new(pattern)).collect();
    let (Some(rules), true) = (rules, command.len() <= LONGEST) else { return true };
    rules.iter().any(|rule| rule.whole.is_match(command.trim())) || is_asked(command, &rules, true, DEPTH)
}

/// A pattern, compiled.
struct Rule {
    whole: GlobMatcher,
    /// The same with anything behind it.
    begun: GlobMatcher,
    words: Vec<GlobMatcher>,
    /// Whether it may begin with anything.
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

    /// Whether the command that begins with the first word may be meant. `is_fed`: more words may come behind.
    fn means(&self, words: &[Word], is_fed: bool) -> bool {
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
            return true; // with which words, nobody knows
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

    /// Whether a text has it in it, at the beginning of a word.
    fn is_within(&self, text: &str) -> bool {
        let text: String = text.chars().filter(|c| !"'\"\\`".contains(*c)).collect();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let belongs = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        let begins = |at: &usize| !text[..*at].ends_with(belongs);
        text.char_indices().map(|(at, _)| at).filter(begins).any(|at| self.begun.is_match(&text[at..]))
    }
}

/// Whether a command line is asked about. `is_run`: it is run for sure; else it is a text of which nobody knows what becomes of it.
fn is_asked(text: &str, rules: &[Rule], is_run: bool, depth: u32) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return is_run };
    match commands(text) {
        Some(all) => all.iter().any(|words| must_ask(words, rules, is_run, depth)),
        None => is_run,
    }
}

fn must_ask(words: &[Word], rules: &[Rule], is_run: bool, depth: u32) -> bool {
    let stands_before = |word: &Word| is_in(OPENERS, &word.text) && word.is_whole || assigned(&word.text).is_some();
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
            || is_text(&word.text) && rules.iter().any(|it| it.is_within(&word.text))
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

/// The name of a program without the folders before it.
fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a word may be a command line of its own.
fn is_text(word: &str) -> bool {
    word.contains(|c: char| c.is_whitespace() || ";|&$`()'\"\\<>".contains(c))
}

/// The name of the variable that a word sets.
fn assigned(word: &str) -> Option<&str> {
    let (name, _) = word.split_once('=')?;
    let name = name.strip_suffix('+').unwrap_or(name);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!name.is_empty() && name.chars().all(is_name) && !name.starts_with(|c: char| c.is_ascii_digit())).then_some(name)
}

/// Whether a word has names of programs mean something else.
fn leads_astray(word: &Word) -> bool {
    let is_leading =
        |name: &str| is_in(LEADING, name) || ["LD_", "DYLD_", "GIT_"].iter().any(|start| name.starts_with(start));
    assigned(&word.text).is_some_and(is_leading) || word.text.to_ascii_lowercase().contains("alias.")
}

/// Whether nobody can say by its name what a command runs.
fn is_unclear(name: &Word) -> bool {
    let is_known_place = |place: &str| name.text.starts_with(place);
    !name.is_whole
        || is_in(EVALUATORS, &name.text)
        || name.text.contains('/') && (!PLACES.split_whitespace().any(is_known_place) || name.text.contains("/.."))
}

/// Whether a shell with these arguments runs a text that stands there and is not asked about. One that reads a file or its input is not.
fn is_clear_script(arguments: &[Word], rules: &[Rule], depth: u32) -> bool {
    let mut arguments = arguments.iter();
    let has_script = arguments
        .by_ref()
        .take_while(|word| word.text.starts_with('-'))
        .find(|word| !word.text.starts_with("--") && word.text.ends_with('c'));
    let script = arguments.next().filter(|script| has_script.is_some_and(|it| it.is_whole) && script.is_whole);
    script.is_some_and(|script| !script.text.starts_with('-') && !is_asked(&script.text, rules, true, depth))
}

/// Whether a program with these arguments is one that runs a text in its own language which may start others.
fn runs_a_text(name: &str, arguments: &[Word]) -> bool {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    let starts =
        |word: &Word| !word.is_whole || ["system", "|", "getline", "-f"].iter().any(|it| word.text.contains(it));
    if is_in(AWKS, plain) {
        return arguments.iter().any(starts);
    }
    let is_inline = |word: &Word| {
        is_in(INLINE, &word.text) || ["-c", "-e", "-r", "--eval="].iter().any(|it| word.text.starts_with(it))
    };
    is_in(INTERPRETERS, plain) && (arguments.is_empty() || arguments.iter().any(is_inline))
}

#[cfg(test)]
mod tests;
