//! Media types by file name.

const TYPES: &[(&str, &str)] = &[
    ("avif", "image/avif"),
    ("bmp", "image/bmp"),
    ("css", "text/css; charset=utf-8"),
    ("csv", "text/csv; charset=utf-8"),
    ("flac", "audio/flac"),
    ("gif", "image/gif"),
    ("gz", "application/gzip"),
    ("htm", "text/html; charset=utf-8"),
    ("html", "text/html; charset=utf-8"),
    ("ico", "image/x-icon"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript; charset=utf-8"),
    ("json", "application/json"),
    ("jsonl", "application/x-ndjson"),
    ("m4a", "audio/mp4"),
    ("map", "application/json"),
    ("md", "text/markdown; charset=utf-8"),
    ("mjs", "text/javascript; charset=utf-8"),
    ("mov", "video/quicktime"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("ndjson", "application/x-ndjson"),
    ("ogg", "audio/ogg"),
    ("otf", "font/otf"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("tar", "application/x-tar"),
    ("tif", "image/tiff"),
    ("tiff", "image/tiff"),
    ("toml", "application/toml"),
    ("ts", "text/plain; charset=utf-8"),
    ("tsv", "text/tab-separated-values; charset=utf-8"),
    ("ttf", "font/ttf"),
    ("txt", "text/plain; charset=utf-8"),
    ("wasm", "application/wasm"),
    ("wav", "audio/wav"),
    ("webm", "video/webm"),
    ("webmanifest", "application/manifest+json"),
    ("webp", "image/webp"),
    ("woff", "font/woff"),
    ("woff2", "font/woff2"),
    ("xml", "text/xml; charset=utf-8"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("zip", "application/zip"),
];

/// Returns the media type for a file name; `application/octet-stream` if its extension is unknown.
pub fn mime_of(name: &str) -> &'static str {
    type_of(name).unwrap_or("application/octet-stream")
}

/// Returns the media type for a file name, if its extension is known.
pub(crate) fn type_of(name: &str) -> Option<&'static str> {
    let name = name.rsplit('/').next().unwrap_or_default();
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    let mut types = TYPES.iter();
    let row = types.find(|(known, _)| known.eq_ignore_ascii_case(extension.unwrap_or_default()));
    row.map(|(_, mime)| *mime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_type() {
        assert!(TYPES.is_sorted());
        assert_eq!(mime_of("a/b.TXT"), "text/plain; charset=utf-8");
        assert_eq!(mime_of("x.tar.gz"), "application/gzip");
        for unknown in ["nope.bin", "png", "", "a.png/b", "dot."] {
            assert_eq!(mime_of(unknown), "application/octet-stream", "{unknown}");
        }
    }
}
