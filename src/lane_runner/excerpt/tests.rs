//! Tests with the output of real tools, shortened to a limit.

use super::*;
use crate::process::clean;
use proptest::prelude::*;

/// Cases of [`the_lines_that_explain_survive_in_a_megabyte_of_chatter`]: the tool, its output when
/// it fails, and the lines that explain the failure. Lines `~~~` mark places where other output may
/// intervene.
const CASES: &[(&str, &str, &[&str])] = &[
    (
        "cargo test",
        include_str!("cases/cargo-test.txt"),
        &[
            "---- tests::total_adds_every_price stdout ----",
            "thread 'tests::total_adds_every_price' (6429) panicked at src/lib.rs:6:66:",
            "assertion `left == right` failed: three prices",
            "  left: 5",
            " right: 6",
            "thread 'tests::a_price_is_read' (6427) panicked at src/lib.rs:8:63:",
            "called `Result::unwrap()` on an `Err` value: ParseIntError { kind: InvalidDigit }",
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.20s",
        ],
    ),
    (
        "rustc",
        include_str!("cases/rustc.txt"),
        &[
            "error[E0308]: mismatched types",
            " --> src/lib.rs:3:54",
            "help: try using a conversion method",
            "error[E0502]: cannot borrow `*names` as mutable because it is also borrowed as immutable",
            " --> src/lib.rs:6:5",
            "  |     ----- returning this value requires that `*names` is borrowed for `'a`",
            "error: could not compile `shop` (lib) due to 2 previous errors; 1 warning emitted",
        ],
    ),
    (
        "clippy",
        include_str!("cases/clippy.txt"),
        &[
            "error: unneeded `return` statement",
            " --> src/lib.rs:3:106",
            "  = note: `-D clippy::needless-return` implied by `-D warnings`",
            "error: writing `&Vec` instead of `&[_]` involves a new object where a slice will do",
            "error: the loop variable `i` is only used to index `prices`",
            " --> src/lib.rs:3:68",
            "error: could not compile `shop` (lib) due to 3 previous errors",
        ],
    ),
    (
        "pytest",
        include_str!("cases/pytest.txt"),
        &[
            "__________________________________ test_total __________________________________",
            ">       assert total(prices) == 6, \"three prices\"",
            "E       AssertionError: three prices",
            "E       assert 5 == 6",
            "E        +  where 5 = total([1, 2, 3])",
            "test_cart.py:10: AssertionError",
            "E       FileNotFoundError: [Errno 2] No such file or directory: '/nonexistent/prices.txt'",
            "cart.py:5: FileNotFoundError",
            "E       RuntimeError: no database at port 5432",
            "FAILED test_cart.py::test_total - AssertionError: three prices",
            "==================== 2 failed, 13 passed, 1 error in 0.04s =====================",
        ],
    ),
    (
        "go test",
        include_str!("cases/go-test.txt"),
        &[
            "--- FAIL: TestTotal (0.00s)",
            "    --- FAIL: TestTotal/three_prices (0.00s)",
            "        cart_test.go:6: Total([1 2 3]) = 5, want 6",
            "--- FAIL: TestEmpty (0.00s)",
            "panic: runtime error: slice bounds out of range [1:0] [recovered]",
            "\t/w/shop/cart.go:2",
            "FAIL\tshop\t0.006s",
        ],
    ),
    (
        "go test -v",
        include_str!("cases/go-test-v.txt"),
        &["    cart_test.go:6: Total([1 2 3]) = 5, want 6", "    --- FAIL: TestTotal/three_prices (0.00s)"],
    ),
    ("go build", include_str!("cases/go-build.txt"), &["# shop", "./cart.go:3:23: undefined: y"]),
    (
        "jest",
        include_str!("cases/jest.txt"),
        &[
            "  ● cart › adds every price",
            "    Expected: 6",
            "    Received: 5",
            "    > 4 |   test('adds every price', () => { console.log('adding up'); expect(total([1, 2, 3])).toBe(6); });",
            "      at Object.toBe (cart.test.js:4:87)",
            "  ● cart › keeps items",
            "    -     3,",
            "    +     2,",
            "Tests:       2 failed, 1 passed, 3 total",
        ],
    ),
    (
        "vitest",
        include_str!("cases/vitest.txt"),
        &[
            " FAIL  v/cart.test.mjs > cart > adds every price",
            "AssertionError: expected 5 to be 6 // Object.is equality",
            "- 6",
            "+ 5",
            " ❯ v/cart.test.mjs:6:61",
            " FAIL  v/cart.test.mjs > cart > keeps items",
            "-     3,",
            "+     2,",
            "      Tests  2 failed | 1 passed (3)",
        ],
    ),
    (
        "node --test",
        include_str!("cases/node.txt"),
        &[
            "✖ adds every price (1.808707ms)",
            "  AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:",
            "  5 !== 6",
            "      at TestContext.<anonymous> (file:///w/shop/n/cart.node.mjs:4:41)",
            "ℹ fail 1",
        ],
    ),
    (
        "tap",
        include_str!("cases/tap.txt"),
        &[
            "not ok 2 - adds every price",
            "  location: '/w/shop/n/cart.node.mjs:4:1'",
            "    5 !== 6",
            "  expected: 6",
            "# fail 1",
        ],
    ),
    (
        "tsc",
        include_str!("cases/tsc.txt"),
        &[
            "a.ts(1,25): error TS2307: Cannot find module './b' or its corresponding type declarations.",
            "a.ts(3,22): error TS2322: Type 'string' is not assignable to type 'number'.",
            "a.ts(4,74): error TS2339: Property 'cost' does not exist on type 'Item'.",
        ],
    ),
    (
        "tsc --pretty",
        include_str!("cases/tsc-pretty.txt"),
        &[
            "a.ts:1:25 - error TS2307: Cannot find module './b' or its corresponding type declarations.",
            "a.ts:3:22 - error TS2322: Type 'string' is not assignable to type 'number'.",
            "3 const item: Item = { price: 'free' };",
            "a.ts:4:74 - error TS2339: Property 'cost' does not exist on type 'Item'.",
            "Found 3 errors in the same file, starting at: a.ts:1",
        ],
    ),
    (
        "eslint",
        include_str!("cases/eslint.txt"),
        &[
            "/w/shop/bad.mjs",
            "  1:7   error    'unused' is assigned a value but never used  no-unused-vars",
            "  2:13  error    Expected '===' and instead saw '=='          eqeqeq",
            "  2:21  error    'console' is not defined                     no-undef",
            "✖ 5 problems (4 errors, 1 warning)",
        ],
    ),
    (
        "gcc",
        include_str!("cases/gcc.txt"),
        &[
            "cart.c: In function ‘total’:",
            "cart.c:2:52: error: ‘price’ undeclared (first use in this function); did you mean ‘prices’?",
            "    2 | int total(int *prices, int n) { int unused; return price[0] + n; }",
            "      |                                                    ^~~~~",
            "cart.c:3:47: error: expected ‘;’ before ‘return’",
        ],
    ),
    (
        "make",
        include_str!("cases/make.txt"),
        &[
            "cart.c:2:52: error: ‘price’ undeclared (first use in this function); did you mean ‘prices’?",
            "cart.c:3:47: error: expected ‘;’ before ‘return’",
            "make: *** [Makefile:4: cart] Error 1",
            "link.c:(.text+0xa): undefined reference to `total'",
            "make: *** [Makefile:6: link] Error 1",
        ],
    ),
    (
        "mypy",
        include_str!("cases/mypy.txt"),
        &[
            "typed.py:3: error: Incompatible return value type (got \"int\", expected \"str\")  [return-value]",
            "typed.py:4: error: Argument 1 to \"f\" has incompatible type \"str\"; expected \"int\"  [arg-type]",
            "Found 2 errors in 1 file (checked 1 source file)",
        ],
    ),
    (
        "ruff",
        include_str!("cases/ruff.txt"),
        &[
            "F401 [*] `os` imported but unused",
            " --> typed.py:1:8",
            "help: Remove unused import: `os`",
            "Found 2 errors.",
        ],
    ),
    ("npm", include_str!("cases/npm.txt"), &["npm error Missing script: \"nope\""]),
    (
        "python",
        include_str!("cases/traceback.txt"),
        &[
            "  File \"/w/shop/cart.py\", line 5, in load",
            "FileNotFoundError: [Errno 2] No such file or directory: '/nonexistent'",
        ],
    ),
    (
        "unittest",
        include_str!("cases/unittest.txt"),
        &[
            "FAIL: test_bad (u.T.test_bad)",
            "    def test_bad(self): self.assertEqual([1,2],[1,3])",
            "AssertionError: Lists differ: [1, 2] != [1, 3]",
            "FAILED (failures=1)",
        ],
    ),
    ("node, crashed", include_str!("cases/crash.txt"), &["TypeError: prices is not iterable"]),
];

