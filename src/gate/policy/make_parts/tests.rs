//! Tests of Makefiles that gain targets or change in other ways.

use super::super::{PathChange, PathChangeKind, Policy, TreeSide};
use std::collections::BTreeMap;

const BASE: &str = "CC = cc\nTESTS = $(patsubst t/%.c,b/%,$(wildcard t/*.c))\n\ncheck: $(TESTS) unit\n\t@for t in $(TESTS); do $$t; done\n\n\
                    b/%: t/%.c\n\t$(CC) -o $@ $<\n\nunit:\n\t$(MAKE) -s deep\n\ndeep: a.out\n\t./a.out\n\na.out: app.c\n\nold:\n\techo old\n\n.PHONY: check unit deep\n";

/// Returns whether the policy accepts the change of the Makefile.
fn is_free(was: &str, is: &str, step: &str) -> bool {
    let lane = serde_json::json!({ "steps": [{ "run": step }] }).to_string();
    let lanes = [crate::lane::parse("verify", "lanes/verify.yaml", &lane).unwrap()];
    let files = BTreeMap::from([("Makefile", was), ("app.c", ""), ("t/a.c", ""), ("scripts/all.sh", "make old\n")]);
    let mut read = |path: &str| files.get(path).map(|text| text.as_bytes().to_vec());
    let policy = Policy::freeze(files.keys().map(|path| (*path).to_owned()), &lanes, &[], &[], &mut read).unwrap();
    let change = [PathChange { path: "Makefile".into(), kind: PathChangeKind::Modified }];
    let content = |_: &str, side| Some(if side == TreeSide::Base { was } else { is }.as_bytes().to_vec());
    let (findings, notes) = (policy.findings(&change, content), policy.unused_notes(&change, content));
    assert!(findings.is_empty() || notes.is_empty(), "{findings:?} {notes:?}");
    assert_eq!(policy.changed_in_unused_parts(&change, content).is_empty(), !findings.is_empty());
    findings.is_empty()
}

#[test]
fn targets_that_nothing_uses_may_be_added() {
    for (from, to) in [
        (
            "",
            "\ninstall: app.c ## for people\n\tinstall -D app.c $(DESTDIR)/x\n\n# And more.\nshow: install deep\n\t@echo \\\n\tdone\n",
        ),
        (".PHONY: check unit deep\n", ".PHONY: check unit deep install\ninstall:\n\ttrue\n"),
        (".PHONY: check unit deep\n", ".PHONY: show\nshow:\n\n\ttrue\n.PHONY: check \\\n  unit deep\n"),
        ("unit:\n", "docs: $(TESTS)\n\ttrue\n\nunit:\n"),
        ("CC = cc\n", "# The compiler.\nCC = cc\n"),
        ("check: $(TESTS)", "# What is checked.\ncheck: $(TESTS)"),
    ] {
        let is = if from.is_empty() { format!("{BASE}{to}") } else { BASE.replacen(from, to, 1) };
        assert_ne!(is, BASE);
        assert!(is_free(BASE, &is, "make -j$(nproc) check"), "{to}");
    }
    let was = BASE.replace("old", "older");
    assert!(!is_free(&was, &was.replace("echo older", "echo newer"), "make check"));
    assert!(!is_free(&was, &was.replace("older:\n\techo older\n", ""), "make check"));
}

