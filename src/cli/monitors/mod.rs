//! `fledge monitors`: regular events that are expected, and their check-ins. No verb needs a
//! server, but only a server detects missed check-ins and notifies others.

mod list;

use super::failure::CliError;
use super::output::{no_output, print_data, print_json};
use super::paint::{self, Tone};
use super::project::ProjectArguments;
use crate::config::EnvironmentLayer;
use crate::driver::project_of;
use crate::duration::parse_duration;
use crate::http::Address;
use crate::monitor::Status;
use crate::scheduler::{CheckIn, HealthNotifier, MonitorData, MonitorError, NewMonitor, NewWebhook, STRIP, check_in};
use crate::store::{MonitorRow, MonitorWrite, Store, read_text};
use anyhow::anyhow;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

/// The version of the `--json` output.
const MONITORS_SCHEMA_VERSION: u32 = 1;
/// The longest secret, in bytes.
const LONGEST: usize = 1024;

#[derive(Debug, Args)]
#[command(after_help = "Scheduled tasks check in automatically. Other programs check in with one request to `fledge \
    serve`:\n  \
    curl -X POST -H \"Authorization: Bearer $TOKEN\" 'http://127.0.0.1:7777/v1/monitors/backup/checkins?status=ok'\n\n\
    Examples:\n  fledge monitors list\n  fledge monitors show backup\n  fledge monitors add backup --schedule \"0 3 * * *\" --margin 15m\n  \
    fledge monitors checkin backup ok\n  fledge monitors notify backup --command notify-send backup")]
pub(super) struct MonitorsArguments {
    #[command(flatten)]
    project: ProjectArguments,
    /// Print JSON to standard output
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    verb: MonitorsVerb,
}

#[derive(Debug, Subcommand)]
enum MonitorsVerb {
    /// List monitors and their health
    #[command(after_help = "Examples:\n  fledge monitors list\n  fledge monitors list --json")]
    List,
    /// Show a monitor and its check-ins
    #[command(after_help = "Examples:\n  fledge monitors show backup")]
    Show {
        /// Name of the monitor
        slug: String,
    },
    /// Add a monitor, or change it
    Add(AddMonitorArguments),
    /// Check in with a status: in_progress, ok or error
    Checkin(CheckinArguments),
    /// Set the program or address that gets the changes of a monitor's health
    Notify(NotifyArguments),
    /// Remove a monitor and its check-ins
    #[command(after_help = "Examples:\n  fledge monitors remove backup")]
    Remove {
        /// Name of the monitor
        slug: String,
    },
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  fledge monitors add backup --schedule \"0 3 * * *\" --zone Europe/Berlin --max-runtime 1h\n  \
    fledge monitors add pulse --schedule \"every 10m\" --margin 2m"
)]
struct AddMonitorArguments {
    /// Name of the monitor: lower-case letters, digits, `-` and `_`
    slug: String,
    /// Expected times: five cron fields, `@daily` and the like, or `every 30m`
    #[arg(long, value_name = "WHEN")]
    schedule: String,
    /// Time zone of the schedule, e.g. Europe/Berlin [default: UTC]
    #[arg(long, value_name = "ZONE")]
    zone: Option<String>,
    /// Display name of the monitor
    #[arg(long)]
    name: Option<String>,
    /// Accept check-ins up to this late
    #[arg(long, value_name = "DURATION", default_value = "5m", allow_hyphen_values = true, value_parser = parse_duration)]
    margin: Duration,
    /// Longest runtime after an in_progress check-in [default: no limit]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = parse_duration)]
    max_runtime: Option<Duration>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  fledge monitors checkin backup ok\n  fledge monitors checkin backup in_progress --id 42"
)]
struct CheckinArguments {
    /// Name of the monitor
    slug: String,
    /// Status
    #[arg(value_parser = ["in_progress", "ok", "error"])]
    status: String,
    /// Id of the run; repeated check-ins with the same id count once
    #[arg(long)]
    id: Option<String>,
    /// Duration of the run
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = parse_duration)]
    duration: Option<Duration>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "A program gets FLEDGE_MONITOR, FLEDGE_HEALTH, FLEDGE_HEALTH_WAS, FLEDGE_SINCE and FLEDGE_DELIVERY \
    in its environment. A\n\
    webhook gets the header `X-Fledge-Signature: t=SECOND,v1=…`: the HMAC-SHA256 of SECOND, a dot and the body. \
    fledge retries a\n\
    failed delivery for about an hour, with the same `X-Fledge-Delivery`.\n\n\
    Examples:\n  fledge monitors notify backup --webhook https://example.org/hook\n  fledge monitors notify backup --command notify-send backup\n  fledge monitors notify backup --off"
)]
struct NotifyArguments {
    /// Name of the monitor
    slug: String,
    #[command(flatten)]
    who: Who,
    /// Sign messages with the secret in FILE
    ///
    /// Default: a new secret, which is printed once.
    #[arg(long, value_name = "FILE", requires = "webhook")]
    secret_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Who {
    /// Send changes to URL
    #[arg(long, value_name = "URL")]
    webhook: Option<String>,
    /// Run COMMAND, which is all remaining arguments
    #[arg(long, value_name = "COMMAND", num_args = 1.., allow_hyphen_values = true)]
    command: Option<Vec<String>>,
    /// Notify no one
    #[arg(long)]
    off: bool,
}

/// The project whose monitors are used, the time, and the form of the output.
#[derive(Debug)]
struct MonitorsContext {
    state: PathBuf,
    project: PathBuf,
    now: Timestamp,
    json: bool,
}

/// Runs the verb; returns the exit code.
///
/// # Errors
/// When the monitor does not exist, a value is invalid, or the store cannot be read or written.
pub(super) fn run(arguments: MonitorsArguments, environment: &EnvironmentLayer) -> Result<u8, CliError> {
    let workspace = arguments.project.root(environment)?;
    let state = environment.state_dir().map_err(CliError::input)?;
    let project = project_of(&state, &workspace);
    let place = MonitorsContext { state, project, now: Timestamp::now(), json: arguments.json };
    match arguments.verb {
        MonitorsVerb::List => list::list(&place),
        MonitorsVerb::Show { slug } => list::show(&place, &slug),
        MonitorsVerb::Add(arguments) => add(&place, arguments),
        MonitorsVerb::Checkin(arguments) => checkin(&place, &arguments),
        MonitorsVerb::Notify(arguments) => set_notifier(&place, arguments),
        MonitorsVerb::Remove { slug } => remove(&place, &slug),
    }
}

impl MonitorsContext {
    fn existing(&self) -> Result<Option<Store>, CliError> {
        Store::existing(&self.state, &self.project).map_err(CliError::own)
    }

    /// Finds a monitor by its name. Returns it with its store.
    fn find(&self, slug: &str) -> Result<(Store, MonitorRow), CliError> {
        let none = || {
            let failure = CliError::input(anyhow!("there is no monitor `{slug}`"));
            failure.hint("run `fledge monitors list` to see them")
        };
        let store = self.existing()?.ok_or_else(none)?;
        match store.monitor(slug).map_err(CliError::own)? {
            Some(row) => Ok((store, row)),
            None => {
                let known = store.monitors().map_err(CliError::own)?;
                Err(none().near(slug, known.iter().map(|row| row.slug.as_str())))
            }
        }
    }

    fn print_change(
        &self,
        store: &Store,
        slug: &str,
        says: &str,
        more: Option<(&str, String)>,
    ) -> Result<u8, CliError> {
        if !self.json {
            paint::line(&[(Tone::Plain, paint::one_line(says))]);
            if let Some((_, secret)) = more {
                print_data(&secret).map_err(no_output)?;
            }
            return Ok(0);
        }
        let row = store.monitor(slug).map_err(CliError::own)?;
        let data =
            row.map(|row| MonitorData::from_row(store, &row, STRIP, self.now)).transpose().map_err(CliError::own)?;
        let mut all = json!({ "schema_version": MONITORS_SCHEMA_VERSION, "monitor": data });
        if let Some((name, secret)) = more {
            all[name] = secret.into();
        }
        print_json(&all.to_string()).map_err(no_output).map(|()| 0)
    }
}

fn add(place: &MonitorsContext, arguments: AddMonitorArguments) -> Result<u8, CliError> {
    let AddMonitorArguments { slug, schedule, zone, name, margin, max_runtime } = arguments;
    let minutes = |length: Duration| length.as_secs_f64() / 60.0;
    let (margin_minutes, max_runtime_minutes) = (Some(minutes(margin)), max_runtime.map(minutes));
    let new = NewMonitor { slug, name, schedule, zone, margin_minutes, max_runtime_minutes, webhook: None };
    let (row, _) = new.row(place.now).map_err(|why| CliError::input(anyhow!(why)))?;
    let store = Store::open(&place.state, &place.project).map_err(CliError::own)?;
    let says = match store.put_monitor(&row).map_err(CliError::own)? {
        MonitorWrite::New => "added",
        MonitorWrite::Done | MonitorWrite::Unknown => "updated",
        MonitorWrite::Foreign => return Err(of_a_task(&row.slug)),
    };
    place.print_change(&store, &row.slug, &format!("`{}` {says}", row.slug), None)
}

fn checkin(place: &MonitorsContext, arguments: &CheckinArguments) -> Result<u8, CliError> {
    let (store, row) = place.find(&arguments.slug)?;
    let status = Status::of(&arguments.status).unwrap_or(Status::Error);
    let said = CheckIn { id: arguments.id.clone(), duration: arguments.duration, ..CheckIn::new(status) };
    let heard = check_in(&store, &row.slug, &said, place.now).map_err(|fault| match fault {
        MonitorError::Id | MonitorError::Status { .. } | MonitorError::Unknown { .. } => CliError::input(fault),
        MonitorError::Schedule { .. } | MonitorError::Slug(_) | MonitorError::Store(_) => CliError::own(fault),
    })?;
    place.print_change(&store, &row.slug, &format!("`{}` is {}", row.slug, heard.health.word()), None)
}

fn set_notifier(place: &MonitorsContext, arguments: NotifyArguments) -> Result<u8, CliError> {
    let (store, row) = place.find(&arguments.slug)?;
    let asked = arguments.who.webhook.clone();
    let (how, secret) = match (arguments.who.webhook, arguments.who.command) {
        (Some(url), _) => {
            let read = |path: PathBuf| {
                let text = read_text(&path, LONGEST).map_err(CliError::input)?;
                text.map(|text| text.trim().to_owned()).ok_or_else(|| CliError::no_file("file", &path))
            };
            let secret = arguments.secret_file.map(read).transpose()?;
            let (how, made) = NewWebhook { url, secret }.checked().map_err(|why| CliError::input(anyhow!(why)))?;
            (how.text(), made)
        }
        (None, Some(command)) => (HealthNotifier::Command(command).text(), None),
        (None, None) => (String::new(), None),
    };
    let replaced = match HealthNotifier::parse(&row.on_change).ok().flatten() {
        Some(HealthNotifier::Command(command)) if how != row.on_change => {
            format!(", instead of the program `{}`", command.join(" "))
        }
        Some(HealthNotifier::Webhook { url, .. }) if how != row.on_change && asked.as_ref() == Some(&url) => {
            ", with a new secret that replaces the old one".to_owned()
        }
        Some(HealthNotifier::Webhook { url, .. }) if how != row.on_change => format!(", instead of {}", host_of(&url)),
        Some(_) | None => String::new(),
    };
    let change = match HealthNotifier::parse(&how).ok().flatten() {
        None => "are sent to no one".to_owned(),
        Some(HealthNotifier::Command(command)) => format!("run `{}`", command.join(" ")),
        Some(HealthNotifier::Webhook { url, .. }) => format!("are sent to {}", host_of(&url)),
    };
    let signed = match &secret {
        None => "",
        Some(_) => "; messages are signed with this secret, which fledge does not show again:",
    };
    let says = format!("changes of health {change}{replaced}{signed}");
    store.tell_monitor(&row.slug, &how).map_err(CliError::own)?;
    place.print_change(&store, &row.slug, &says, secret.map(|secret| ("webhook_secret", secret)))
}

/// Returns the host of an address, because the rest may be secret.
fn host_of(url: &str) -> String {
    Address::parse(url).map_or_else(|_| "an address".into(), |address| address.host())
}

fn remove(place: &MonitorsContext, slug: &str) -> Result<u8, CliError> {
    let (store, row) = place.find(slug)?;
    match store.remove_monitor(&row.slug, None).map_err(CliError::own)? {
        MonitorWrite::New | MonitorWrite::Done | MonitorWrite::Unknown => {}
        MonitorWrite::Foreign => return Err(of_a_task(&row.slug)),
    }
    place.print_change(&store, &row.slug, &format!("removed `{}`", row.slug), None)
}

fn of_a_task(slug: &str) -> CliError {
    let error = anyhow!("the monitor `{slug}` belongs to the scheduled task of that name");
    CliError::input(error).hint("edit `schedule: { monitor: … }` in the file of that task")
}
