//! Hostile and malformed requests, with the permitted answers to each.

/// A request, and its permitted statuses. Status 0 means that the server closes the connection
/// without an answer.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) request: Vec<u8>,
    pub(crate) answers: &'static [u16],
}

/// Makes a row from a text in which `|` ends a line and `||` the head. `{H}` is the right Host,
/// `{A}` the token, `{C}` a cookie, `{P}` the port.
fn row(name: &'static str, text: &str, answers: &'static [u16]) -> Row {
    let (head, body) = text.split_once("||").unwrap();
    Row { name, request: format!("{}\r\n\r\n{body}", head.replace('|', "\r\n")).into(), answers }
}

/// Makes a row from any bytes as the whole request.
fn raw(name: &'static str, request: impl Into<Vec<u8>>, answers: &'static [u16]) -> Row {
    Row { name, request: request.into(), answers }
}

/// Returns all rows.
pub(crate) fn all() -> Vec<Row> {
    [proofs(), hosts(), sites(), paths(), bodies(), makers(), lengths(), floods(), letters(), forms(), odd()]
        .into_iter()
        .flatten()
        .collect()
}

fn proofs() -> Vec<Row> {
    vec![
        row("no token", "GET /healthz HTTP/1.1|{H}||", &[401]),
        row("wrong token", "GET /healthz HTTP/1.1|{H}|Authorization: Bearer 0000000000000000000000000000||", &[401]),
        row("empty token", "GET /healthz HTTP/1.1|{H}|Authorization: Bearer ||", &[401]),
        row("no scheme", "GET /healthz HTTP/1.1|{H}|Authorization: {T}||", &[401]),
        row("the start of the token", "GET /healthz HTTP/1.1|{H}|Authorization: Bearer t0ken||", &[401]),
        row("the token and more", "GET /healthz HTTP/1.1|{H}|{A}0||", &[401]),
        row("the token by another scheme", "GET /healthz HTTP/1.1|{H}|Authorization: Basic {T}||", &[401]),
        row("the token in the query", "GET /healthz?token={T}&access_token={T} HTTP/1.1|{H}||", &[401]),
        row("the token as a cookie", "GET /healthz HTTP/1.1|{H}|Cookie: fledge-{P}={T}||", &[401]),
        row("two tokens", "GET /healthz HTTP/1.1|{H}|{A}|Authorization: Bearer x||", &[401]),
        row("a wrong token beside a cookie", "GET /healthz HTTP/1.1|{H}|{C}|Authorization: Bearer x||", &[401]),
        row(
            "a cookie that was guessed",
            "GET /healthz HTTP/1.1|{H}|Cookie: fledge-{P}=AAAAAAAAAAAAAAAAAAAAAAAA||",
            &[401],
        ),
        row("an empty cookie", "GET /healthz HTTP/1.1|{H}|Cookie: fledge-{P}=||", &[401]),
        row("a cookie of another server", "GET /healthz HTTP/1.1|{H}|Cookie: fledge-1={K}||", &[401]),
        row("a link that never was", "GET /enter?code=AAAAAAAAAAAAAAAA HTTP/1.1|{H}||", &[403]),
        row("a link that is used", "GET /enter?code={U} HTTP/1.1|{H}||", &[403]),
        row("a link to a file", "GET /enter?code=..%2ftoken HTTP/1.1|{H}||", &[403]),
        row("a link without a code", "GET /enter HTTP/1.1|{H}||", &[400]),
        row("a link by HEAD", "HEAD /enter?code={L} HTTP/1.1|{H}|Connection: close||", &[401]),
        row("a link by HEAD with the token", "HEAD /enter?code={L} HTTP/1.1|{H}|{A}|Connection: close||", &[405]),
        row("a link by POST", "POST /enter?code={L} HTTP/1.1|{H}|Content-Length: 0||", &[401]),
        row("below the open path", "GET /enter/../healthz HTTP/1.1|{H}||", &[401]),
        row("the open path in other letters", "GET /ENTER HTTP/1.1|{H}||", &[401]),
        row(
            "another path in a header",
            "GET /healthz HTTP/1.1|{H}|X-Original-URL: /enter|X-Rewrite-URL: /enter||",
            &[401],
        ),
        row("an address that is trusted elsewhere", "GET /healthz HTTP/1.1|{H}|X-Forwarded-For: 127.0.0.1||", &[401]),
    ]
}

