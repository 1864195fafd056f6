//! Import of a Pinix directory: its clips with their data and secrets, its super token, and the hub its commands call.
//!
//! The import does not change the Pinix directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use pinion_access::client::ClientConfig;
use pinion_access::{Import, import_super_token};
use pinion_clip::alias;
use pinion_clip::logs::Level;
use pinion_connect::{Client, ClientOptions};
use pinion_files::Replace;
use pinion_proto::hub::{AddClipRequest, AddClipResponse};
use pinion_status::{Code, Failure};
use serde_json::Value;

use crate::Hub;

/// The largest `config.json`, in bytes.
const CONFIG_LIMIT: u64 = 64 << 20;

/// The parsed content of a Pinix directory.
#[derive(Debug)]
pub struct PinixDirectory {
    directory: PathBuf,
    clips: Vec<ImportedClip>,
}

#[derive(Debug)]
struct ImportedClip {
    alias: String,
    directory: PathBuf,
    secret: String,
}

impl PinixDirectory {
    /// Reads the clips in `config.json`.
    pub fn read(directory: &Path) -> Result<Self, Failure> {
        let path = directory.join("config.json");
        let text = read_config(directory)?;
        let config: Value = serde_json::from_slice(&text).map_err(|error| {
            let message = format!("{}: {error}", path.display());
            Failure::new(Code::DataLoss, message)
        })?;
        let clips = config["clips"].as_object().into_iter().flatten();
        let clips = clips.filter_map(|(name, record)| {
            let alias = alias::normalise(name)?;
            let recorded = record["path"].as_str().map(PathBuf::from);
            let usual = directory.join("clips").join(name);
            Some(ImportedClip {
                directory: recorded.filter(|path| path.is_dir()).unwrap_or(usual),
                secret: record["token"].as_str().unwrap_or_default().to_owned(),
                alias,
            })
        });
        Ok(Self {
            clips: clips.collect(),
            directory: directory.to_owned(),
        })
    }

    /// Imports the super token to the hub in `root`, and the hub and registry that commands call unless they are set
    /// already. Returns a warning if the super token is too short.
    pub fn import_tokens(&self, hub: &Hub, root: &Path) -> Result<Option<&'static str>, Failure> {
        // The import removes the plain text token from the file it reads, so it works on a copy.
        let copy = root.join("imported.json");
        let config = read_config(&self.directory)?;
        pinion_files::replace(&copy, &config, Replace::PRIVATE)
            .map_err(|error| Failure::io(copy.display(), &error))?;
        let outcome = import_super_token(hub.gate().store(), &copy);
        let _ = fs::remove_file(&copy);
        let is_too_short = outcome? == Import::TooShort;
        let imported = ClientConfig::load(&self.directory)?;
        ClientConfig::update(root, |config| {
            if config.hub.is_none() && config.hub_token.is_none() {
                config.hub = imported.hub;
                config.hub_token = imported.hub_token;
            }
            config.registry = config.registry.take().or(imported.registry);
        })?;
        Ok(is_too_short.then_some(
            "The super token of the imported directory has less than 16 letters and is left out.",
        ))
    }

    /// Installs the clips on the hub at `url`, which must be listening. Failures are written to the hub's log.
    pub async fn import_clips(self, hub: &Hub, root: &Path, url: &str, token: &str) {
        let options = ClientOptions {
            token: Some(token.to_owned()),
            ..ClientOptions::default()
        };
        let client = match Client::new(url, options) {
            Ok(client) => client,
            Err(failure) => return hub.write_log(Level::Error, &failure.message),
        };
        for clip in &self.clips {
            let alias = &clip.alias;
            if hub.table().get(alias).is_some() {
                let message = format!("\"{alias}\" is here already and is not imported");
                hub.write_log(Level::Info, &message);
                continue;
            }
            match self.import_clip(clip, root, &client).await {
                Ok(()) => hub.write_log(Level::Info, &format!("\"{alias}\" is imported")),
                Err(failure) => {
                    let message = format!("\"{alias}\" is not imported: {failure}");
                    hub.write_log(Level::Error, &message);
                }
            }
        }
    }

    async fn import_clip(
        &self,
        clip: &ImportedClip,
        root: &Path,
        client: &Client,
    ) -> Result<(), Failure> {
        let alias = &clip.alias;
        let from = self.directory.join("data").join(alias);
        let to = root.join("data").join(alias);
        if from.is_dir() && !to.exists() {
            let copied = tokio::task::spawn_blocking(move || copy(&from, &to)).await;
            let copied = copied.unwrap_or_else(|error| Err(io::Error::other(error)));
            copied.map_err(|error| Failure::io("its data", &error))?;
        }
        let request = AddClipRequest {
            source: format!("local/{alias}:{}", clip.directory.display()).into(),
            requested_alias: alias.clone().into(),
            clip_token: clip.secret.clone().into(),
            ..AddClipRequest::default()
        };
        let method = "pinix.v2.HubService/AddClip";
        let _: AddClipResponse = client.unary(method, &request, None).await?;
        Ok(())
    }
}

fn read_config(directory: &Path) -> Result<Vec<u8>, Failure> {
    let path = directory.join("config.json");
    pinion_files::read(&path, CONFIG_LIMIT).map_err(|error| Failure::io(path.display(), &error))
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
