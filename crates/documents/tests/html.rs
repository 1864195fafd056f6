//! Visible text of web pages.
#![allow(clippy::unwrap_used)]

mod support;

use support::read;

fn text(page: &str) -> String {
    read("page.html", page.as_bytes()).unwrap().text
}

#[test]
fn headings_paragraphs_lists_and_links() {
    let page = r##"<!doctype html><html><head><title>Not shown</title></head><body>
        <h1>Pinions  and
            gears</h1>
        <p>A <b>pinion</b> is the <i>smaller</i> gear.<br>Second line.</p>
        <ul><li>one<li><p>two</p><ol start=3><li>deep</li><li>deeper</li></ol></li></ul>
        <p>See <a href="https://example.org/gears">the page</a>, <a href="#top">the top</a>
        and <a href="https://example.org">https://example.org</a>.</p>
        <h3>End</h3><hr>bye</body></html>"##;
    let expected = "\
# Pinions and gears

A pinion is the smaller gear.
Second line.

- one
- two
  3. deep
  4. deeper

See the page (https://example.org/gears), the top and https://example.org.

### End

---

bye
";
    assert_eq!(text(page), expected);
}

#[test]
fn what_is_not_shown_is_not_read() {
    let page = r#"<style>p { color: red }</style><p>kept</p>
        <script>document.write("<p>written</p>"); // </p></script>
        <template><p>later</p></template><div hidden>h<div>i</div>dden</div>
        <span style="color: red; DISPLAY : none">gone</span><!-- <p>comment</p> -->
        <svg><text>drawn</text></svg><iframe src=x><p>framed</p></iframe><p>also kept</p>"#;
    assert_eq!(text(page), "kept\n\nalso kept\n");
}

#[test]
fn entities_and_text_kept_as_written() {
    let page = "<p>a &lt; b &amp;&amp; c &mdash; &#228;&#x20AC; &copy &nosuch;</p>\
                <pre>fn main() {\n    go();\n}</pre><img alt='a picture'>";
    let expected = "a < b && c — ä€ © &nosuch;\n\nfn main() {\n    go();\n}\n\na picture\n";
    assert_eq!(text(page), expected);
}

#[test]
fn tables_are_rows_of_cells() {
    let page = "<table><thead><tr><th>Name<th>Teeth</tr></thead>
        <tbody><tr><td><p>pinion</p></td><td> 12 </td></tr>
        <tr><td></td><td>48</td></tr></tbody></table><p>after</p>";
    assert_eq!(text(page), "Name\tTeeth\npinion\t12\n\t48\n\nafter\n");
}

#[test]
fn nasty_markup_costs_markup_and_not_text() {
    let page = "</ul></li></table></pre><td>cell<li>item</ol><p>a<p>b</div></div>\
                <a href='javascript:alert(1)'>click<a href=\"data:x\">me</a> 1 < 2 <b <i>c</i> </br attr>\
                <h2></h2><ul><li></li></ul><xmp><b></xmp><unclosed attr='";
    let read = text(page);
    for kept in ["cell", "item", "a", "b", "click", "me", "1 < 2", "<b>"] {
        assert!(read.contains(kept), "{kept} in {read:?}");
    }
    assert!(
        !read.contains("javascript") && !read.contains("data:"),
        "{read:?}"
    );
    assert!(!read.contains('#'), "{read:?}");
}

#[test]
fn deep_nesting_is_no_matter() {
    let page = format!(
        "{}deep{}",
        "<div><ul><li><table>".repeat(10_000),
        "</div>".repeat(10)
    );
    assert_eq!(text(&page).trim(), "- deep");
}

#[test]
fn a_page_in_an_older_encoding_names_it() {
    let page = b"<meta charset='windows-1251'><p>\xcf\xf0\xe8\xe2\xe5\xf2</p>";
    assert_eq!(read("page.html", page).unwrap().text, "Привет\n");
}