fn hosts() -> Vec<Row> {
    vec![
        row("another host", "GET /healthz HTTP/1.1|Host: evil.example|{A}||", &[421]),
        row("a name that resolves to this machine", "GET /healthz HTTP/1.1|Host: evil.example:{P}|{C}||", &[421]),
        row("a name that begins like ours", "GET /healthz HTTP/1.1|Host: 127.0.0.1.evil.example:{P}|{A}||", &[421]),
        row("a host with a user", "GET /healthz HTTP/1.1|Host: 127.0.0.1:{P}@evil.example|{A}||", &[421]),
        row("another port", "GET /healthz HTTP/1.1|Host: 127.0.0.1:1|{A}||", &[421]),
        row("no host", "GET /healthz HTTP/1.1|{A}||", &[400]),
        row("an empty host", "GET /healthz HTTP/1.1|Host: |{A}||", &[421]),
        row("two hosts", "GET /healthz HTTP/1.1|{H}|Host: evil.example|{A}||", &[400]),
        row("the same host twice", "GET /healthz HTTP/1.1|{H}|{H}|{A}||", &[400]),
        row("HTTP/1.0 without a host", "GET /healthz HTTP/1.0|{A}||", &[400]),
        row("a URL of another host", "GET http://evil.example/healthz HTTP/1.1|{H}|{A}||", &[421]),
        row("our URL for another host", "GET http://127.0.0.1:{P}/healthz HTTP/1.1|Host: evil.example|{A}||", &[421]),
        row("a proxy's method", "CONNECT evil.example:443 HTTP/1.1|Host: evil.example:443|{A}||", &[421]),
        row(
            "another host in a header",
            "GET /healthz HTTP/1.1|Host: evil.example|X-Forwarded-Host: 127.0.0.1:{P}|{A}||",
            &[421],
        ),
        row("a host for the open path", "GET /enter?code={L} HTTP/1.1|Host: evil.example||", &[421]),
    ]
}

fn sites() -> Vec<Row> {
    vec![
        row(
            "another site's form",
            "POST /leave HTTP/1.1|{H}|{C}|Origin: http://evil.example|Content-Length: 0||",
            &[403],
        ),
        row(
            "another site's script",
            "POST /leave HTTP/1.1|{H}|{C}|Sec-Fetch-Site: cross-site|Content-Length: 0||",
            &[403],
        ),
        row(
            "a page at another port",
            "POST /leave HTTP/1.1|{H}|{C}|Origin: http://127.0.0.1:1|Content-Length: 0||",
            &[403],
        ),
        row("a page of the same site", "GET /healthz HTTP/1.1|{H}|{C}|Sec-Fetch-Site: same-site||", &[403]),
        row("a page without an origin", "POST /leave HTTP/1.1|{H}|{C}|Origin: null|Content-Length: 0||", &[403]),
        row("nothing said of the site", "POST /leave HTTP/1.1|{H}|{C}|Content-Length: 0||", &[403]),
        row("a stream for another site", "GET /v1/events HTTP/1.1|{H}|{C}|Sec-Fetch-Site: cross-site||", &[403]),
        row("a stream for another origin", "GET /v1/events HTTP/1.1|{H}|{C}|Origin: http://evil.example||", &[403]),
        row(
            "the two do not fit",
            "POST /leave HTTP/1.1|{H}|{C}|Origin: http://{Z}|Sec-Fetch-Site: cross-site|Content-Length: 0||",
            &[403],
        ),
        row(
            "may I",
            "OPTIONS /healthz HTTP/1.1|{H}|Origin: http://evil.example|Access-Control-Request-Method: POST||",
            &[401],
        ),
        row("a cookie with another method", "DELETE /healthz HTTP/1.1|{H}|{C}|Sec-Fetch-Site: cross-site||", &[403]),
    ]
}

