//! The code of a PHP source, without its comments and strings. Pure.

/// Words of code that can run a string as code.
const RUNS_STRINGS: &[&str] = &["eval", "data:", "file_put_contents", "fputs", "fwrite"];
/// Syntax that this reader does not follow: heredocs, shell commands, and data after the code.
const UNCLEAR: &[&str] = &["<<<", "`", "__halt_compiler"];

/// Returns the code, with a blank for each comment, string and part outside of PHP. `text` is in
/// lower case. Returns the whole text if versions of PHP read it differently, or if a string may
/// become code.
pub(super) fn code(text: &str) -> String {
    let code = without_strings(text).filter(|_| !RUNS_STRINGS.iter().any(|word| text.contains(word)));
    code.unwrap_or_else(|| text.to_owned())
}

/// Returns the code, or `None` if it is unclear where strings and comments end.
fn without_strings(text: &str) -> Option<String> {
    let (mut code, mut rest) = (String::new(), after_open_tag(text)?);
    while let Some(next) = rest.find(['\'', '"', '/', '#', '?']) {
        code.push_str(&rest[..next]);
        rest = &rest[next..];
        rest = match rest.as_bytes() {
            [quote @ (b'\'' | b'"'), ..] => after_string(&rest[1..], char::from(*quote))?,
            [b'/', b'*', ..] => &rest[rest[2..].find("*/")? + 4..],
            [b'/', b'/', ..] | [b'#', ..] => after_line(rest)?,
            [b'?', b'>', ..] => after_open_tag(&rest[2..])?,
            _ => {
                code.push_str(&rest[..1]);
                rest = &rest[1..];
                continue;
            }
        };
        code.push(' ');
    }
    code.push_str(rest);
    (!UNCLEAR.iter().any(|unclear| code.contains(unclear))).then_some(code)
}

/// Returns the text after the next `<?php` or `<?=`, or an empty text without one. Returns `None`
/// for another open tag, since not every PHP reads it.
fn after_open_tag(text: &str) -> Option<&str> {
    let Some(start) = text.find("<?") else { return Some("") };
    let rest = &text[start + 2..];
    let is_whole = |rest: &&str| rest.is_empty() || rest.starts_with(char::is_whitespace);
    rest.strip_prefix('=').or_else(|| rest.strip_prefix("php").filter(is_whole))
}

/// Returns the text after a string. A string in double quotes may contain code in braces. Returns
/// `None` if the end of that code is unclear, as with quotes in it.
fn after_string(text: &str, quote: char) -> Option<&str> {
    let mut rest = text;
    loop {
        rest = &rest[rest.find([quote, '\\', '{'])?..];
        rest = match rest.as_bytes() {
            [b'\\', ..] => {
                let mut chars = rest.chars();
                chars.nth(1)?;
                chars.as_str()
            }
            [b'{', ..] if quote == '"' => {
                let end = rest.find('}')?;
                let is_plain = !rest[1..end].contains(['\'', '"', '{', '/', '#', '?', '`', '<']);
                is_plain.then_some(&rest[end..])?
            }
            [b'{', ..] => &rest[1..],
            _ => return Some(&rest[1..]),
        };
    }
}

/// Returns the text after a comment of one line. Older versions of PHP read an attribute as a
/// comment, so an attribute must end in its line.
fn after_line(text: &str) -> Option<&str> {
    let line = &text[..text.find(['\n', '\r']).unwrap_or(text.len())];
    if line.starts_with("#[") {
        let is_whole = ['\'', '"'].iter().all(|quote| line.matches(*quote).count() % 2 == 0);
        let is_plain = !["/*", "//", "?>", "\\"].iter().any(|sign| line.contains(sign));
        return (is_whole && is_plain).then_some(&text[line.len()..]);
    }
    Some(&text[line.find("?>").unwrap_or(line.len())..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_are_no_code_and_what_is_unclear_is() {
        for (text, has_name) in [
            ("<?php\n// namespace pest\nnamespace own;\n", false),
            ("<?php\n# namespace pest\n/* namespace pest */ namespace own;\n", false),
            ("<?php\n/** a namespace pest has */\necho 'namespace pest', \"it\\\"s namespace pest\";\n", false),
            ("<?php\n#[route('/a')]\necho \"{$this->a} namespace pest\";\n", false),
            ("namespace pest\n<?php echo 1 / 2; ?>\nnamespace pest\n", false),
            ("<?php\nnamespace pest;\n", true),
            ("<?php\n/*/ ' */ namespace pest; // '\n", true),
            ("<?php // ' ?><?php namespace pest; // '\n", true),
            ("<?php echo 'a\\\\'; namespace pest; // '\n", true),
            ("<?php\n#[a('\nnamespace pest; // ')]\n", true),
            ("<?php echo \"{$a['it\"s']}\"; namespace pest; // '\n", true),
            ("<?php $b = \"{$a[`} \" /* `]}\"; namespace pest; // */\n", true),
            ("<? ' ?><?php namespace pest; // '\n", true),
            ("<?php\n$a = <<<a\n'\na;\nnamespace pest; // '\n", true),
            ("<?php eval('namespace pest; class a {}');\n", true),
            ("<?php echo '\nnamespace pest;\n", true),
        ] {
            assert_eq!(code(text).contains("namespace pest"), has_name, "{text}");
        }
    }
}
