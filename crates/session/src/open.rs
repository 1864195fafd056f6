//! Opens session files, including damaged ones.
//!
//! | found | done |
//! |---|---|
//! | nothing, or an empty file | a new session that will be stored there |
//! | an unfinished last line | left out; moved aside before the next append |
//! | a complete last line without newline | used; the newline comes with the next append |
//! | an unreadable line in between | reported; its bytes stay, its children keep their place if possible |
//! | entries without a readable header | a repaired copy is opened, the original is kept |
//! | anything else | refused |
//! | version 1 or 2, and entries of that version | rewritten as version 3 by way of a second file |
//! | a version that is not understood or does not fit the entries | reported; the file is used as it is |

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use pinion_message::now_millis;

use crate::entry::EntryKind;
use crate::fast_read::{self, IntactFile, Verification};
use crate::migrate::{FormatAge, age, migrate};
use crate::scan::{DamageKind, RecordKind, Scan, Tail, scan};
use crate::session_file::{self, Repair, SessionFile};
use crate::store::{Opened, SessionLocation, Store, parent_of};
use crate::tree::Tree;
use crate::{Header, Notice, SessionError, clock};

impl Store {
    /// Opens the session at `path` for writing and locks it.
    ///
    /// A missing file becomes a new session stored there. `fallback_cwd` is used if the session has no working
    /// directory. Fails with [`SessionError::Locked`] while another `pinion` has the session open; see
    /// [`Store::open_read_only`]. Use [`Store::reload`] to read a session again that this process has open.
    pub fn open(path: &Path, fallback_cwd: &Path) -> Result<Opened, SessionError> {
        let mut notices = Vec::new();
        let session_file = match SessionFile::open(path, &mut notices) {
            Err(SessionError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                pinion_files::reject_process_files(path).map_err(SessionError::io("open", path))?;
                return Ok(Opened {
                    store: Self::at_path(path, fallback_cwd),
                    notices,
                });
            }
            opened => opened?,
        };
        open_file(session_file, fallback_cwd, notices)
    }

    /// Opens the session at `path` without a lock and without changing anything on disk.
    pub fn open_read_only(path: &Path, fallback_cwd: &Path) -> Result<Opened, SessionError> {
        let file = pinion_files::open(path).map_err(SessionError::io("open", path))?;
        let file = Arc::new(file);
        if let Some(healthy) = fast_read::read(&file) {
            let location = SessionLocation::ReadOnly(path.to_owned());
            return Ok(open_intact(
                healthy,
                file,
                path,
                location,
                fallback_cwd,
                Vec::new(),
            ));
        }
        let mut content = session_file::read_all(&file, path)?;
        let mut notices = Vec::new();
        let mut lines = scan(&content);
        let header = match classify(&content, &lines, path)? {
            FileContent::Session(header) => match age(&header, &lines) {
                FormatAge::Current => *header,
                FormatAge::Unclear => {
                    notices.push(version_notice(path));
                    *header
                }
                FormatAge::Old => {
                    content = Bytes::from(migrate(&content, &lines));
                    lines = scan(&content);
                    current_header(&lines, *header)
                }
            },
            FileContent::Empty => Header::now(None, fallback_cwd, None),
            FileContent::Headless => {
                notices.push(headless_notice(path, None));
                Header::now(
                    None,
                    fallback_cwd,
                    Some(path.to_string_lossy().into_owned()),
                )
            }
        };
        report(&lines, path, &mut notices);
        if let Tail::Torn(from) = lines.tail {
            notices.push(torn_notice(path, content.len() - from));
        }
        let tree = build(lines, &mut notices);
        let location = SessionLocation::ReadOnly(path.to_owned());
        let cwd = cwd_of(&header, fallback_cwd);
        let store = Self::from_parts(header, cwd, tree, location, parent_of(path));
        Ok(Opened { store, notices })
    }

    /// Returns the work to read the session's file again; `None` if the session has no file yet.
    pub fn reload(&self) -> Option<Reload> {
        let SessionLocation::File(session_file) = &self.location else {
            return None;
        };
        Some(Reload {
            session_file: session_file.clone(),
            cwd: self.cwd.clone(),
            directory: self.directory.clone(),
        })
    }
}

/// Reads a session's file again, as [`Store::open`] does, without releasing the lock. It shares the open file with the
/// store, which does not change.
#[derive(Debug)]
pub struct Reload {
    session_file: SessionFile,
    cwd: PathBuf,
    directory: Option<PathBuf>,
}