#[test]
fn the_lines_that_explain_survive_in_a_megabyte_of_chatter() {
    let mut missing = Vec::new();
    for (name, core, explaining) in CASES {
        let text = format!("~~~\n{core}~~~\n");
        let gaps = text.lines().filter(|line| *line == "~~~").count();
        let mut chatter = Chatter(name.len() as u64);
        let mut excerpt = Excerpt::new(EXPLAINED);
        for line in text.lines() {
            if line == "~~~" {
                chatter.print(1024 * 1024 / gaps, &mut excerpt);
            } else {
                excerpt.line(&clean(line.as_bytes()));
            }
        }
        let shown = excerpt.finish();
        assert!(shown.len() <= EXPLAINED, "{name}: {}", shown.len());
        let lost: Vec<_> = explaining.iter().filter(|line| !shown.lines().any(|shown| shown == **line)).collect();
        if !lost.is_empty() {
            missing.push(format!("{name} has lost {lost:#?} in\n{shown}\n"));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// A generator of typical build output, with the same output for the same seed.
struct Chatter(u64);

impl Chatter {
    fn print(&mut self, bytes: usize, to: &mut Excerpt) {
        let mut printed = 0;
        while printed < bytes {
            let line = self.next();
            printed += line.len() + 1;
            to.line(&line);
        }
    }

    fn next(&mut self) -> String {
        // A linear congruential generator: Knuth, The Art of Computer Programming 2, section 3.3.4.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let dice = self.0 >> 33;
        let n = dice / 16;
        match dice % 16 {
            0 => format!("   Compiling crate-{} v1.{}.0", n % 400, n % 9),
            1 => format!("test module_{}::does_what_it_says ... ok", n % 900),
            2 => format!("tests/test_{}.py::test_fine PASSED      [ {}%]", n % 90, n % 100),
            3 => format!("2026-01-02T03:04:05Z INFO shop::server: GET /cart/{n} 200 in {} ms", n % 70),
            4 => format!("2026-01-02T03:04:05Z WARN shop::queue: retry {} after error: timed out", n % 50),
            5 => format!("gcc -O2 -Wall -Wno-error=format -c -o obj/part_{n}.o src/part_{n}.c"),
            6 => format!("  ✓ handles request {} ({} ms)", n % 700, n % 40),
            7 => format!("Downloading package-{}.tar.gz ({} kB)", n % 300, n % 900),
            8 => format!("npm http fetch GET 200 https://registry.example/pkg-{} {}ms", n % 300, n % 500),
            9 => format!("[{}/1200] Building CXX object src/CMakeFiles/part.dir/file_{}.cc.o", n % 1200, n % 1200),
            10 => format!("--- PASS: TestNumber{} (0.00s)", n % 800),
            11 => format!("DEBUG failed lookups: 0, cache entries {}", n % 5000),
            12 => format!("ok  \tshop/part{}\t0.{}s", n % 60, n % 1000),
            13 => format!("{}: nothing to be done for {}", n % 7000, n % 80),
            14 => String::new(),
            _ => format!("connection {} closed, {} bytes sent", n % 5000, n % 100_000),
        }
    }
}

#[test]
fn a_short_output_is_whole() {
    assert_eq!(excerpt("one\ntwo\n\n", 4096), "one\ntwo");
}

#[test]
fn where_no_cause_is_known_the_end_is_shown_and_lines_that_may_explain() {
    let noise = |name: &str| (0..400).map(|n| format!("{name} {n}\n")).collect::<String>();
    let text = format!("{}widget: cannot open the spool\n{}the end\n", noise("before"), noise("after"));
    let shown = excerpt(&text, 400);
    assert!(shown.starts_with("[… 400 lines …]\nwidget: cannot open the spool\nafter 0\nafter 1\n[…"), "{shown}");
    assert!(shown.ends_with("after 399\nthe end") && shown.len() <= 400, "{shown}");
}

#[test]
fn the_first_of_many_causes_comes_whole_and_the_last_are_not_lost() {
    let text: String = (0..5000).map(|n| format!("src/a.c:{n}:1: error: number {n}\n  {n} | code\n")).collect();
    let shown = excerpt(&text, 1000);
    assert!(shown.starts_with("src/a.c:0:1: error: number 0\n  0 | code\nsrc/a.c:1:1:"), "{shown}");
    assert!(shown.ends_with("src/a.c:4999:1: error: number 4999\n  4999 | code"), "{shown}");
}

#[test]
fn what_is_said_again_is_shown_once() {
    let text = format!("{}{}", "tick\n".repeat(500), "widget: refused at port 1\nfine\ntock\n".repeat(500));
    let text = format!("{text}{}the end", "quiet\n".repeat(500));
    let shown = excerpt(&text, 300);
    assert!(shown.starts_with("[…]\nwidget: refused at port 1\nfine\ntock\n[… "), "{shown}");
    assert!(shown.ends_with("tock\nquiet [500 times]\nthe end"), "{shown}");
}

#[test]
fn a_line_of_a_megabyte_is_cut_and_marked() {
    let text = format!("{}\nerror: {}wanted 6\nbye", "x\ny\n".repeat(3000), "ü".repeat(500_000));
    let shown = excerpt(&text, 1024);
    assert!(shown.contains("\nerror: üü") && shown.contains("ü […] ü") && shown.contains("üwanted 6\nbye"), "{shown}");
    assert!(shown.len() <= 1024);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_excerpt_is_longer_than_its_limit_and_every_line_stands_in_the_output(
        lines in proptest::collection::vec("(error: |E   |  |thread 'x' panicked at |--- FAIL: |make: \\*\\*\\* |warning: )?\\PC{0,40}", 0..80),
        limit in 0usize..2000,
    ) {
        let shown = excerpt(&lines.join("\n"), limit);
        prop_assert!(shown.len() <= limit, "{} > {limit}", shown.len());
        let is_known = |shown: &str| shown.contains('…') || shown.contains(" times]") || lines.iter().any(|line| line.trim_end() == shown.trim_end());
        prop_assert!(shown.lines().all(is_known), "{shown}");
    }
}
