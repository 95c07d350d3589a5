//! Modules of Perl, Ruby and Lua that would be found before those of a test framework or the
//! standard library. Commands such as `prove -l`, `ruby -Ilib` or `busted` search folders of the
//! workspace first, so no module of these names may be added there. Pure.

use super::ecosystems::{SHADOWED, expanded};
use super::named::{inside, text, words};
use super::{BaseFiles, exactly};
use crate::gate::names::name_of;
use crate::lane::Lane;
use crate::workspace::ProtectedRule;
use std::collections::{BTreeMap, BTreeSet};

/// A language whose programs look for modules in folders of the workspace first.
struct Language {
    name: &'static str,
    /// Prefixes and suffixes of the names of tests. In a base without tests, nothing is guarded.
    tests: &'static [(&'static str, &'static str)],
    /// The extensions of its sources.
    endings: &'static [&'static str],
    /// The endings of a module's file after the module's name.
    forms: &'static [&'static str],
    /// The extensions of its modules, as alternatives of a glob.
    any: &'static str,
    /// The folders that its runners search, or that projects put on the load path.
    folders: &'static [&'static str],
    /// Modules without their extension. A `/` at the end means all modules below.
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
        // Projects add matchers and helpers in `rspec/` and `test/unit/`.
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
/// The maximum number of sources that are searched for folders, and the maximum number of folders
/// that are guarded.
const MOST: usize = 500;
const MOST_FOLDERS: usize = 32;

/// Returns the rules against new modules of these names, for the languages of the base. `reached`
/// are the files that the commands of the gate reach; `read` returns the content of a file of the
/// base.
pub(super) fn rules(
    lanes: &[Lane],
    base: &BaseFiles,
    reached: &BTreeMap<String, String>,
    read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> Vec<ProtectedRule> {
    let rule = |pattern: String| ProtectedRule { pattern, why: SHADOWED.into() };
    guarded(lanes, base, reached, read).into_iter().map(rule).collect()
}

/// Returns the folders above the guarded modules. A link in their place would lead to other
/// modules.
pub(super) fn folders(rules: &[ProtectedRule]) -> BTreeSet<String> {
    let patterns = rules.iter().flat_map(|rule| expanded(&rule.pattern)).collect::<BTreeSet<_>>();
    let above = |pattern: &String| {
        let pattern = pattern.trim_start_matches('/');
        pattern.match_indices('/').map(|(end, _)| pattern[..end].to_owned()).collect::<Vec<_>>()
    };
    patterns.iter().flat_map(above).filter(|folder| !folder.contains(['*', '['])).collect()
}

/// Returns the patterns of the paths that must not be added.
fn guarded(
    lanes: &[Lane],
    base: &BaseFiles,
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
    /// Returns whether a file is a test for the runners of the language, or configures a runner.
    fn is_test(&self, path: &str) -> bool {
        let name = name_of(path);
        self.tests.iter().any(|(start, end)| name.starts_with(start) && name.ends_with(end))
    }

    /// Returns the patterns of the guarded modules in a folder that the base does not have. Each
    /// form of a module is a path, since globs cost more than paths; one glob covers all modules
    /// below folders.
    fn guard(&self, folder: &str, base: &BaseFiles) -> Vec<String> {
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

/// Returns the folders of the base that a text puts on the load path, by `-I` or Perl's `use lib`.
fn named_folders(text: &str, base: &BaseFiles) -> Vec<String> {
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

/// Returns the languages for the printed table: the name, the test names, folders and forms, and
/// the modules.
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
