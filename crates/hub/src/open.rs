//! Opening a hub with its tokens, its log and its clips from one directory.

use std::path::Path;
use std::sync::Arc;

use pinion_access::{self as access, Gate, Grant, LocalToken, Scope, TokenStore};
use pinion_clip::install::{Library, Record};
use pinion_clip::logs::{ClipLog, Level};
use pinion_clip::{ClipConfig, Issued, Programs, Token, Tokens};
use pinion_status::Failure;

use crate::{Hub, LocalHub, Mode, Runtime, Settings};

/// The name of the hub's own log under `logs`.
const LOG_FILE: &str = "pinixd.log";

/// The result of [`open`].
#[derive(Debug)]
pub struct OpenedHub {
    pub hub: Arc<Hub>,
    /// The token of the local user.
    pub local_token: LocalToken,
    /// One failure for each installed clip that could not be read and was skipped.
    pub skipped: Vec<Failure>,
}

/// Issues a token to each process of a clip; the token is revoked when the process ends.
#[derive(Debug)]
struct ClipTokens {
    store: TokenStore,
    alias: String,
    owner: Option<Scope>,
}

impl Tokens for ClipTokens {
    fn issue(&self) -> Result<Issued, Failure> {
        let ephemeral = self.store.mint_ephemeral(Grant::Clip {
            alias: self.alias.clone(),
            owner: self.owner.clone(),
        })?;
        Ok(Issued {
            token: Token::new(ephemeral.token().reveal()),
            lease: Box::new(ephemeral),
        })
    }
}

/// Opens the hub in `root`: its tokens, its log and the clips installed there. Creates `root` if it does not exist.
///
/// `url` is the hub's address that clips receive in their environment.
pub fn open(
    root: &Path,
    url: &str,
    settings: Settings,
    mode: access::Mode,
    programs: Programs,
) -> Result<OpenedHub, Failure> {
    // Only the owner may enter: conversations and answers are stored below `root`.
    let made = pinion_files::create_private_directory(root);
    made.map_err(|error| Failure::io(root.display(), &error))?;
    let tokens = TokenStore::open(root)?;
    let local_token = access::bootstrap(&tokens)?;
    let log = Arc::new(ClipLog::of_hub(root.join("logs").join(LOG_FILE)));
    let runs_clips = settings.mode == Mode::Full;
    let hub = Hub::new(settings, Gate::new(mode, tokens.clone()), log);
    let mut skipped = Vec::new();
    if runs_clips {
        let local_hub = LocalHub::default();
        local_hub.set_hub(&hub);
        let url = url.to_owned();
        let configure = move |record: &Record, config: &mut ClipConfig| {
            config.hub_url.clone_from(&url);
            config.tokens = Some(Arc::new(ClipTokens {
                store: tokens.clone(),
                alias: record.name.clone(),
                owner: record.owner.parse().ok(),
            }));
        };
        let library = Library::open(root, programs)?;
        let (runtime, unread) = Runtime::open(library, Arc::new(local_hub), Box::new(configure))?;
        hub.attach(Arc::new(runtime))?;
        skipped = unread;
    }
    for failure in &skipped {
        hub.write_log(Level::Error, &failure.message);
    }
    Ok(OpenedHub {
        hub,
        local_token,
        skipped,
    })
}