fn paths() -> Vec<Row> {
    vec![
        row("out of the root", "GET /../../../etc/passwd HTTP/1.1|{H}|{A}||", &[400, 404]),
        row("a run that is a path", "GET /v1/runs/../../../etc/passwd HTTP/1.1|{H}|{A}||", &[400, 404]),
        row("a run that is a path in code", "GET /v1/runs/..%2f..%2f..%2fetc%2fpasswd HTTP/1.1|{H}|{A}||", &[400, 404]),
        row("a run that is a path in code of code", "GET /v1/runs/%252e%252e%252fetc HTTP/1.1|{H}|{A}||", &[400, 404]),
        row("events of a path", "GET /v1/runs/..%2f..%2fserve/events HTTP/1.1|{H}|{A}||", &[400, 404]),
        row("a file that is a path", "GET /v1/runs/x/artifacts/../../../serve/token HTTP/1.1|{H}|{A}||", &[400, 404]),
        row(
            "a file that is a path in code",
            "GET /v1/runs/x/artifacts/..%2f..%2f..%2fserve%2ftoken HTTP/1.1|{H}|{A}||",
            &[400, 404],
        ),
        row("a file at the root", "GET /v1/runs/x/artifacts//etc/passwd HTTP/1.1|{H}|{A}||", &[400, 404]),
        row("an asset that is a path", "GET /assets/../../etc/passwd HTTP/1.1|{H}|{A}||", &[400, 404]),
        row("an asset that is a path in code", "GET /assets/..%2f..%2fetc%2fpasswd HTTP/1.1|{H}|{A}||", &[400, 404]),
        row("an asset that is a path of another system", "GET /assets/..%5c..%5cetc HTTP/1.1|{H}|{A}||", &[400, 404]),
        row("a job that is a path", "GET /v1/jobs/..%2f..%2fx/history HTTP/1.1|{H}|{A}||", &[400, 404]),
        row("a monitor that is a path", "GET /v1/monitors/..%2f..%2fx HTTP/1.1|{H}|{A}||", &[400, 404, 422]),
        row("NUL in code", "GET /v1/runs/%00 HTTP/1.1|{H}|{A}||", &[400, 404]),
        row("half a code", "GET /v1/runs/%2 HTTP/1.1|{H}|{A}||", &[400, 404]),
        row("no UTF-8 in code", "GET /v1/runs/%ff%fe HTTP/1.1|{H}|{A}||", &[400, 404]),
        row("no UTF-8 in the query", "GET /enter?code=%ff%fe HTTP/1.1|{H}||", &[400, 403]),
        row("a very long id", &format!("GET /v1/runs/{} HTTP/1.1|{{H}}|{{A}}||", "a".repeat(20_000)), &[400, 404]),
        row(
            "a query as long as a head may be",
            &format!("GET /healthz?{} HTTP/1.1|{{H}}|{{A}}||", "q=1&".repeat(5_000)),
            &[200],
        ),
        row("more than one slash", "GET //healthz HTTP/1.1|{H}|{A}||", &[404]),
    ]
}

fn json(name: &'static str, body: &str, answers: &'static [u16]) -> Row {
    let length = body.len();
    let head = "POST /v1/runs HTTP/1.1|{H}|{A}|Content-Type: application/json|Content-Length: ";
    row(name, &format!("{head}{length}||{body}"), answers)
}

fn bodies() -> Vec<Row> {
    const REFUSED: &[u16] = &[400, 422];
    vec![
        json("deep JSON", &"[".repeat(100_000), REFUSED),
        json("deep JSON with an end", &format!("{{\"task\":{}{}}}", "[".repeat(5_000), "]".repeat(5_000)), REFUSED),
        json("a huge number", &format!("{{\"task\": 1{}}}", "0".repeat(10_000)), REFUSED),
        json("a number beyond all", "{\"task\": 1e999999999}", REFUSED),
        json("half of it", "{\"task\": \"", REFUSED),
        json("no object", "[]", REFUSED),
        json("a task elsewhere", "{\"path\": \"../../../../etc/passwd\"}", REFUSED),
        json("a task at the root", "{\"path\": \"/etc/passwd\"}", REFUSED),
        json("a task with NUL", "{\"path\": \"a\\u0000b\"}", REFUSED),
        json("a surrogate alone", "{\"task\": \"\\ud800\"}", REFUSED),
        json("an unknown key", "{\"task\": \"x\", \"__proto__\": {}}", REFUSED),
        row(
            "a form",
            "POST /leave HTTP/1.1|{H}|{A}|Content-Type: application/x-www-form-urlencoded|Content-Length: 3||a=b",
            &[415],
        ),
        row("a simple text", "POST /leave HTTP/1.1|{H}|{A}|Content-Type: text/plain|Content-Length: 2||{}", &[415]),
        row("no type", "POST /leave HTTP/1.1|{H}|{A}|Content-Length: 2||{}", &[415]),
        row(
            "nearly the type",
            "POST /leave HTTP/1.1|{H}|{A}|Content-Type: application/jsonp|Content-Length: 2||{}",
            &[415],
        ),
        row(
            "the type of something else first",
            "POST /leave HTTP/1.1|{H}|{A}|Content-Type: text/plain; application/json|Content-Length: 2||{}",
            &[415],
        ),
    ]
}

