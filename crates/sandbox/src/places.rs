//! The built-in lists of places.

/// Places below the home directory that nothing in a sandbox reads.
pub(crate) const HIDDEN_AT_HOME: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/gh",
    ".kube",
    ".docker/config.json",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".git-credentials",
    ".config/git/credentials",
    ".password-store",
    ".local/share/keyrings",
    ".mozilla",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".config/opera",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
    ".local/share/fish/fish_history",
    ".codex/auth.json",
    ".claude",
    ".claude.json",
    ".gemini/oauth_creds.json",
    ".local/share/opencode/auth.json",
];

/// Places in [`HIDDEN_AT_HOME`] that may be read all the same.
pub(crate) const SHOWN_AT_HOME: &[&str] = &[".ssh/known_hosts", ".ssh/config"];

/// Places of the system that nothing in a sandbox reads.
pub(crate) const HIDDEN: &[&str] = &["/etc/shadow", "/etc/gshadow", "/run/secrets"];

/// Files of the agent directory that nothing in a sandbox reads.
pub(crate) const HIDDEN_OF_AGENT: &[&str] = &["auth.json", "models.json", "trust.json", "sessions"];

/// Names at the top of a writable place that tell programs outside what to run. They are protected before they exist.
pub(crate) const PROTECTED: &[&str] = &[
    ".pi",
    ".agents",
    ".codex",
    ".claude",
    ".cursor",
    ".gemini",
    ".mcp.json",
    ".vscode",
    ".idea",
    ".envrc",
    ".husky",
    ".gitmodules",
];

/// Files of a git directory that name programs or are programs.
pub(crate) const PROTECTED_OF_GIT: &[&str] = &[
    "hooks",
    "config",
    "config.worktree",
    "info/attributes",
    "commondir",
    "gitdir",
];

/// Names in a home directory that is writable.
pub(crate) const PROTECTED_AT_HOME: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".kshrc",
    ".inputrc",
    ".gitconfig",
    ".config",
    ".local/bin",
    ".local/share/applications",
    ".cargo/bin",
    ".cargo/config",
    ".cargo/config.toml",
    ".npmrc",
    ".pam_environment",
    ".xprofile",
    ".xsession",
    ".xinitrc",
    ".vimrc",
    ".vim",
    ".emacs",
    ".emacs.d",
    ".ssh",
    ".gnupg",
    "bin",
];

/// Directories that `strict` may read.
pub(crate) const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc",
    "/opt",
    "/nix",
    "/proc",
    "/sys",
    "/run/systemd/resolve",
    "/var/lib/dpkg",
    "/var/cache/fontconfig",
];

/// Places that package managers write to, by the name of a preset.
pub(crate) const PRESETS: &[(&str, &[&str])] = &[
    ("@cargo", &["~/.cargo/registry", "~/.cargo/git"]),
    ("@npm", &["~/.npm/_cacache", "~/.npm/_logs"]),
    ("@pip", &["~/.cache/pip"]),
    ("@go", &["~/go/pkg", "~/.cache/go-build"]),
    ("@maven", &["~/.m2/repository"]),
];
