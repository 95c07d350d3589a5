//! Faults before an answer: error statuses, failed connections, and error messages that reveal too
//! much.

use super::{Case, Entry, holds};
use crate::faults::play::{KEY, Played};
use crate::faults::server::{Act, Script, Server};
use crate::faults::voice::{Wire, status};
use fledge::verdict::Reason;
use std::time::Duration;

pub(super) const ROWS: &[Entry] = &[
    ("L01", "429, `retry-after: 2`", l01),
    ("L02", "429, other forms of the wish", l02),
    ("L03", "429, `retry-after: 3600`", l03),
    ("L04", "quota or money is used up", l04),
    ("L05", "529 overloaded", l05),
    ("L06", "5xx with a page of HTML", l06),
    ("L07", "`x-should-retry`", l07),
    ("L08", "401, 403", l08),
    ("L09", "400 context too long", l09),
    ("L10", "404 model", l10),
    ("L11", "413", l11),
    ("L12", "no connection", l12),
    ("L13", "accepted, and not a byte", l13),
    ("L36", "redirect to another host", l36),
    ("L43", "the complaint echoes the key", l43),
];

fn busy(wire: Wire, headers: &[(&str, &str)]) -> Script {
    status(429, headers, wire.complaint("rate_limit_error", "slow down").to_string())
}

fn failed(name: &'static str, script: Script) -> Case {
    Case::stays(name, vec![script], Reason::ProviderFailed, 1)
}

fn pause_within(played: &Played, from_ms: u64, to_ms: u64) -> Result<(), String> {
    let range = Duration::from_millis(from_ms)..=Duration::from_millis(to_ms);
    holds(played.pauses.iter().all(|pause| range.contains(pause)), || format!("pauses {:?}", played.pauses))
}

fn l01(wire: Wire) -> Vec<Case> {
    let case = Case::mends(wire, "", vec![busy(wire, &[("retry-after", "2")])]);
    vec![
        case.check(|played| pause_within(played, 2000, 2000))
            .check(|played| holds(played.told.contains("\"wait_ms\":2000"), || "no event reports the wait".into())),
    ]
}

fn l02(wire: Wire) -> Vec<Case> {
    let date = (jiff::Timestamp::now() + jiff::SignedDuration::from_secs(90))
        .strftime("%a, %d %b %Y %H:%M:%S GMT")
        .to_string();
    let one = |name, header: (&str, &str)| Case::mends(wire, name, vec![busy(wire, &[header])]);
    let own = |name, value| one(name, ("retry-after", value)).check(|played| pause_within(played, 500, 1000));
    vec![
        one("milliseconds", ("retry-after-ms", "1500")).check(|played| pause_within(played, 1500, 1500)),
        one("a date", ("retry-after", &date)).check(|played| pause_within(played, 25_000, 90_000)),
        own("a date that has passed", "Wed, 21 Oct 2015 07:28:00 GMT"),
        own("garbage", "soon"),
        own("negative", "-5"),
        own("NaN", "NaN"),
        own("infinite", "inf"),
    ]
}

fn l03(wire: Wire) -> Vec<Case> {
    let case = Case::stays("", vec![busy(wire, &[("retry-after", "3600")])], Reason::Blocked, 1);
    vec![case.check(|played| {
        let said = played.pauses.is_empty() && played.result.message.contains("3600 s") && played.result.exit_code == 7;
        holds(said && played.took < Duration::from_secs(1), || format!("{} {:?}", played.result.message, played.took))
    })]
}

fn l04(wire: Wire) -> Vec<Case> {
    let (kind, message) = match wire {
        Wire::Anthropic => ("rate_limit_error", "You have reached your specified API usage limits."),
        Wire::Chat | Wire::Responses => ("insufficient_quota", "You exceeded your current quota."),
        Wire::Ollama => ("", "billing_hard_limit reached"),
    };
    let paid = status(402, &[], wire.complaint("payment", "pay first").to_string());
    let never = status(429, &[("x-should-retry", "false")], wire.complaint("limit", "no more today").to_string());
    vec![
        failed("429", status(429, &[], wire.complaint(kind, message).to_string())),
        failed("402", paid),
        failed("429, and not to be retried", never),
    ]
}

fn l05(wire: Wire) -> Vec<Case> {
    let over = || status(529, &[], wire.complaint("overloaded_error", "Overloaded").to_string());
    let stays = Case::stays("for ever", vec![over()], Reason::ProviderFailed, 4).check(|played| {
        let doubles = [(500, 1000), (1000, 2000), (2000, 4000)];
        let fits = |(pause, (from, to)): (&Duration, (u64, u64))| (from..=to).contains(&(pause.as_millis() as u64));
        let ok = played.pauses.len() == 3 && played.pauses.iter().zip(doubles).all(fits);
        holds(ok, || format!("pauses {:?}", played.pauses))
    });
    let mut falls = Case::mends(wire, "a second model", vec![over(), over(), over(), over()]).check(|played| {
        let last = played.server.requests().pop().unwrap_or_default();
        let warned = played.result.warnings.iter().any(|warning| warning.contains("falling back to second"));
        holds(last.contains("\"second\"") && warned, || format!("{:?}", played.result.warnings))
    });
    falls.models = 2;
    vec![stays, falls]
}

