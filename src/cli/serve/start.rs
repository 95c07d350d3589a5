//! Starts the server, and stops it when it is asked to.

use super::super::failure::Failure;
use super::super::paint::{self, Tone};
use super::super::{block_on, configured, no_output, print_data, signals};
use super::{ServeArguments, Site, failed, link};
use crate::config::Environment;
use crate::driver::Stop;
use crate::duration::show_duration;
use crate::serve::{Door, Entrance, House, Lease, Link, Parts, Token, serve};
use crate::store::Store;
use anyhow::Context;

/// Serves until a signal comes; gives the exit code.
pub(super) fn start(arguments: &ServeArguments, environment: &Environment) -> Result<u8, Failure> {
    let site = arguments.place.site(environment)?;
    configured::settle(environment, &site.workspace);
    block_on(served(arguments, site, environment))?
}

async fn served(arguments: &ServeArguments, site: Site, environment: &Environment) -> Result<u8, Failure> {
    let stop = Stop::default();
    let listening = signals::listen(stop.clone()).context("cannot listen for signals").map_err(Failure::own)?;
    let mut lease = Lease::take(&site.folder).map_err(failed)?;
    let token = token(arguments, &site, environment).map_err(failed)?;
    drop(Store::open(&site.state_dir, &site.project).map_err(|error| failed(error.into()))?);
    let now = jiff::Timestamp::now();
    let entrance = Entrance::open(&site.folder, token, now).map_err(failed)?;
    let opened = Door::open(arguments.listen, arguments.allow_public, arguments.host.clone()).await;
    let door = opened.map_err(failed)?;
    let url = door.url();
    lease.is_at(&url).map_err(failed)?;
    let project = site.workspace.display().to_string();
    let Site { state_dir, workspace, project: own, folder } = site;
    let house = House::new(Parts { state_dir, workspace, project: own, entrance });
    print_data(&paint::one_line(&format!("fledge serves {project} at {url}"))).map_err(no_output)?;
    if !arguments.no_link {
        let code = Link::make(&folder, now).map_err(failed)?;
        let lasts = show_duration(Link::lasts());
        print_data(&format!("once, within {lasts}: {}", link::at(&url, &code))).map_err(no_output)?;
    }
    let hint = async {
        stop.token().cancelled().await;
        let grace = show_duration(arguments.grace);
        let says = format!("stopping within {grace}; a second signal ends at once");
        paint::line(&[(Tone::Faint, says.as_str())]);
    };
    tokio::join!(serve(door, &house, stop.token(), arguments.grace), hint);
    drop((lease, listening));
    Ok(0)
}

fn token(
    arguments: &ServeArguments,
    site: &Site,
    environment: &Environment,
) -> Result<Token, crate::serve::ServeFault> {
    const VARIABLE: &str = "FLEDGE_SERVE_TOKEN";
    match (&arguments.token_file, environment.get(VARIABLE)) {
        (Some(file), _) => Token::of_file(file),
        (None, Some(text)) => Token::given(text, &format!("of {VARIABLE}")),
        (None, None) => Token::kept(&site.folder),
    }
}