#[test]
fn whatever_a_used_target_may_be_changed_by_stays() {
    for (from, to) in [
        ("", "\ntest check: CC = true\n"),
        ("", "\ncheck: CC = true\n"),
        ("", "\nCC = true\n"),
        ("", "\nunit:\n\ttrue\n"),
        ("", "\ncheck: new\nnew:\n\ttrue\n"),
        ("", "\n%.out: %.c\n\ttrue\n"),
        ("", "\n.c.out:\n\ttrue\n"),
        ("", "\na.out:\n\ttrue\n"),
        ("", "\napp.c:\n\ttrue\n"),
        ("", "\na:\n\ttrue\n"),
        ("", "\n.DEFAULT_GOAL = new\nnew:\n\ttrue\n"),
        ("", "\nnew: $(eval CC=true)\n\ttrue\n"),
        ("", "\nnew: $(shell touch a.out)\n\ttrue\n"),
        ("", "\nnew: b/other\n\ttrue\n"),
        ("", "\nexport CC\n"),
        ("", "\n.SILENT:\n"),
        ("", "\n.PHONY: app.c\n"),
        ("", "\ninclude new.mk\nnew:\n\ttrue\n"),
        ("", "\nnew::\n\ttrue\n"),
        ("", "\nnew:\n\ttrue\n-include : new\n"),
        ("", "\nnew:\n\ttrue\n-load : new\n"),
        ("", "\nnew: ; CC = true\n"),
        ("", "\nnew:\n\ttrue\nX = 1\n\tCC = true\n"),
        ("", "\nnew:\n\ttrue\r\n"),
        ("", "\nnew:\n\ttrue \\\\\n\nCC = true\n"),
        ("", "\ndefine new:\n\ttrue\nendef\n"),
        ("check: $(TESTS)", "new:\n\ttrue\ncheck: $(TESTS)"),
        ("\t@for", "new:\n\t@for"),
        ("unit\n\t@for", "unit\nnew:\nifdef X\n\t@for"),
        ("\t./a.out\n", "\t./a.out \\\nnew:\n\ttrue\n"),
        ("\t./a.out\n", ".PHONY: new\n\t./a.out\n"),
        ("\t./a.out\n", ""),
        ("\t$(CC)", "\t@$(CC)"),
        ("unit deep\n", "unit\n"),
        ("old:\n\techo old", "old:\n\techo new"),
    ] {
        let is = if from.is_empty() { format!("{BASE}{to}") } else { BASE.replacen(from, to, 1) };
        assert_ne!(is, BASE);
        assert!(!is_free(BASE, &is, "make check"), "{to}");
    }
}

#[test]
fn no_target_is_new_where_names_may_be_put_together() {
    let plain = "\nnew:\n\ttrue\n";
    let (before, behind) = ("check: a\nifdef A\nunit: b\n", "else\nunit: c\nendif\n\t./unit\n");
    assert!(!is_free(&format!("{before}{behind}"), &format!("{before}{plain}{behind}"), "make check"));
    let new = |was: &str, step: &str| is_free(was, &format!("{was}{plain}"), step);
    assert!(new(BASE, "make check"));
    for directive in ["vpath %.c src:lib", "-include a:b", "export A:B"] {
        assert!(
            !is_free(&format!("{directive}\n{BASE}"), &format!("{directive}\n{plain}{BASE}"), "make"),
            "{directive}"
        );
    }
    for (from, to) in [
        ("-s deep", "-s $(WHICH)"),
        ("-s deep", "-s n$(WHICH)"),
        ("unit\n", "unit $(MORE)\n"),
        ("unit\n", "unit $(addprefix n,$(MORE))\n"),
        ("unit\n", "unit n$(MORE)\n"),
        ("CC = cc\n", "CC = cc\nWHICH = n$(MORE)\n"),
        ("CC = cc\n", "CC = cc\nWHICH = $(A)$(B)\n"),
        ("a.out: app.c\n", "a.out: new.c\n"),
        ("b/%: t/%.c\n", "%.out: n%\n"),
        ("CC = cc\n", "CC = cc\n-include new\n"),
    ] {
        assert!(!new(&BASE.replacen(from, to, 1), "make check"), "{to}");
    }
    for step in [
        "make check new",
        "make $(cat which)",
        "T=$(cat which); make $T",
        "make check-$T",
        "for t in check new; do make $t; done",
    ] {
        assert!(!new(BASE, step), "{step}");
    }
}
