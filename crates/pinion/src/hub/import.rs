//! Import of a Pinix directory: its clips with their data and secrets, its super token, and the hub its commands call.
//!
//! The import does not change the Pinix directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use pinion_access::client::ClientConfig;
use pinion_access::{Import, TokenStore, import_super_token};
use pinion_clip::alias;
use pinion_clip::logs::{Level, Origin};
use pinion_connect::{Client, ClientOptions, Failure as Refusal};
use pinion_files::Replace;
use pinion_hub::Hub;
use pinion_proto::hub::{AddClipRequest, AddClipResponse};
use serde_json::Value;

use super::caller::path_of;
use super::failed;
use crate::failure::Failure;

/// The largest `config.json`, in bytes.
const LIMIT: u64 = 64 << 20;

/// The parsed content of a Pinix directory.
#[derive(Debug)]
pub(super) struct Pinix {
    directory: PathBuf,
    clips: Vec<Clip>,
}

#[derive(Debug)]
struct Clip {
    alias: String,
    directory: PathBuf,
    secret: String,
}

impl Pinix {
    /// Reads the clips in `config.json`.
    pub fn read(directory: &Path) -> Result<Self, Failure> {
        let path = directory.join("config.json");
        let wrong = |error: &dyn std::fmt::Display| {
            Failure::failed(format!("Error: {}: {error}", path.display()))
        };
        let text = pinion_files::read(&path, LIMIT).map_err(|error| wrong(&error))?;
        let config: Value = serde_json::from_slice(&text).map_err(|error| wrong(&error))?;
        let clips = config["clips"].as_object().into_iter().flatten();
        let clips = clips.filter_map(|(name, record)| {
            let alias = alias::normalise(name)?;
            let kept = record["path"].as_str().map(PathBuf::from);
            let own = directory.join("clips").join(name);
            Some(Clip {
                directory: kept.filter(|path| path.is_dir()).unwrap_or(own),
                secret: record["token"].as_str().unwrap_or_default().to_owned(),
                alias,
            })
        });
        Ok(Self {
            clips: clips.collect(),
            directory: directory.to_owned(),
        })
    }

    /// Imports the super token, and the hub and registry that commands call unless they are set already.
    pub fn take_tokens(&self, root: &Path, tokens: &TokenStore) -> Result<(), Failure> {
        // The import removes the plain text token from the file it reads, so it works on a copy.
        let copy = root.join("imported.json");
        let config = pinion_files::read(&self.directory.join("config.json"), LIMIT)?;
        pinion_files::replace(&copy, &config, Replace::PRIVATE)?;
        let imported = import_super_token(tokens, &copy);
        let _ = fs::remove_file(&copy);
        if imported.map_err(failed)? == Import::TooShort {
            eprintln!(
                "The super token of the imported directory has less than 16 letters and is left out."
            );
        }
        let theirs = ClientConfig::load(&self.directory).map_err(failed)?;
        ClientConfig::update(root, |ours| {
            if ours.hub.is_none() && ours.hub_token.is_none() {
                ours.hub = theirs.hub;
                ours.hub_token = theirs.hub_token;
            }
            ours.registry = ours.registry.take().or(theirs.registry);
        })
        .map_err(failed)
    }

    /// Installs the clips on the hub at `url`, which must be listening. Failures are written to the hub's log.
    pub async fn take_clips(self, hub: &Hub, root: &Path, url: &str, token: &str) {
        let say = |level, words: String| hub.log().push(level, Origin::System, &words);
        let options = ClientOptions {
            token: Some(token.to_owned()),
            ..ClientOptions::default()
        };
        let client = match Client::new(url, options) {
            Ok(client) => client,
            Err(refusal) => return say(Level::Error, refusal.to_string()),
        };
        for clip in &self.clips {
            let alias = &clip.alias;
            if hub.table().get(alias).is_some() {
                say(
                    Level::Info,
                    format!("\"{alias}\" is here already and is not imported"),
                );
                continue;
            }
            match self.take_clip(clip, root, &client).await {
                Ok(()) => say(Level::Info, format!("\"{alias}\" is imported")),
                Err(failure) => say(
                    Level::Error,
                    format!("\"{alias}\" is not imported: {failure}"),
                ),
            }
        }
    }

    async fn take_clip(&self, clip: &Clip, root: &Path, client: &Client) -> Result<(), Refusal> {
        let alias = &clip.alias;
        let theirs = self.directory.join("data").join(alias);
        let ours = root.join("data").join(alias);
        if theirs.is_dir() && !ours.exists() {
            let copied = tokio::task::spawn_blocking(move || copy(&theirs, &ours)).await;
            let copied = copied.unwrap_or_else(|error| Err(io::Error::other(error)));
            copied.map_err(|error| Refusal::io("its data", &error))?;
        }
        let request = AddClipRequest {
            source: format!("local/{alias}:{}", clip.directory.display()).into(),
            requested_alias: alias.clone().into(),
            clip_token: clip.secret.clone().into(),
            ..AddClipRequest::default()
        };
        let method = path_of("AddClip");
        let _: AddClipResponse = client.unary(&method, &request, None).await?;
        Ok(())
    }
}

/// Copies directories and files. Skips links, because they would point back to the original.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let target = to.join(entry.file_name());
        if kind.is_dir() {
            copy(&entry.path(), &target)?;
        } else if kind.is_file() {
            let mut source = pinion_files::open(&entry.path())?;
            let mode = source.metadata()?.permissions();
            let mut copied = pinion_files::create_new(&target, 0o600)?;
            io::copy(&mut source, &mut copied)?;
            copied.set_permissions(mode)?;
        }
    }
    Ok(())
}
