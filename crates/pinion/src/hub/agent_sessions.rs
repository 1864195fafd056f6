//! The sessions of the agent clip, built from the settings and files of this machine.

use std::path::PathBuf;

use pinion_agent::Config;
use pinion_agent_clip::{AgentDefaults, SessionFactory, SessionRequest};
use pinion_config::Dirs;
use pinion_extensions::Mode;
use pinion_llm::Registry;
use pinion_message::Mask;
use pinion_pi::{Dialect, DialectName};
use pinion_status::Failure;
use tokio::runtime::Handle;

use crate::cli::Flags;
use crate::engine::{self, Basis, Company, Conversation, Shared};
use crate::extensions::Audience;
use crate::program::Program;

/// The flags of `hub serve` for agents.
pub(super) struct AgentFlags {
    pub defaults: AgentDefaults,
    /// The data directory of the clip.
    pub directory: PathBuf,
    /// The working directory of tools; the program's own by default.
    pub cwd: Option<PathBuf>,
}

impl AgentFlags {
    /// Adds the factory of sessions to the flags.
    pub fn into_options(self) -> Result<pinion_agent_clip::AgentOptions, Failure> {
        let here =
            Dirs::from_env().map_err(|error| Failure::io("the working directory", &error))?;
        let dirs = match self.cwd {
            None => here,
            Some(cwd) => here.at(std::path::absolute(&cwd).unwrap_or(cwd)),
        };
        Ok(pinion_agent_clip::AgentOptions {
            defaults: self.defaults,
            directory: self.directory,
            cwd: dirs.cwd.clone(),
            sessions: Box::new(AgentSessions {
                shared: Shared::new(&dirs),
                dirs,
            }),
        })
    }
}

struct AgentSessions {
    /// State that all engines share.
    shared: Shared,
    dirs: Dirs,
}

impl SessionFactory for AgentSessions {
    fn mask(&self) -> &Mask {
        &self.shared.mask
    }

    fn registry(&self) -> Registry {
        Shared::registry_apart(&self.dirs)
    }

    fn build(&self, request: SessionRequest) -> Result<Config, Failure> {
        let flags = Flags {
            session_id: Some(request.id.clone()),
            session_dir: Some(request.directory.display().to_string()),
            dialect: Some(DialectName::Named(Dialect::Modern)),
            // An extension expects the session of a single user; a hub may have many users.
            no_extensions: true,
            // The credentials of MCP servers are those of a single user too.
            no_mcp: true,
            no_context_files: !request.is_owner,
            no_skills: !request.is_owner,
            no_prompt_templates: !request.is_owner,
            model: request.model,
            provider: request.provider,
            api_key: request.api_key,
            thinking: request.thinking,
            system_prompt: request.system_prompt,
            ..Flags::default()
        };
        let basis = Basis::at(self.dirs.clone(), &flags)?;
        let mut conversation = Conversation::open(&flags, &basis)?;
        conversation.family = Some(request.id);
        let company = Company {
            tools: request.tools,
            registry: request.registry,
            ..Company::new(vec![request.listener], Audience::none(Mode::Print))
        };
        let program = Program::Pinion;
        let engine = engine::build(program, &flags, basis, conversation, company, &self.shared);
        Ok(Handle::current().block_on(engine)?.config)
    }
}
