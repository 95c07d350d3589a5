//! Configured connections to a model: a certificate authority that only one model trusts, and a
//! proxy, with and without TLS.

use crate::support::{Ended, Fledge, Secured};

const ANSWER: &str = concat!(
    "HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\nconnection: close\r\n\r\n",
    "{\"model\":\"m\",\"message\":{\"content\":\"Done.\"},\"done\":true,\"done_reason\":\"stop\"}\n",
);

fn run(entry: &str, ca: &str) -> Ended {
    let yaml = format!("max_tries: 1\nmodels:\n  m: {{ provider: ollama, model: m, {entry} }}\n");
    Fledge::new()
        .task("---\nmodel: m\nlane: false\n---\nDo it.")
        .file("../home/.config/fledge/config.yaml", yaml)
        .file("../home/ca.pem", ca)
        .run()
}

#[test]
fn a_model_behind_a_private_authority_is_reached_only_with_its_ca_file() {
    long_test!();
    let server = Secured::new(ANSWER);
    let with = run(&format!("base_url: '{}', ca_file: ~/ca.pem", server.url()), &server.ca);
    assert_eq!(with.must_be(0, "skipped")["summary"], "Done.");
    let without = run(&format!("base_url: '{}'", server.url()), &server.ca);
    let message = without.must_be(3, "provider_failed")["message"].to_string();
    assert!(message.contains("certificate"), "{message}");
    let stranger = run(&format!("base_url: '{}', ca_file: ~/ca.pem", server.url()), &Secured::new(ANSWER).ca);
    stranger.must_be(3, "provider_failed");
    assert_eq!(server.received_requests().len(), 1);
    let none = run(&format!("base_url: '{}', ca_file: ~/none.pem", server.url()), &server.ca);
    none.must_exit(2);
    assert!(none.stderr.contains("the model `m`: cannot read its ca_file") && none.stderr.contains("none.pem"));
    let empty = run(&format!("base_url: '{}', ca_file: ~/ca.pem", server.url()), "no certificate");
    empty.must_exit(2);
    assert!(empty.stderr.contains("the CA file contains no certificates"), "{}", empty.story());
}

#[test]
fn a_proxy_with_tls_and_a_password_carries_requests_and_hides_the_password() {
    long_test!();
    let proxy = Secured::new(ANSWER);
    let address = proxy.url().replace("https://", "https://user:canary-77@");
    let entry = |base: &str| format!("base_url: '{base}', proxy: '{address}', ca_file: ~/ca.pem");
    for base in ["http://model.invalid:9", "https://localhost:9"] {
        let ended = run(&entry(base), &proxy.ca);
        assert_eq!(ended.must_be(0, "skipped")["summary"], "Done.", "{base}");
        let config = ended.path("../home/.config/fledge/config.yaml");
        std::fs::remove_file(config).unwrap();
        assert!(!ended.traces().contains("canary-77"), "{}", ended.story());
    }
    let received_requests = proxy.received_requests();
    let begins =
        ["POST http://model.invalid:9/api/chat HTTP/1.1", "CONNECT localhost:9 HTTP/1.1", "POST /api/chat HTTP/1.1"];
    assert_eq!(received_requests.iter().filter_map(|head| head.lines().next()).collect::<Vec<_>>(), begins);
    for head in &received_requests[..2] {
        assert!(head.to_lowercase().contains("proxy-authorization: basic dxnlcjpjyw5hcnktnzc="), "{head}");
    }
    assert!(!received_requests[2].to_lowercase().contains("proxy-authorization"), "{}", received_requests[2]);
    let unknown = run(&entry("http://model.invalid:9"), &Secured::new(ANSWER).ca);
    unknown.must_be(3, "provider_failed");
    let config = unknown.path("../home/.config/fledge/config.yaml");
    std::fs::remove_file(config).unwrap();
    assert!(!unknown.traces().contains("canary-77"), "{}", unknown.story());
}
