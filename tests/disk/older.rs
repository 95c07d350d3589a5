//! Databases of every older version of the schema, in their original form.

use crate::disk::judge::{Loss, Promises};
use crate::disk::story::make_old;
use std::fs;
use std::path::Path;

#[test]
fn a_database_of_every_older_version_is_brought_up_to_date_and_its_runs_go_on() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/store");
    let count = u32::try_from(fs::read_dir(fixtures).unwrap().count()).unwrap();
    for version in 1..=count {
        let home = crate::support::temp_dir();
        make_old(version, home.path());
        let mut promises = Promises::default();
        ["begun a 3", "ended b 3"].into_iter().for_each(|word| promises.hear(word));
        promises.are_kept_in(home.path(), Loss::Process).unwrap_or_else(|broken| panic!("version {version}: {broken}"));
    }
}
