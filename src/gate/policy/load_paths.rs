//! Modules of Perl, Ruby and Lua that are found before those of a test framework or of the language's own library, because a command puts a
//! folder of the workspace before these: `prove -l`, `ruby -Ilib`, busted. Of these names none may be new there. Pure.

use super::ecosystems::{SHADOWED, expanded};
use super::named::{inside, text, words};
use super::{Base, exactly};
use crate::gate::names::name_of;
use crate::lane::Lane;
use crate::workspace::ProtectedRule;
use std::collections::{BTreeMap, BTreeSet};

/// A language whose programs look for modules in folders of the workspace first.
struct Language {
    name: &'static str,
    /// How the names of its tests begin and end. Where the base has none of these, nothing is guarded.
    tests: &'static [(&'static str, &'static str)],
    /// The endings of its sources.
    endings: &'static [&'static str],
    /// What a module is called behind its name.
    forms: &'static [&'static str],
    /// The endings of its modules, in a glob.
    any: &'static str,
    /// The folders that its runners look into, or that projects put before others.
    folders: &'static [&'static str],
    /// Modules, without their ending. One with `/` at its end means all below it.
    modules: &'static [&'static str],
}

#[rustfmt::skip]
const LANGUAGES: &[Language] = &[
    Language {
        name: "Perl",
        tests: &[("", ".t")],
        endings: &[".t", ".pm", ".pl"],
        forms: &[".pm", ".pmc"],
        any: "{pm,pmc}",
        folders: &["", "lib", "blib/lib", "t", "t/lib", "local/lib/perl5"],
        modules: &[
            "App/Prove", "App/Prove/", "TAP/", "Test2", "Test2/", "Test/Builder", "Test/Builder/", "Test/Class", "Test/Class/", "Test/Deep", "Test/Deep/",
            "Test/Differences", "Test/Exception", "Test/Fatal", "Test/Harness", "Test/Harness/", "Test/LongString", "Test/MockModule", "Test/MockObject",
            "Test/More", "Test/Most", "Test/Most/", "Test/NoWarnings", "Test/Output", "Test/Pod", "Test/Simple", "Test/Spec", "Test/Spec/", "Test/Tester",
            "Test/Tester/", "Test/use/", "Test/Warn", "Test/Warnings", "ok",
            "AutoLoader", "Benchmark", "Carp", "Carp/", "Config", "Cwd", "Data/Dumper", "Digest/MD5", "Digest/SHA", "DynaLoader", "Encode", "Encode/", "English",
            "Errno", "Exporter", "Exporter/", "Fcntl", "File/Basename", "File/Copy", "File/Find", "File/Path", "File/Spec", "File/Spec/", "File/Temp", "FindBin",
            "Getopt/Long", "Hash/Util", "IO", "IO/File", "IO/Handle", "IO/Seekable", "IO/Select", "IPC/Open3", "JSON/PP", "List/Util", "MIME/Base64",
            "Math/BigFloat", "Math/BigInt", "POSIX", "Scalar/Util", "SelectSaver", "Storable", "Sub/Util", "Symbol", "Term/ANSIColor", "Text/ParseWords",
            "Tie/Hash", "Time/HiRes", "Time/Local", "UNIVERSAL", "XSLoader", "base", "bytes", "constant", "experimental", "feature", "fields", "if", "integer",
            "lib", "locale", "mro", "overload", "overloading", "parent", "re", "strict", "subs", "threads", "threads/", "utf8", "vars", "version", "version/",
            "warnings", "warnings/",
        ],
    },
    Language {
        name: "Ruby",
        tests: &[("test_", ".rb"), ("", "_test.rb"), ("", "_spec.rb")],
        endings: &[".rb"],
        forms: &[".rb", ".so"],
        any: "{rb,so}",
        folders: &["lib", "test", "spec"],
        // Projects add matchers and helpers of their own in `rspec/` and `test/unit/`.
        modules: &[
            "minitest", "minitest/", "test-unit", "test/unit", "test/unit/assertion-failed-error", "test/unit/assertions", "test/unit/attribute",
            "test/unit/autorunner", "test/unit/collector", "test/unit/collector/", "test/unit/error", "test/unit/failure", "test/unit/fixture",
            "test/unit/notification", "test/unit/omission", "test/unit/pending", "test/unit/runner/", "test/unit/testcase", "test/unit/testresult",
            "test/unit/testsuite", "test/unit/ui/", "test/unit/util/", "rspec", "rspec/autorun", "rspec/core", "rspec/core/", "rspec/expectations",
            "rspec/expectations/", "rspec/matchers", "rspec/matchers/built_in", "rspec/matchers/built_in/", "rspec/matchers/composable", "rspec/matchers/dsl",
            "rspec/mocks", "rspec/mocks/", "rspec/support", "rspec/support/", "power_assert", "mocha", "mocha/", "webmock", "webmock/", "rr", "shoulda",
            "simplecov", "simplecov/", "rake", "rake/application", "rake/dsl_definition", "rake/file_utils", "rake/task", "rake/tasklib", "rake/testtask",
            "bundler", "bundler/setup", "rubygems", "rubygems/", "cucumber", "cucumber/cli/",
            "English", "did_you_mean", "error_highlight", "fileutils", "forwardable", "io/console", "objspace", "open3", "optparse", "pathname", "pp",
            "prettyprint", "psych", "psych/", "rbconfig", "reline", "ripper", "shellwords", "stringio", "strscan", "tempfile", "tmpdir", "tsort",
        ],
    },
    Language {
        name: "Lua",
        tests: &[("", "_spec.lua"), (".busted", "")],
        endings: &[".lua"],
        forms: LUA,
        any: "{lua,so}",
        folders: IN_LUA,
        modules: &["busted", "busted/", "cliargs", "cliargs/", "lfs", "luassert", "luassert/", "pl/List", "pl/compat", "pl/dir", "pl/path", "pl/pretty",
            "pl/stringx", "pl/tablex", "pl/types", "pl/utils", "say"],
    },
    Language {
        name: "Lua",
        tests: &[("test_", ".lua"), ("", "_test.lua")],
        endings: &[".lua"],
        forms: LUA,
        any: "{lua,so}",
        folders: IN_LUA,
        modules: &["luaunit", "lust", "telescope"],
    },
];
const LUA: &[&str] = &[".lua", ".so", "/init.lua"];
const IN_LUA: &[&str] = &["", "src", "lib", "lua"];
/// Options and words before a folder of modules.
const BEFORE: &[&str] = &["-I", "--include", "--lpath", "lib"];
/// The most sources that are searched for folders, and the most folders.
const MOST: usize = 500;
const MOST_FOLDERS: usize = 32;

