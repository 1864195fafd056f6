//! A hub with everything that belongs to it, from one directory.

use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;

use pinion_access::{self as access, Gate, Grant, LocalToken, Scope, TokenStore};
use pinion_clip::install::{Library, Record};
use pinion_clip::logs::{ClipLog, Level};
use pinion_clip::{ClipConfig, Issued, Programs, Token, Tokens};
use pinion_status::Failure;

use crate::{Hub, Inside, Mode, Runtime, Settings};

/// The name of the hub's own log under `logs`.
const LOG: &str = "pinixd.log";

/// A hub, and how to get in.
#[derive(Debug)]
pub struct Opened {
    /// The hub.
    pub hub: Arc<Hub>,
    /// The token of the local user.
    pub entrance: LocalToken,
    /// What was left out because it could not be read.
    pub left_out: Vec<Failure>,
}

/// Gives each process of a clip a token that ends with it.
#[derive(Debug)]
struct Passes {
    store: TokenStore,
    alias: String,
    owner: Option<Scope>,
}

impl Tokens for Passes {
    fn issue(&self) -> Result<Issued, Failure> {
        let passing = self.store.mint_ephemeral(Grant::Clip {
            alias: self.alias.clone(),
            owner: self.owner.clone(),
        })?;
        Ok(Issued {
            token: Token::new(passing.token().reveal()),
            lease: Box::new(passing),
        })
    }
}

/// Opens the hub in `root`, which is made if it is missing: its tokens, its log, and the clips installed there.
///
/// `url` is the address clips are told.
pub fn open(
    root: &Path,
    url: &str,
    settings: Settings,
    mode: access::Mode,
    programs: Programs,
) -> Result<Opened, Failure> {
    // Conversations and answers are kept below it.
    let mut private = std::fs::DirBuilder::new();
    let made = private.recursive(true).mode(0o700).create(root);
    made.map_err(|error| Failure::io(root.display(), &error))?;
    let tokens = TokenStore::open(root)?;
    let entrance = access::bootstrap(&tokens)?;
    let log = Arc::new(ClipLog::at(root.join("logs").join(LOG)));
    let runs_clips = settings.mode == Mode::Full;
    let hub = Hub::new(settings, Gate::new(mode, tokens.clone()), log);
    let mut left_out = Vec::new();
    if runs_clips {
        let inside = Inside::default();
        inside.of(&hub);
        let url = url.to_owned();
        let equip = move |record: &Record, config: &mut ClipConfig| {
            config.hub_url.clone_from(&url);
            config.tokens = Some(Arc::new(Passes {
                store: tokens.clone(),
                alias: record.name.clone(),
                owner: record.owner.parse().ok(),
            }));
        };
        let library = Library::open(root, programs)?;
        let (runtime, unread) = Runtime::open(library, Arc::new(inside), Box::new(equip))?;
        hub.attach(Arc::new(runtime))?;
        left_out = unread;
    }
    for failure in &left_out {
        hub.say(Level::Error, &failure.message);
    }
    Ok(Opened {
        hub,
        entrance,
        left_out,
    })
}
