//! A tracked Go `vendor` folder: it may change to the output of `go mod vendor` for the work.

use crate::support::{Fledge, Model, Need, needs, say, shell};

const ADD: &str = "printf 'package a\\n\\nimport \"example.com/third\"\\n\\nvar B = third.Of(9)\\n' >b.go
go mod edit -require=example.com/third@v0.0.0 && go mod vendor && touch done";

/// Returns a project with one of its two packages in `vendor`.
fn project(model: &Model) -> Fledge {
    let replaced = "replace (\n\texample.com/half => ./half\n\texample.com/third => ./third\n)\n";
    let module = format!("module example.com/a\n\ngo 1.18\n\nrequire example.com/half v0.0.0\n\n{replaced}");
    let list = "# example.com/half v0.0.0 => ./half\n## explicit; go 1.18\nexample.com/half\n# example.com/half => ./half\n# example.com/third => ./third\n";
    let place = Fledge::simple(model).lane("verify", &needs("done")).arg("--max-retries=0").file("go.mod", module);
    let place = place.file("a.go", "package a\n\nimport \"example.com/half\"\n\nvar A = half.Of(8)\n");
    let package = |name: &str| format!("package {name}\n\nfunc Of(n int) int {{ return n / 2 }}\n");
    let place = ["half", "third"].into_iter().fold(place, |place, name| {
        let place = place.file(&format!("{name}/go.mod"), format!("module example.com/{name}\n\ngo 1.18\n"));
        place.file(&format!("{name}/{name}.go"), package(name))
    });
    place.file("vendor/modules.txt", list).file("vendor/example.com/half/half.go", package("half"))
}

#[test]
fn a_vendored_package_is_honest_work_if_go_makes_it_and_is_put_back_if_not() {
    long_test!();
    if !Need::has_program("go") {
        return;
    }
    for sandbox in ["--sandbox=auto", "--sandbox=off"] {
        let model = Model::new([shell(ADD), say("Done.")]);
        let ended = project(&model).arg(sandbox).run();
        let report = ended.must_be(0, "verified");
        let warnings = report["warnings"].to_string();
        assert!(warnings.contains("vendor equals the output of `go mod vendor` for the work's modules"), "{warnings}");
        assert!(report.get("protected").is_none(), "{}", ended.story());
        assert!(ended.file("vendor/example.com/third/third.go").is_some(), "{}", ended.story());

        let altered = format!("{ADD}; sed -i 's,n / 2,n,' vendor/example.com/half/half.go");
        let model = Model::new([shell(&altered), say("Done.")]);
        let ended = project(&model).arg(sandbox).run();
        let report = ended.must_be(6, "gate_tampered");
        let held = report["protected"].as_array().unwrap().iter();
        let rule = |path: &str| held.clone().find(|held| held["path"] == path).unwrap()["rule"].to_string();
        assert!(rule("vendor/example.com/half/half.go").ends_with("; `go mod vendor` output differs\""), "{report}");
        assert!(!rule("vendor/modules.txt").contains("go mod vendor"), "{report}");
        assert!(ended.file("vendor/example.com/half/half.go").unwrap().contains("n / 2"), "{}", ended.story());
    }
}