/// The rules by which no such module may be new, for the languages that the base has. `reached` are the files that the gate's commands reach;
/// `read` gives a file of the base.
pub(super) fn rules(
    lanes: &[Lane],
    base: &Base,
    reached: &BTreeMap<String, String>,
    read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> Vec<ProtectedRule> {
    let rule = |pattern: String| ProtectedRule { pattern, why: SHADOWED.into() };
    guarded(lanes, base, reached, read).into_iter().map(rule).collect()
}

/// The folders above the modules that these rules guard: a link in the place of one would lead to others.
pub(super) fn folders(rules: &[ProtectedRule]) -> BTreeSet<String> {
    let patterns = rules.iter().flat_map(|rule| expanded(&rule.pattern)).collect::<BTreeSet<_>>();
    let above = |pattern: &String| {
        let pattern = pattern.trim_start_matches('/');
        pattern.match_indices('/').map(|(end, _)| pattern[..end].to_owned()).collect::<Vec<_>>()
    };
    patterns.iter().flat_map(above).filter(|folder| !folder.contains(['*', '['])).collect()
}

/// The patterns of what may not be new.
fn guarded(
    lanes: &[Lane],
    base: &Base,
    reached: &BTreeMap<String, String>,
    read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for language in LANGUAGES {
        if !base.0.iter().any(|path| language.is_test(path)) {
            continue;
        }
        let sources = base.0.iter().filter(|path| language.endings.iter().any(|ending| path.ends_with(ending)));
        let sources: Vec<&String> = sources.take(MOST).collect();
        let steps = lanes.iter().flat_map(|lane| lane.steps.iter().chain(&lane.setup));
        let mut texts: Vec<String> = steps.map(|step| step.run.clone()).chain(reached.values().cloned()).collect();
        let envs = lanes.iter().flat_map(|lane| lane.steps.iter().map(|step| &step.env).chain([&lane.env]));
        let set = envs.flat_map(|env| ["PERL5LIB", "RUBYLIB"].into_iter().filter_map(|name| env.get(name)));
        texts.extend(set.flat_map(|folders| folders.split(':')).map(|folder| format!("-I {folder}")));
        texts.extend(sources.iter().filter_map(|path| text(path, read)));
        let named: BTreeSet<String> = texts.iter().flat_map(|text| named_folders(text, base)).collect();
        let folders =
            language.folders.iter().map(|folder| (*folder).to_owned()).chain(named.into_iter().take(MOST_FOLDERS));
        for folder in folders.collect::<BTreeSet<_>>() {
            found.extend(language.guard(&folder, base));
        }
    }
    found
}

impl Language {
    /// Whether a file is a test of the language's runners, or configures one.
    fn is_test(&self, path: &str) -> bool {
        let name = name_of(path);
        self.tests.iter().any(|(start, end)| name.starts_with(start) && name.ends_with(end))
    }

    /// The patterns of the modules in a folder that the base has not: a path for each form of a module, and one glob for all that is below
    /// others, since globs cost more than paths.
    fn guard(&self, folder: &str, base: &Base) -> Vec<String> {
        let (below, single): (Vec<&str>, Vec<&str>) = self.modules.iter().partition(|module| module.ends_with('/'));
        let forms = |module: &str| {
            let files = self.forms.iter().filter_map(|form| inside(folder, &format!("{module}{form}")));
            let files: Vec<String> = files.collect();
            if files.iter().any(|file| base.has(file)) { Vec::new() } else { files }
        };
        let mut found: Vec<String> = single.into_iter().flat_map(forms).map(|file| exactly(&file)).collect();
        let is_new = |module: &&str| inside(folder, module).is_some_and(|path| !base.has_folder(&path));
        let below: Vec<&str> = below.into_iter().filter(is_new).map(|module| module.trim_end_matches('/')).collect();
        if !below.is_empty() {
            let start = if folder.is_empty() { String::new() } else { exactly(folder) };
            found.push(format!("{start}/{{{}}}/**/*.{}", below.join(","), self.any));
        }
        found
    }
}

/// The folders of the base that a text puts before those of the language: behind `-I`, and in Perl's `use lib`.
fn named_folders(text: &str, base: &Base) -> Vec<String> {
    let mut found = Vec::new();
    for line in text.lines() {
        let words = words(line);
        let after = words.windows(2).filter(|pair| BEFORE.contains(&pair[0])).map(|pair| pair[1]);
        let joined = words.iter().filter_map(|word| word.strip_prefix("-I")).flat_map(|folders| folders.split(':'));
        let names = after.chain(joined).filter(|name| !name.is_empty() && !name.contains(['$', '*', '~']));
        found.extend(names.filter_map(|name| inside("", name)).filter(|folder| base.has_folder(folder)));
    }
    found
}

/// The table, for people: language, names of tests, folders, modules and their forms.
pub(super) fn rows() -> impl Iterator<Item = (&'static str, [Vec<String>; 3], &'static [&'static str])> {
    LANGUAGES.iter().map(|language| {
        let folder = |folder: &&str| if folder.is_empty() { "the root".to_owned() } else { format!("`{folder}/`") };
        let test = |(start, end): &(&str, &str)| match *end {
            "" => format!("`{start}`"),
            end => format!("`{start}*{end}`"),
        };
        let tests = language.tests.iter().map(test).collect();
        let folders = language.folders.iter().map(folder).collect();
        let forms = language.forms.iter().map(|form| format!("`{form}`")).collect();
        (language.name, [tests, folders, forms], language.modules)
    })
}