/// Returns requests that would create something if the server permitted them.
fn makers() -> Vec<Row> {
    const REFUSED: &[u16] = &[400, 404, 405, 422];
    let post = |name, path: &str, body: &str, answers| {
        let head =
            format!("POST {path} HTTP/1.1|{{H}}|{{A}}|Content-Type: application/json|Content-Length: {}||", body.len());
        row(name, &(head + body), answers)
    };
    vec![
        post(
            "a monitor with the name of a path",
            "/v1/monitors",
            "{\"slug\": \"../../x\", \"schedule\": \"1h\"}",
            REFUSED,
        ),
        post(
            "a monitor that asks for all time",
            "/v1/monitors",
            "{\"slug\": \"x\", \"schedule\": \"* * * * * * * *\"}",
            REFUSED,
        ),
        post("a monitor without anything", "/v1/monitors", "{}", REFUSED),
        post("a word without a sender", "/v1/monitors/none/checkins?status=ok", "", REFUSED),
        post("a word that is none", "/v1/monitors/none/checkins?status=%00", "", REFUSED),
        row(
            "a monitor that is nowhere",
            "DELETE /v1/monitors/..%2f..%2fserve HTTP/1.1|{H}|{A}|Content-Length: 0||",
            REFUSED,
        ),
        post("a job with the name of a path", "/v1/jobs/..%2f..%2fserve/run", "", REFUSED),
        post("a run with the name of a path", "/v1/runs/..%2f..%2fserve/cancel", "", REFUSED),
        post("an answer to no question", "/v1/runs/none/confirmations/1", "{\"answer\": \"yes\"}", REFUSED),
        post("records that are none", "/v1/sync", &"[".repeat(100_000), REFUSED),
        row(
            "records without an end",
            "POST /v1/sync HTTP/1.1|{H}|{A}|Content-Type: application/json|Content-Length: 8388609||",
            &[413],
        ),
    ]
}

fn lengths() -> Vec<Row> {
    const HEAD: &str = "POST /leave HTTP/1.1|{H}|{A}|Content-Type: application/json|";
    let post = |name, rest: &str, answers| row(name, &format!("{HEAD}{rest}"), answers);
    let gigabyte = format!("4000000\r\n{}", "x".repeat(0x40_0000));
    vec![
        post("a gigabyte that is announced", "Content-Length: 1073741824||", &[413]),
        post("a gigabyte that is announced and asked for", "Expect: 100-continue|Content-Length: 1073741824||", &[413]),
        post("one byte too many", "Content-Length: 1048577||", &[413]),
        post("a chunk without an end", &format!("Transfer-Encoding: chunked||{gigabyte}"), &[0, 413]),
        post("a length that is none", "Content-Length: x||", &[400]),
        post("a length below nothing", "Content-Length: -1||", &[400]),
        post("a length with a sign", "Content-Length: +2||{}", &[400]),
        post("a length beyond all", "Content-Length: 99999999999999999999999||", &[400, 413]),
        post("two lengths", "Content-Length: 2|Content-Length: 3||{}x", &[400]),
        post("two lengths in one", "Content-Length: 2, 3||{}x", &[400]),
        post("chunks of another kind", "Transfer-Encoding: xchunked||0\r\n\r\n", &[400]),
        post("chunks and then another kind", "Transfer-Encoding: chunked, identity||0\r\n\r\n", &[400]),
        post("a chunk that is none", "Transfer-Encoding: chunked||zz\r\n{}\r\n0\r\n\r\n", &[400]),
        post("a chunk beyond all", "Transfer-Encoding: chunked||fffffffffffffffff\r\n", &[400]),
        post(
            "a chunk with a long word",
            &format!("Transfer-Encoding: chunked||1;{}\r\n", "x".repeat(100_000)),
            &[0, 400, 413],
        ),
        post(
            "trailers without an end",
            &format!("Transfer-Encoding: chunked||0\r\n{}", "a: b\r\n".repeat(20_000)),
            &[0, 400, 413, 431],
        ),
        row("chunks in HTTP/1.0", "POST /leave HTTP/1.0|{H}|{A}|Transfer-Encoding: chunked||0\r\n\r\n", &[400]),
    ]
}

fn floods() -> Vec<Row> {
    let many = (0..1_000).map(|number| format!("X-{number}: y|")).collect::<String>();
    let long = "x".repeat(1_000_000);
    vec![
        row("a flood of headers", &format!("GET /healthz HTTP/1.1|{{H}}|{{A}}|{many}|"), &[431]),
        raw("a header without an end", format!("GET /healthz HTTP/1.1\r\nX: {long}"), &[0, 431]),
        raw("a name without an end", format!("GET /healthz HTTP/1.1\r\n{long}"), &[0, 400, 431]),
        raw("a path without an end", format!("GET /{long}"), &[0, 414, 431]),
        raw("a method without an end", long.clone(), &[0, 400, 431]),
        row("a path that is too long", &format!("GET /{} HTTP/1.1|{{H}}|{{A}}||", "x".repeat(70_000)), &[0, 414, 431]),
    ]
}

