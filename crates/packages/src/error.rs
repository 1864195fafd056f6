//! Failures of the installer.

use std::io;
use std::path::PathBuf;

use pinion_config::ConfigError;
use pinion_process::Exit;

/// The failure of an installation or a removal. Nothing was recorded and no directory is left, unless the variant
/// names it.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    #[error("{text} is no package: {reason}.")]
    Source { text: String, reason: String },
    #[error(
        "{} is not there. A package of the npm registry is written npm:NAME, a repository git:HOST/PATH.",
        .0.display()
    )]
    Missing(PathBuf),
    #[error(
        "{0} brings no extensions, skills or prompt templates, so it was not installed.\n\
         A package lists them in package.json under \"pi\", or keeps them in extensions/, skills/ and prompts/."
    )]
    Empty(String),
    #[error("{} could not be unpacked: {error}.", path.display())]
    Archive { path: PathBuf, error: io::Error },
    #[error("{} has no package.json with a usable name, so it was not installed.", .0.display())]
    Unnamed(PathBuf),
    #[error("this package has no place to be installed to.")]
    NoDirectory,
    #[error("{} is not a directory, so the package was not installed.", .0.display())]
    Dependencies(PathBuf),
    #[error(
        "{0} must be fetched, and the network is off. Leave --offline out, and PI_OFFLINE unset."
    )]
    Offline(String),
    #[error(
        "npm is needed to fetch {source_text}, and it is not on the PATH. Install npm, or fetch the \
         package's archive on another machine (`npm pack {name}`) and run `pinion install ./FILE.tgz`."
    )]
    NoNpm { source_text: String, name: String },
    #[error(
        "git is needed to fetch {0}, and it is not on the PATH. Install git, or copy the \
         repository here and run `pinion install ./DIRECTORY`."
    )]
    NoGit(String),
    #[error("npm said that it installed {0}, but it is not there.")]
    NotFetched(String),
    #[error("could not run {program}: {error}")]
    Launch {
        program: &'static str,
        error: io::Error,
    },
    #[error("{program} took longer than {minutes} minutes and was stopped.")]
    Timeout { program: &'static str, minutes: u64 },
    /// `output` is the indented end of the program's output.
    #[error("{program} failed ({exit}).{output}")]
    Program {
        program: &'static str,
        exit: Exit,
        output: String,
    },
    /// The settings no longer name the package, but its directory is still there.
    #[error("{name} is no longer used, but {} could not be removed: {error}.", directory.display())]
    Leftover {
        name: String,
        directory: PathBuf,
        error: io::Error,
    },
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Io(#[from] io::Error),
}