impl Reload {
    /// Reads the file. If it no longer holds a session, reads the file that is at its path now. Blocks.
    pub fn run(self) -> Result<Opened, SessionError> {
        let path = self.session_file.path().to_owned();
        let mut opened = match open_file(self.session_file, &self.cwd, Vec::new()) {
            Ok(opened) => opened,
            Err(error) => match Store::open(&path, &self.cwd) {
                // The file at the path is still the one that could not be read.
                Err(SessionError::Locked { .. }) => return Err(error),
                other => other?,
            },
        };
        opened.store.directory = self.directory;
        Ok(opened)
    }
}

/// Makes the store of a large intact file.
fn open_intact(
    healthy: IntactFile,
    file: Arc<File>,
    path: &Path,
    location: SessionLocation,
    fallback_cwd: &Path,
    notices: Vec<Notice>,
) -> Opened {
    let IntactFile {
        header,
        tree,
        length,
        ..
    } = healthy;
    let cwd = cwd_of(&header, fallback_cwd);
    let mut store = Store::from_parts(header, cwd, tree, location, parent_of(path));
    store.verification = Some(Verification::start(file, length, path.to_owned()));
    Opened { store, notices }
}

fn open_file(
    mut session_file: SessionFile,
    fallback_cwd: &Path,
    mut notices: Vec<Notice>,
) -> Result<Opened, SessionError> {
    let path = session_file.path().to_owned();
    let file = Arc::clone(&session_file.file().file);
    if let Some(healthy) = fast_read::read(&file) {
        let session_file = session_file
            .of_length(healthy.length)
            .holds(healthy.tree.entries().len());
        let repair = match healthy.tail {
            Tail::MissingNewline => Repair::AddNewline,
            _ => Repair::None,
        };
        let location = SessionLocation::File(session_file.needs(repair));
        return Ok(open_intact(
            healthy,
            file,
            &path,
            location,
            fallback_cwd,
            notices,
        ));
    }
    let content = session_file.read()?;
    let mut lines = scan(&content);
    let looked = classify(&content, &lines, &path)?;
    let blank = content.trim_ascii().is_empty();
    let begun = blank || !matches!(looked, FileContent::Empty);
    let (header, session_file, content) = match looked {
        FileContent::Session(header) => match age(&header, &lines) {
            FormatAge::Current => (*header, session_file, content),
            FormatAge::Unclear => {
                notices.push(version_notice(&path));
                (*header, session_file, content)
            }
            FormatAge::Old => {
                let migrated = Bytes::from(migrate(&content, &lines));
                let session_file = session_file.replace(&migrated)?;
                lines = scan(&migrated);
                (current_header(&lines, *header), session_file, migrated)
            }
        },
        // A user created the empty file, so the session is stored there at once.
        FileContent::Empty if blank => {
            let header = Header::now(None, fallback_cwd, None);
            let begun = Bytes::from([header.json(), b"\n"].concat());
            let session_file = session_file.replace(&begun)?;
            lines = scan(&begun);
            (header, session_file, begun)
        }
        FileContent::Empty => (Header::now(None, fallback_cwd, None), session_file, content),
        FileContent::Headless => {
            let (session_file, header, copy) =
                repaired_copy(&path, &content, &lines, fallback_cwd)?;
            notices.push(headless_notice(&path, Some(session_file.path())));
            report(&lines, &path, &mut notices);
            lines = scan(&copy);
            (header, session_file, copy)
        }
    };
    report(&lines, session_file.path(), &mut notices);
    let repair = match lines.tail {
        Tail::Clean => Repair::None,
        Tail::MissingNewline => Repair::AddNewline,
        Tail::Torn(from) => {
            notices.push(torn_notice(session_file.path(), content.len() - from));
            Repair::CutTail {
                from: from as u64,
                torn: content.slice(from..),
            }
        }
    };
    let tree = build(lines, &mut notices);
    let directory = parent_of(session_file.path());
    let session_file = if begun {
        session_file.holds(tree.entries().len())
    } else {
        session_file
    }
    .needs(repair);
    let cwd = cwd_of(&header, fallback_cwd);
    let store = Store::from_parts(
        header,
        cwd,
        tree,
        SessionLocation::File(session_file),
        directory,
    );
    Ok(Opened { store, notices })
}

/// Returns the header of a migrated file.
fn current_header(lines: &Scan, old: Header) -> Header {
    lines
        .records
        .first()
        .and_then(|record| Header::parse(&record.line))
        .unwrap_or(old)
}

/// The kind of content of a file.
enum FileContent {
    Session(Box<Header>),
    /// Nothing, or an incomplete header.
    Empty,
    /// Entries without a readable header.
    Headless,
}