fn l06(wire: Wire) -> Vec<Case> {
    let page = format!("<html><h1>Bad gateway</h1>{}</html>", "<p>x</p>".repeat(9000));
    let scripts = [500, 502, 503, 504].map(|code| status(code, &[], &page));
    let kept = |played: &Played| {
        let longest = played.told.lines().map(str::len).max().unwrap_or(0);
        holds(longest < 4096 && played.told.contains("Bad gateway"), || format!("{longest} bytes are kept"))
    };
    scripts
        .into_iter()
        .zip(["500", "502", "503", "504"])
        .map(|(script, name)| Case::mends(wire, name, vec![script]).check(kept))
        .collect()
}

fn l07(wire: Wire) -> Vec<Case> {
    let said = |code, wish| status(code, &[("x-should-retry", wish)], wire.complaint("some_error", "no").to_string());
    vec![failed("false on 500", said(500, "false")), Case::mends(wire, "true on 400", vec![said(400, "true")])]
}

fn l08(wire: Wire) -> Vec<Case> {
    let denied =
        |code| status(code, &[], wire.complaint("authentication_error", &format!("bad key {KEY}")).to_string());
    let hint =
        |played: &Played| holds(played.result.message.contains("check the key"), || played.result.message.clone());
    vec![failed("401", denied(401)).check(hint), failed("403", denied(403)).check(hint)]
}

fn too_long(script: Script) -> Case {
    let case = Case { is_long: true, ..Case::stays("", vec![script], Reason::ProviderFailed, 2) };
    case.check(|played| holds(played.summaries == 1, || format!("{} summaries", played.summaries)))
}

fn l09(wire: Wire) -> Vec<Case> {
    let (kind, message) = match wire {
        Wire::Anthropic => ("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
        Wire::Chat | Wire::Responses => {
            ("context_length_exceeded", "This model's maximum context length is 128000 tokens.")
        }
        Wire::Ollama => ("", "the input length exceeds the context length"),
    };
    vec![too_long(status(400, &[], wire.complaint(kind, message).to_string()))]
}

fn l10(wire: Wire) -> Vec<Case> {
    let (kind, message) = ("not_found_error", "model `scripted` not found");
    let names =
        |played: &Played| holds(played.result.message.contains("/scripted: 404"), || played.result.message.clone());
    vec![failed("", status(404, &[], wire.complaint(kind, message).to_string())).check(names)]
}

fn l11(_: Wire) -> Vec<Case> {
    vec![too_long(status(413, &[], "<html>Request Entity Too Large</html>"))]
}

fn l12(_: Wire) -> Vec<Case> {
    let tried = |played: &Played| holds(played.pauses.len() == 3, || format!("pauses {:?}", played.pauses));
    let unreachable = |name, address: String, requests| {
        let case = Case::stays(name, vec![status(500, &[], "")], Reason::ProviderFailed, requests);
        Case { address: Some(address), is_raw: true, ..case }.check(tried)
    };
    vec![
        // Not a port that was free a moment ago: another server of these tests may use it by now.
        unreachable("refused", "http://127.0.0.1:9".into(), 0),
        // A label of 64 letters is not a valid name, so no DNS server is asked for it.
        unreachable("no such host", format!("http://{}.invalid", "a".repeat(64)), 0),
        unreachable("no TLS", "https://127.0.0.1:PORT".into(), 4),
    ]
}

fn l13(wire: Wire) -> Vec<Case> {
    let case = Case::mends(wire, "", vec![vec![Act::Stall]]).clocked(|clocks, short| clocks.first_byte = short);
    vec![case]
}

fn l36(_: Wire) -> Vec<Case> {
    let redirected = |(code, name)| {
        let stranger = Server::raw(&[status(200, &[], "")]);
        let elsewhere = format!("http://{}/v1", stranger.address()).replace("127.0.0.1", "localhost");
        let case = failed(name, status(code, &[("location", &elsewhere)], ""));
        Case { stranger: Some(stranger), ..case }.check(|played| {
            holds(played.result.message.contains("redirect not followed"), || played.result.message.clone())
        })
    };
    [(301, "301"), (302, "302"), (307, "307"), (308, "308")].map(redirected).into()
}

fn l43(wire: Wire) -> Vec<Case> {
    let echo = |kind: &str| wire.complaint(kind, &format!("your key {KEY}\u{0} (Bearer {KEY}) is odd")).to_string();
    let inside = wire.complains("invalid_request_error", &format!("odd key {KEY}"));
    let long = format!("{} {KEY}", "x".repeat(4085));
    let hidden = |played: &Played| holds(played.told.contains("***"), || played.told.clone());
    let ends = if wire == Wire::Ollama { (Reason::ProviderFailed, 4) } else { (Reason::ProviderFailed, 1) };
    vec![
        failed("400", status(400, &[], echo("invalid_request_error"))).check(hidden),
        Case::stays("500", vec![status(500, &[], echo("api_error"))], Reason::ProviderFailed, 4).check(hidden),
        Case::stays("500, cut in the key", vec![status(500, &[], long)], Reason::ProviderFailed, 4),
        Case::stays("inside the stream", vec![vec![wire.streams(inside)]], ends.0, ends.1).check(hidden),
    ]
}
