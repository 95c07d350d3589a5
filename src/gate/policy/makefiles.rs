//! The includes of Makefiles, and the targets of the gate for which a file could be taken.

use super::named::{inside, is_source, words};
use crate::gate::names::name_of;
use std::collections::{BTreeMap, BTreeSet};

/// The deepest nesting of variables that is followed.
const DEEPEST: usize = 8;

/// Returns whether `make` reads a file, by its name.
pub(super) fn is_makefile(path: &str) -> bool {
    name_of(path).to_lowercase().ends_with("makefile") || path.ends_with(".mk")
}

/// Returns the files that a Makefile includes by a plain name.
pub(super) fn included(path: &str, text: &str) -> Vec<String> {
    included_words(path, text).filter(|name| !name.contains(['*', '?', '['])).collect()
}

/// Returns the patterns by which a Makefile includes files.
pub(super) fn patterns(path: &str, text: &str) -> Vec<String> {
    included_words(path, text).filter(|name| name.contains(['*', '?', '['])).collect()
}

/// Returns the paths that a Makefile includes, with `*` for each part that cannot be evaluated.
fn included_words(path: &str, text: &str) -> impl Iterator<Item = String> {
    let lines: Vec<&str> = text.lines().filter(|_| is_makefile(path)).filter_map(include).collect();
    let variables = if lines.is_empty() { BTreeMap::new() } else { variables(text) };
    let plain = lines.iter().flat_map(|line| line.split([' ', '\t', '(', ')'])).map(ToOwned::to_owned);
    let evaluated = lines.iter().flat_map(|line| split(&expanded(line, &variables, (0, "*"))));
    let names: BTreeSet<String> = plain.chain(evaluated).filter(|name| !name.contains(['$', '%', '#'])).collect();
    let is_name = |name: &String| name.contains(|c: char| c.is_alphanumeric());
    let names = names.iter().filter(|name| is_name(name)).filter_map(|name| inside(folder_of(path), name));
    names.collect::<Vec<_>>().into_iter()
}

