//! Tests of typical workflows and their offers.

use super::*;

fn detected(text: &str) -> Vec<String> {
    let line = |offer: CheckOffer| match offer {
        Ok(candidate) => {
            let vars: String = candidate.vars.iter().map(|(name, value)| format!("{name}={value} ")).collect();
            let dir = if candidate.dir.is_empty() { String::new() } else { format!(" in {}", candidate.dir) };
            let may_fail = if candidate.may_fail { " may fail" } else { "" };
            format!("{} {vars}{}{dir}{may_fail}", candidate.line, command::quoted(&candidate.words))
        }
        Err(refusal) => format!("{} ! {}: {}", refusal.line, refusal.text, refusal.why),
    };
    let action = |path: &str| (path == ".github/actions/check/action.yml").then_some(ACTION);
    read("ci.yml", text, &action).unwrap().into_iter().map(line).collect()
}

const ACTION: &str = "inputs: { what: { default: test }, how: { default: '' } }\nruns:\n  using: composite\n  steps:\n    \
    - run: make ${{ inputs.what }} ${{ inputs.how }}\n      shell: bash\n    - uses: ./.github/actions/check\n";

#[test]
fn the_steps_of_an_action_of_the_project_are_offered_and_what_is_not_read_is_named() {
    let text = "on: push\njobs:\n  t:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: ./.github/actions/check\n        with: { how: -k }\n        \
        working-directory: web\n      - uses: ./.github/actions/other/\n";
    assert_eq!(
        detected(text),
        [
            "5 make test -k",
            "7 ! uses: ./.github/actions/check: fledge does not read what this action runs",
            "9 ! uses: ./.github/actions/other/: fledge does not read what this action runs",
        ]
    );
}

#[test]
fn steps_are_offered_with_their_lines_folders_and_variables() {
    let text = "on: [push]\nenv: { A: 1 }\njobs:\n  t:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: actions/checkout@v4\n      \
        - run: cargo test\n        env: { B: x, S: '${{ secrets.S }}' }\n      - run: |\n          npm ci\n          npm test -- $A\n        working-directory: web\n      \
        - run: make ${{ github.sha }}\n      - run: make lint\n        continue-on-error: true\n      - uses: golangci/golangci-lint-action@v3\n        with: { args: --timeout=5m }\n";
    assert_eq!(
        detected(text),
        [
            "8 ! cargo test: it needs secrets",
            "11 npm ci in web",
            "12 npm test -- 1 in web",
            "14 ! make ${?}: it needs values that only its own CI has",
            "15 make lint may fail",
            "17 golangci-lint run --timeout=5m",
        ]
    );
}

#[test]
fn of_a_matrix_the_combination_that_is_most_like_this_machine_counts() {
    let job = |matrix: &str, steps: &str| {
        detected(&format!(
            "on: push\njobs:\n  t:\n    runs-on: ${{{{ matrix.os || 'ubuntu-latest' }}}}\n    strategy:\n      matrix: {matrix}\n    steps: [{steps}]\n"
        ))
    };
    let run = "{ run: 'cargo test ${{ matrix.flags }}' }, { run: cargo doc, if: \"matrix.rust == 'nightly'\" }";
    assert_eq!(
        job("{ os: [windows-latest, ubuntu-latest], rust: [nightly, stable], flags: [--all] }", run),
        ["7 cargo test --all", "7 ! cargo doc: its condition does not hold here"]
    );
    assert_eq!(
        job("{ rust: ['1.60', nightly], flags: ['', --all] }", "{ run: 'cargo test ${{ matrix.flags }}' }"),
        ["7 cargo test"]
    );
    let included = "{ include: [{ os: macos-latest, flags: a }, { flags: b }] }";
    assert_eq!(job(included, "{ run: 'cargo test ${{ matrix.flags }}' }"), ["7 cargo test b"]);
    assert_eq!(
        job("{ os: [windows-latest] }", "{ run: cargo test }"),
        ["7 ! cargo test: it runs on another operating system"]
    );
    let excluded = "{ flags: [a, b], exclude: [{ flags: a }], include: [{ flags: b, more: c }] }";
    assert_eq!(job(excluded, "{ run: 'make ${{ matrix.flags }} ${{ matrix.more }}' }"), ["7 make b c"]);
}

#[test]
fn jobs_with_services_and_workflows_for_other_events_are_left_out() {
    let job = "\njobs:\n  t:\n    runs-on: ubuntu-latest\n    services: { db: { image: postgres } }\n    steps: [{ run: make test }]\n";
    assert_eq!(detected(&format!("on: push{job}")), ["6 ! make test: its job needs services"]);
    for on in ["schedule: [{ cron: x }]", "workflow_dispatch:", "push: { tags: ['v*'] }", "release:"] {
        assert_eq!(detected(&format!("on:\n  {on}{job}")), [""; 0], "{on}");
    }
    assert!(read("ci.yml", "a: [", &|_| None).is_err());
    assert_eq!(detected("- 1"), [""; 0]);
}

#[test]
fn a_job_that_tests_what_another_one_has_built_is_left_out() {
    let text = "on: push\njobs:\n  t:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: actions/download-artifact@v4\n      - run: yarn test\n";
    assert_eq!(detected(text), ["7 ! yarn test: its job tests what another job has built"]);
}
