//! Modules of Perl, Ruby and Lua that are found before those of a test framework or of the language's own library, because a command puts a
//! folder of the workspace before these: `prove -l`, `ruby -Ilib`, busted. Of these names none may be new there. Pure.

use super::ecosystems::SHADOWED;
use super::named::{inside, text, words};
use super::{Base, exactly};
use crate::lane::Lane;
use crate::workspace::ProtectedRule;
use std::collections::{BTreeMap, BTreeSet};

/// A language whose programs look for modules in folders of the workspace first.
struct Language {
    name: &'static str,
    /// The endings of its sources.
    endings: &'static [&'static str],
    /// The ending of its modules.
    module: &'static str,
    /// The folders that its runners look into, or that projects put before others.
    folders: &'static [&'static str],
    /// Modules, without their ending. One with `/` at its end means all below it.
    modules: &'static [&'static str],
}

#[rustfmt::skip]
const LANGUAGES: &[Language] = &[
    Language {
        name: "Perl",
        endings: &[".t", ".pm", ".pl"],
        module: ".pm",
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
        endings: &[".rb"],
        module: ".rb",
        folders: &["lib", "test", "spec"],
        modules: &[
            "minitest", "minitest/", "test/unit", "test/unit/", "test-unit", "rspec", "rspec/", "power_assert", "mocha", "mocha/", "webmock", "webmock/", "rr",
            "shoulda", "simplecov", "simplecov/", "rake", "rake/", "bundler", "bundler/", "rubygems", "rubygems/", "cucumber", "cucumber/",
            "English", "base64", "benchmark", "bigdecimal", "cgi", "coverage", "csv", "date", "delegate", "did_you_mean", "digest", "erb", "error_highlight", "etc",
            "fiddle", "fileutils", "find", "forwardable", "io/console", "io/wait", "ipaddr", "json", "json/", "logger", "matrix", "monitor", "net/http", "objspace",
            "observer", "open-uri", "open3", "openssl", "optparse", "ostruct", "pathname", "pp", "prettyprint", "prime", "pstore", "psych", "psych/", "rbconfig",
            "reline", "ripper", "securerandom", "set", "shellwords", "singleton", "socket", "stringio", "strscan", "tempfile", "time", "timeout", "tmpdir", "tsort",
            "uri", "uri/", "weakref", "yaml", "zlib",
        ],
    },
    Language {
        name: "Lua",
        endings: &[".lua"],
        module: ".lua",
        folders: &["", "src", "lib", "lua"],
        modules: &["busted", "busted/", "cliargs", "cliargs/", "lfs", "luassert", "luassert/", "luaunit", "lust", "mediator", "pl/", "say", "say/", "system",
            "system/", "telescope", "term", "term/"],
    },
];
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
    let rule = |path: &String| ProtectedRule { pattern: exactly(path), why: SHADOWED.into() };
    guarded(lanes, base, reached, read).iter().map(rule).collect()
}

/// The files and folders that may not be new.
fn guarded(
    lanes: &[Lane],
    base: &Base,
    reached: &BTreeMap<String, String>,
    read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for language in LANGUAGES {
        let sources = base.0.iter().filter(|path| language.endings.iter().any(|ending| path.ends_with(ending)));
        let sources: Vec<&String> = sources.take(MOST).collect();
        if sources.is_empty() {
            continue;
        }
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
            found.extend(language.modules.iter().filter_map(|module| language.guard(&folder, module, base)));
        }
    }
    found
}

impl Language {
    /// The pattern of a module in a folder, unless the base has the module.
    fn guard(&self, folder: &str, module: &str, base: &Base) -> Option<String> {
        let path = inside(folder, module)?;
        let (file, below) = (format!("{path}{}", self.module), module.ends_with('/'));
        let is_new = if below { !base.has_folder(&path) } else { !base.has(&file) };
        is_new.then_some(if below { path } else { file })
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

/// The table, for people: language, folders and modules.
pub(super) fn rows() -> impl Iterator<Item = (&'static str, Vec<String>, &'static [&'static str])> {
    LANGUAGES.iter().map(|language| {
        let folder = |folder: &&str| if folder.is_empty() { "the root".to_owned() } else { format!("`{folder}/`") };
        (language.name, language.folders.iter().map(folder).collect(), language.modules)
    })
}