/// Returns the words after `include` in a line.
fn include(line: &str) -> Option<&str> {
    line.trim_start().trim_start_matches(['-', 's']).strip_prefix("include ")
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Returns the targets that the gate's commands build, and the prerequisites of these. Each path
/// maps to the name of its target, and may contain a `%` as in a pattern of `make`. Leaves out
/// phony targets, and sources that a rule generates: people review those like any code.
pub(super) fn targets(texts: &[(String, String)]) -> BTreeMap<String, String> {
    let (made, others): (Vec<_>, Vec<_>) = texts.iter().partition(|(path, _)| is_makefile(path));
    let mut asked: BTreeSet<&str> = others.iter().flat_map(|(_, text)| words(text)).collect();
    let mut found = BTreeMap::new();
    if !asked.iter().any(|word| starts_make(word)) {
        return found;
    }
    let recipes = made.iter().flat_map(|(_, text)| text.lines()).map(words);
    asked.extend(recipes.filter(|words| words.iter().any(|word| starts_make(word))).flatten());
    let mut seen = BTreeSet::new();
    let is_part = |path: &str| path.ends_with(".mk");
    let (parts, wholes): (Vec<_>, Vec<_>) = made.iter().copied().partition(|(path, _)| is_part(path));
    for (path, text) in wholes.into_iter().chain(parts) {
        if is_part(path) && seen.contains(path) {
            continue;
        }
        let rules = Rules::parse(&with_included(path, text, &made, &mut seen));
        let folders = [folder_of(path), ""].into_iter().take(if is_part(path) { 2 } else { 1 });
        for (folder, target) in folders.flat_map(|folder| rules.made(&asked).into_iter().map(move |it| (folder, it))) {
            // `make` compares a pattern without a folder with the file name alone.
            let is_anywhere = target.contains('%') && !target.contains('/');
            let place = if is_anywhere { Some(target.clone()) } else { inside(folder, &target) };
            found.extend(place.map(|place| (place, target)));
        }
    }
    found
}

/// Returns whether a path matches a target, which may be a pattern.
pub(super) fn fits(target: &str, path: &str) -> bool {
    let Some((start, end)) = target.split_once('%') else { return target == path };
    let path = if target.contains('/') { path } else { name_of(path) };
    path.len() > start.len() + end.len() && path.starts_with(start) && path.ends_with(end)
}

/// Returns the recipes that `make` runs if these words ask for targets: the recipes of the targets,
/// of their prerequisites, and of targets that recipes build in turn. Without words, starts from
/// the first target. `unknown` replaces what cannot be evaluated.
pub(super) fn recipes(text: &str, asked: &BTreeSet<&str>, unknown: &str) -> String {
    let (rules, joined) = (Rules::parse(text), text.replace("\\\n", " "));
    let variables = variables(&joined).into_iter().map(|(name, value)| (name, value.trim().to_owned()));
    let variables = [("MAKE", "make".to_owned())].into_iter().chain(variables).collect();
    let named = |words: &BTreeSet<&str>| -> Vec<&String> {
        rules.by_target.keys().filter(|target| words.iter().any(|word| fits(target, word))).collect()
    };
    let (mut open, mut seen, mut whole) = (named(asked), BTreeSet::new(), String::new());
    if asked.is_empty() {
        open.extend(&rules.first);
    }
    while let Some(target) = open.pop() {
        let Some(rule) = rules.by_target.get(target).filter(|_| seen.insert(target)) else { continue };
        open.extend(named(&rule.needs.iter().map(String::as_str).collect()));
        for line in rule.recipe.lines().filter(|line| words(line).iter().any(|word| starts_make(word))) {
            open.extend(named(&words(line).into_iter().collect()));
        }
        // `$$` means a variable of the shell, not of make.
        let of_make = rule.recipe.replace("$$", "\0");
        whole.push_str(&expanded(&of_make, &variables, (0, unknown)).replace('\0', "$$"));
        whole.push('\n');
    }
    whole
}

/// Returns whether a word of a command starts `make`.
pub(super) fn starts_make(word: &str) -> bool {
    matches!(name_of(word.trim_start_matches(['@', '-', '+'])), "make" | "gmake" | "MAKE")
}

/// Returns a Makefile joined with the files that it includes, and adds their paths to `listed`. An
/// include that is not a plain name includes every `*.mk`.
fn with_included(path: &str, text: &str, made: &[&(String, String)], listed: &mut BTreeSet<String>) -> String {
    let (mut whole, mut seen) = (text.to_owned(), BTreeSet::from([path.to_owned()]));
    let mut open = vec![(path.to_owned(), text.to_owned())];
    while let Some((path, text)) = open.pop() {
        let names = included(&path, &text);
        let is_unclear = text.lines().filter_map(include).any(|line| line.contains(['$', '*', '?', '[']));
        for (other, text) in made.iter().copied() {
            let is_meant = names.contains(other) || (is_unclear && other.ends_with(".mk"));
            if is_meant && seen.insert(other.clone()) {
                whole = format!("{whole}\n{text}");
                open.push((other.clone(), text.clone()));
            }
        }
    }
    listed.extend(seen);
    whole
}

/// A rule of one target.
#[derive(Debug, Default)]
struct Rule {
    needs: BTreeSet<String>,
    recipe: String,
}

/// The rules of a Makefile.
#[derive(Debug, Default)]
struct Rules {
    by_target: BTreeMap<String, Rule>,
    /// The default target.
    first: Option<String>,
}

impl Rules {
    fn parse(text: &str) -> Self {
        let text = text.replace("\\\n", " ");
        let variables = variables(&text);
        let (mut rules, mut current) = (Self::default(), Vec::<String>::new());
        for line in text.lines() {
            if let Some(command) = line.strip_prefix('\t') {
                for target in &current {
                    let recipe = &mut rules.by_target.entry(target.clone()).or_default().recipe;
                    recipe.push_str(command);
                    recipe.push('\n');
                }
                continue;
            }
            let Some((targets, needs, command)) = rule(line) else { continue };
            // In `objects: %.o: %.c`, the pattern stands in for unknown objects.
            let (pattern, needs) =
                needs.split_once(':').map_or((None, needs), |(pattern, needs)| (Some(pattern), needs));
            let names = |text: &str| split(&expanded(text, &variables, (0, "")));
            current = names(targets);
            if current.is_empty() {
                current = pattern.map(names).unwrap_or_default();
            }
            let plain = |name: &&String| !name.starts_with('.') && !name.contains('%');
            rules.first = rules.first.or_else(|| current.iter().find(plain).cloned());
            for target in &current {
                let rule = rules.by_target.entry(target.clone()).or_default();
                rule.needs.extend(names(needs).into_iter().filter(|need| need != "|"));
                rule.recipe.push_str(command);
            }
        }
        rules
    }

    /// Returns the targets that make builds if these words ask for targets: targets among the
    /// words, the first target, all patterns, and their prerequisites.
    fn made(&self, asked: &BTreeSet<&str>) -> BTreeSet<String> {
        let is_asked = |name: &&String| asked.contains(name.as_str()) || name.contains('%');
        let mut open: Vec<&String> = self.by_target.keys().filter(is_asked).chain(&self.first).collect();
        let mut seen: BTreeSet<&String> = BTreeSet::new();
        while let Some(target) = open.pop() {
            if seen.insert(target) {
                open.extend(self.by_target.get(target).into_iter().flat_map(|rule| &rule.needs));
            }
        }
        let phony = self.by_target.get(".PHONY").map(|rule| &rule.needs);
        let is_phony = |name: &String| phony.is_some_and(|phony| phony.contains(name));
        let has_rule = |(name, rule): &(&&String, &Rule)| {
            let is_generated = is_source(name) && (rule.recipe.contains("$@") || rule.recipe.contains(name.as_str()));
            !is_generated && !name.starts_with('.') && !name.contains(['$', '*']) && name.as_str() != "%"
        };
        let rules = seen.iter().filter_map(|name| Some((name, self.by_target.get(*name)?)));
        rules.filter(has_rule).map(|(name, _)| (*name).clone()).filter(|name| !is_phony(name)).collect()
    }
}

fn split(text: &str) -> Vec<String> {
    text.split_whitespace().map(ToOwned::to_owned).collect()
}

/// Returns the targets, the prerequisites and the first command of a line that is a rule.
pub(super) fn rule(line: &str) -> Option<(&str, &str, &str)> {
    let line = line.split('#').next().filter(|line| !line.starts_with(' '))?;
    let (line, command) = line.split_once(';').unwrap_or((line, ""));
    let colon = outside_calls(line).find(|(_, c)| *c == ':')?.0;
    let (targets, needs) = (&line[..colon], line[colon + 1..].trim_start_matches(':'));
    let is_variable = outside_calls(targets).chain(outside_calls(needs)).any(|(_, c)| c == '=');
    (!is_variable).then_some((targets, needs, command))
}

/// Returns the characters of a line outside of `$(…)`.
pub(super) fn outside_calls(line: &str) -> impl Iterator<Item = (usize, char)> {
    let mut depth = 0_usize;
    line.char_indices().filter(move |(_, c)| {
        match c {
            '(' | '{' => depth += 1,
            ')' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    })
}

/// Returns the variables of a Makefile, each with all values that are ever assigned to it.
pub(super) fn variables(text: &str) -> BTreeMap<&str, String> {
    let mut found: BTreeMap<&str, String> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('\t')) {
        let Some((name, value)) = line.split_once('=') else { continue };
        let name = name.trim_end_matches([':', '?', '+', '!']).split_whitespace().next_back().unwrap_or_default();
        let all = found.entry(name).or_default();
        all.push(' ');
        all.push_str(value.split('#').next().unwrap_or_default());
    }
    found
}

/// Expands the variables in a text. A name that a function changes becomes a pattern with a `%`,
/// and `unknown` replaces what cannot be evaluated.
pub(super) fn expanded(text: &str, variables: &BTreeMap<&str, String>, (depth, unknown): (usize, &str)) -> String {
    let (mut whole, mut rest) = (String::new(), text);
    while let Some(start) = rest.find(['$']) {
        whole.push_str(&rest[..start]);
        rest = &rest[start + 1..];
        let Some(open) = rest.chars().next() else { break };
        if !matches!(open, '(' | '{') {
            rest = &rest[open.len_utf8()..];
            continue;
        }
        let end = outside_calls(rest).next().map_or(rest.len(), |(end, _)| end);
        let inside = rest.get(1..end).unwrap_or_default();
        if depth < DEEPEST {
            whole.push_str(&value(inside, variables, (depth + 1, unknown)));
        }
        rest = rest.get(end + 1..).unwrap_or_default();
    }
    whole + rest
}

/// Returns the expansion of `$(call)`.
fn value(call: &str, variables: &BTreeMap<&str, String>, (depth, unknown): (usize, &str)) -> String {
    let (function, arguments) = call.split_once(' ').unwrap_or((call, ""));
    let argument = |number: usize| {
        let part = arguments.split(',').nth(number).unwrap_or_default();
        expanded(part.trim(), variables, (depth, unknown))
    };
    match function {
        "patsubst" => argument(1),
        "addprefix" => argument(0) + "%",
        "addsuffix" => format!("%{}", argument(0)),
        "sort" | "strip" | "wildcard" => expanded(arguments, variables, (depth, unknown)),
        "CURDIR" | "PWD" => ".".to_owned(),
        name => match name.split_once(':').and_then(|(_, ends)| ends.split_once('=')) {
            Some((_, end)) if end.contains('%') => end.to_owned(),
            Some((_, end)) => format!("%{end}"),
            None => {
                variables.get(call).map_or(unknown.to_owned(), |value| expanded(value, variables, (depth, unknown)))
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(makefile: &str, command: &str) -> Vec<String> {
        let texts = [("", command), ("sub/Makefile", makefile), ("sub/mk/more.mk", "more:\n\t./more\n.PHONY: quiet\n")];
        targets(&texts.map(|(path, text)| (path.to_owned(), text.to_owned()))).into_keys().collect()
    }

    #[test]
    fn targets_are_found_by_what_is_asked_for_needed_or_first() {
        let chain =
            "all: one \\\n  two\none: ; ./one\ntwo three: \n\t./two\nlint::\n\t./lint\n.PHONY: all \\\n  quiet\n";
        assert_eq!(found(chain, "make"), ["more", "sub/mk/more", "sub/one", "sub/two"]);
        assert_eq!(
            found(chain, "cd sub && make lint three"),
            ["more", "sub/lint", "sub/mk/more", "sub/one", "sub/three", "sub/two"]
        );
        assert_eq!(found(chain, "cargo test"), [""; 0]);
        let again = "test:\n\t$(MAKE) -s unit\nunit:\n\t./unit\nother:\n\t./other\n.PHONY: test\n";
        assert_eq!(found(again, "make test"), ["more", "sub/mk/more", "sub/unit"]);
        let included = "include mk/more.mk\ncheck: more quiet\nquiet:\n\t./quiet\n.PHONY: check\n";
        assert!(found(included, "make check").contains(&"sub/more".to_owned()));
        assert!(!found(included, "make check").contains(&"sub/quiet".to_owned()));
    }

    #[test]
    fn recipes_are_those_of_what_is_asked_for() {
        let text = "S = ci\nall: ; sh all.sh\nci: lint \\\n  docs\n\t@$(S)/run.sh\n\t$(MAKE) unit\nlint:\n\t-sh $$D/lint.sh\n\
            unit-%:\n\tsh unit.sh\nunit:\n\tsh unit.sh\ndeploy:\n\tsh deploy.sh\n";
        let of = |words: &[&str]| {
            let mut lines: Vec<String> = recipes(text, &words.iter().copied().collect(), "")
                .lines()
                .map(|line| line.trim().to_owned())
                .collect();
            lines.retain(|line| !line.is_empty());
            lines.sort();
            lines.join(", ")
        };
        assert_eq!(of(&["make", "-j2", "ci"]), "-sh $$D/lint.sh, @ci/run.sh, make unit, sh unit.sh");
        assert_eq!((of(&[]), of(&["make", "none"])), ("sh all.sh".into(), String::new()));
        assert_eq!(of(&["make", "unit-a"]), "sh unit.sh");
    }

    #[test]
    fn what_cannot_be_evaluated_in_an_include_is_a_pattern() {
        let text = "DIR = conf\n-include etc/$(notdir $(CURDIR)).conf $(DIR)/a.conf\ninclude $(FILES) $(wildcard mk/*.inc) $(CURDIR)/b.conf\n\
                    sinclude $(OBJECTS:.o=.d) $(shell ls x/*.c)\n";
        assert_eq!(patterns("sub/Makefile", text), ["sub/etc/*.conf", "sub/mk/*.inc", "sub/x/*.c"]);
        let names = included("sub/Makefile", text);
        assert!(names.contains(&"sub/b.conf".to_owned()) && names.contains(&"sub/conf/a.conf".to_owned()), "{names:?}");
    }

    #[test]
    fn targets_are_found_behind_variables_and_built_files_count_unless_they_are_sources() {
        let built = "B = build\nTESTS := $(patsubst t/%.c,$(B)/%,$(wildcard t/*.c))\nOBJ = $(SRC:.c=.o)\nSTEPS = unit\nSTEPS += more\n\
                     check: $(TESTS) $(STEPS) report.txt gen.c run.sh\n$(B)/%: t/%.c\n\tcc -o $@ $<\n$(OBJ): %.o: %.c\n\tcc -c $<\n\
                     $(STEPS):\n\t./run $@\nreport.txt:\n\t./run > $@\ngen.c: gen.y\n\tbison -o $@ $<\nrun.sh:\n\t./run\n.PHONY: check\n";
        let wanted =
            ["%.o", "more", "sub/build/%", "sub/mk/more", "sub/more", "sub/report.txt", "sub/run.sh", "sub/unit"];
        assert_eq!(found(built, "make check"), wanted);
        assert!(fits("sub/build/%", "sub/build/a") && fits("%.o", "src/a.o") && fits("unit", "unit"));
        assert!(!fits("sub/build/%", "build/a") && !fits("%.o", "src/a.c") && !fits("unit", "unit/a"));
    }
}