fn letters() -> Vec<Row> {
    vec![
        raw("no UTF-8 in the path", b"GET /v1/runs/\xff\xfe HTTP/1.1\r\n{H}\r\n{A}\r\n\r\n", &[400, 404]),
        raw("no UTF-8 in a header", b"GET /healthz HTTP/1.1\r\n{H}\r\nCookie: fledge-{P}=\xff\xfe\r\n\r\n", &[401]),
        raw("no UTF-8 in the body", b"POST /v1/runs HTTP/1.1\r\n{H}\r\n{A}\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\r\n\"\xff\xfe\"", &[400, 422]),
        raw("NUL in the path", b"GET /a\0b HTTP/1.1\r\n{H}\r\n{A}\r\n\r\n", &[400]),
        raw("NUL in a header", b"GET /healthz HTTP/1.1\r\n{H}\r\n{A}\r\nX: a\0b\r\n\r\n", &[400]),
        raw("a line break in a header", b"GET /healthz HTTP/1.1\r\n{H}\r\nX: a\rb\r\n\r\n", &[400]),
        raw("a header that goes on", b"GET /healthz HTTP/1.1\r\n{H}\r\nX: a\r\n b\r\n\r\n", &[400]),
        raw("a blank before the colon", b"GET /healthz HTTP/1.1\r\nHost : x\r\n\r\n", &[400]),
        raw("a header without a name", b"GET /healthz HTTP/1.1\r\n: x\r\n\r\n", &[400]),
        raw("nothing but blanks", vec![b' '; 5_000], &[0, 400]),
    ]
}

fn forms() -> Vec<Row> {
    vec![
        raw("HTTP/0.9", b"GET /healthz\r\n\r\n", &[400]),
        raw("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &[0, 400, 505]),
        raw("HTTP/9.9", b"GET /healthz HTTP/9.9\r\n{H}\r\n{A}\r\n\r\n", &[400, 505]),
        raw("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x00\x01\x02\x03\x04\x05\x06\x07\r\n\r\n", &[0, 400]),
        raw("SSH", b"SSH-2.0-OpenSSH_9.6\r\n\r\n", &[400]),
        raw("any bytes", (0..=255).cycle().take(4_096).collect::<Vec<u8>>(), &[0, 400]),
        raw("an asterisk", b"OPTIONS * HTTP/1.1\r\n{H}\r\n{A}\r\n\r\n", &[400, 404, 405]),
        row("an unknown method", "BREW /healthz HTTP/1.1|{H}|{A}|Content-Length: 0||", &[405]),
        row("a method in small letters", "get /healthz HTTP/1.1|{H}|{A}|Content-Length: 0||", &[405]),
        row("an echo", "TRACE /healthz HTTP/1.1|{H}|{A}|Content-Length: 0||", &[405]),
        row("a method that does not fit", "DELETE /healthz HTTP/1.1|{H}|{A}|Content-Length: 0||", &[405]),
        row("another method in a header", "GET /leave HTTP/1.1|{H}|{A}|X-HTTP-Method-Override: POST||", &[405]),
    ]
}

fn odd() -> Vec<Row> {
    let ranges = (0..1_000).map(|at| format!("{at}-{at},")).collect::<String>();
    vec![
        row("many ranges", &format!("GET /openapi.json HTTP/1.1|{{H}}|{{A}}|Range: bytes={ranges}0-||"), &[200]),
        row("a range beyond all", "GET /openapi.json HTTP/1.1|{H}|{A}|Range: bytes=99999999999999999999-||", &[200]),
        row(
            "a socket of the web",
            "GET /healthz HTTP/1.1|{H}|{A}|Connection: Upgrade|Upgrade: websocket|Sec-WebSocket-Version: 13|Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==||",
            &[200],
        ),
        row(
            "HTTP/2 in the clear",
            "GET /healthz HTTP/1.1|{H}|{A}|Connection: Upgrade, HTTP2-Settings|Upgrade: h2c|HTTP2-Settings: AAMAAABkAAQAAP__||",
            &[200],
        ),
        row("an unexpected body", "GET /healthz HTTP/1.1|{H}|{A}|Content-Length: 100000||x", &[200]),
        row("a type that is not there", "GET /healthz HTTP/1.1|{H}|{A}|Accept: image/png||", &[200]),
        row("an event that never was", "GET /v1/runs/x/events HTTP/1.1|{H}|{A}|Last-Event-ID: -1||", &[400, 404]),
    ]
}