fn classify(content: &[u8], lines: &Scan, path: &Path) -> Result<FileContent, SessionError> {
    const BEGINNING: &[u8] = br#"{"type":"session""#;
    if let Some(first) = lines.records.first() {
        if first.kind == RecordKind::Header
            && let Some(header) = Header::parse(&first.line)
        {
            return Ok(FileContent::Session(Box::new(header)));
        }
        let known = lines.records.iter().any(|record| {
            record.id.is_some()
                && !matches!(
                    record.kind,
                    RecordKind::Header | RecordKind::Entry(EntryKind::Unknown | EntryKind::Damaged)
                )
        });
        if known {
            return Ok(FileContent::Headless);
        }
    }
    let text = content.trim_ascii();
    let unfinished = !text.contains(&b'\n')
        && (text.starts_with(BEGINNING) || BEGINNING.starts_with(text))
        && lines.records.is_empty();
    if unfinished {
        Ok(FileContent::Empty)
    } else {
        Err(SessionError::NotASession { path: path.into() })
    }
}

/// Writes the readable entries of a file without a header into a new file in the same directory.
fn repaired_copy(
    path: &Path,
    content: &[u8],
    lines: &Scan,
    fallback_cwd: &Path,
) -> Result<(SessionFile, Header, Bytes), SessionError> {
    let cwd = cwd_of_damaged_header(content).unwrap_or_else(|| fallback_cwd.to_owned());
    let header = Header::now(None, &cwd, Some(path.to_string_lossy().into_owned()));
    let mut copy = header.json().to_vec();
    copy.push(b'\n');
    for record in &lines.records {
        if !matches!(
            record.kind,
            RecordKind::Header | RecordKind::Entry(EntryKind::Damaged)
        ) {
            copy.extend_from_slice(&record.line);
            copy.push(b'\n');
        }
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let stamp = clock::for_file_name(&clock::iso(now_millis()));
    let beside = path.with_file_name(format!("{stem}-repaired-{stamp}.jsonl"));
    let session_file = SessionFile::create(&beside).map_err(SessionError::io("write", &beside))?;
    let session_file = session_file.replace(&copy)?;
    Ok((session_file, header, Bytes::from(copy)))
}

/// Finds the working directory in a damaged header line.
fn cwd_of_damaged_header(content: &[u8]) -> Option<PathBuf> {
    let line = content.split(|&byte| byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let (_, rest) = line.split_once(r#""cwd":""#)?;
    let (cwd, _) = rest.split_once('"')?;
    let whole = cwd.starts_with('/') && !cwd.contains('\\');
    whole.then(|| PathBuf::from(cwd))
}

fn cwd_of(header: &Header, fallback: &Path) -> PathBuf {
    if header.cwd.is_empty() {
        fallback.to_owned()
    } else {
        PathBuf::from(&header.cwd)
    }
}

fn build(lines: Scan, notices: &mut Vec<Notice>) -> Tree {
    let mut tree = Tree::with_capacity(lines.records.len());
    for record in lines.records {
        let number = record.number;
        let header = record.kind == RecordKind::Header;
        match record.into_entry() {
            Some(entry) => tree.push(entry),
            None if header => {}
            None => notices.push(Notice::new(
                "session_entry_without_id",
                format!("line {number} has no id and is not used"),
            )),
        }
    }
    let broken = tree.broken_links().count();
    if let Some(first) = tree.broken_links().next() {
        notices.push(Notice::new(
            "session_broken_link",
            format!(
                "{broken} entries name a parent that does not exist, the first is {}; the conversation before them cannot be reached",
                first.id
            ),
        ));
    }
    tree
}

pub(crate) fn report(lines: &Scan, path: &Path, notices: &mut Vec<Notice>) {
    for damage in &lines.damage {
        let what = match damage.kind {
            DamageKind::Lost => "cannot be read and is not used",
            DamageKind::LinksOnly => "cannot be read; the entries after it keep their place",
            DamageKind::Glued => "begins with an unfinished entry; the entry after it is used",
            DamageKind::Characters => "holds bytes that are not UTF-8; they are shown as U+FFFD",
        };
        let message = format!(
            "{} is damaged: line {} {what}; its bytes stay",
            path.display(),
            damage.number
        );
        notices.push(Notice::new("session_damaged", message));
    }
}

fn version_notice(path: &Path) -> Notice {
    let message = format!(
        "the header of {} has no version that fits its entries; the file is used as it is and is not converted",
        path.display()
    );
    Notice::new("session_version_unclear", message)
}

fn torn_notice(path: &Path, bytes: usize) -> Notice {
    let message = format!(
        "{} ends with {bytes} bytes that are not a complete entry; they are not used, and are moved to a file beside it before anything is appended",
        path.display()
    );
    Notice::new("session_tail_torn", message)
}

fn headless_notice(path: &Path, copy: Option<&Path>) -> Notice {
    let message = match copy {
        Some(copy) => format!(
            "{} has no readable header; it is kept as it is, and its entries are opened from a repaired copy, {}",
            path.display(),
            copy.display()
        ),
        None => format!("{} has no readable header", path.display()),
    };
    Notice::new("session_header_repaired", message)
}
