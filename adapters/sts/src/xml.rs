//! As much of XML as the answers of STS need. ARNs, keys and codes hold nothing special; sentences may.

/// What is in the element of this name, if there is exactly one.
pub(crate) fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    let (inside, after) = rest.split_once(&format!("</{name}>"))?;
    (!after.contains(&format!("<{name}>"))).then(|| inside.trim())
}

/// The same, where it is plain text without anything escaped.
pub(crate) fn plain<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    element(xml, name).filter(|text| !text.is_empty() && !text.contains(['<', '&']))
}

/// Text with the five characters of XML put back.
pub(crate) fn unescape(text: &str) -> String {
    let pairs =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&#39;", "'"), ("&amp;", "&")];
    pairs.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_is_there_once_or_not() {
        assert_eq!(element("<a><b> x </b></a>", "b"), Some("x"));
        assert_eq!(element("<b>x</b><b>y</b>", "b"), None);
        assert_eq!(plain("<b>&lt;</b>", "b"), None);
        assert_eq!(plain("<b></b>", "b"), None);
        assert_eq!(unescape("a &amp;lt; &quot;b&quot;"), "a &lt; \"b\"");
    }
}
