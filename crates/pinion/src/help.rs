//! The texts of `--help`.

/// A subject of `--help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Topic {
    Overview,
    RunCommand,
    Commands,
    Run,
}

impl Topic {
    pub fn text(self) -> &'static str {
        match self {
            Self::Overview => OVERVIEW,
            Self::RunCommand => RUN_COMMAND,
            Self::Commands => COMMANDS,
            Self::Run => crate::fleet::RUN_HELP,
        }
    }
}

const OVERVIEW: &str = "\
pinion runs coding agents for other programs.

Usage:
  pinion [flags] [@FILE…] [MESSAGE…]         chat, on a terminal
  pinion --mode rpc [flags]                  serve a client over lines of JSON (pi's protocol)
  pinion --mode json [flags] MESSAGE…        print every event as a line of JSON
  pinion -p [flags] [@FILE…] MESSAGE…        print the answer; -p is implied without a terminal
  pinion run-command FILE.yaml [options]     run a prompt kept in a file (Pinocchio's protocol)
  pinion commands list                       the prompts in your repositories
  pinion hub serve|status|stop|token         a hub where clips and their callers meet
  pinion clip add|list|show|logs|data|new …  the clips of a hub
  pinion invoke ALIAS COMMAND [--key value]  call a clip
  pinion mcp [CLIP]                          clips as the tools of an MCP client
  pinion sessions list|show|export           what was said before
  pinion models [SEARCH]                     the models there are
  pinion install|remove|update|list          packages of extensions, skills and prompt templates
  pinion extensions list                     the extensions a run here loads
  pinion profiles list|show|debug            engines and settings for commands, by name
  pinion trust [--revoke] [DIRECTORY]        let a project's files run things
  pinion schema pi [--dialect NAME]          the JSON Schema of the protocol's lines
  pinion turns list|show|export|check        conversations in a turns database
  pinion timeline list|show|export|check     conversations in a timeline database
  pinion fleet run PLAN.yaml                 many child agents, one report
  pinion run --format json                   print the lines opencode prints
  pinion doctor                              check the set-up
  pinion completions bash|zsh|fish           completions for a shell

Examples:
  pinion -p --model offline/demo \"list the files\"
  git diff | pinion -p - \"Review this change\"
  echo '{\"type\":\"prompt\",\"message\":\"hello\"}' | pinion --mode rpc --no-session

Model:
  --model PATTERN          id, provider/id or part of it; :LEVEL sets the thinking level
  --provider NAME          look for the model at this provider only
  --models LIST            the models cycle_model goes through; globs are fine
  --thinking LEVEL         off, minimal, low, medium, high, xhigh, max
  --api-key KEY            for this run; visible to other users of the machine: prefer the environment
  --list-models [SEARCH]   the models there are

Session:
  -c, --continue           go on with the newest session of this directory
  -r, --resume             pick a session to go on with
  --session PATH|ID        go on with this one
  --session-id ID          the same by its exact id; created if it does not exist
  --fork PATH|ID           go on with a copy
  --session-dir DIR        keep sessions here
  --no-session             keep nothing on disk
  -n, --name NAME          name the session
  --export FILE [OUT]      write a session file as a web page

Prompt:
  --system-prompt TEXT|FILE         instead of the built-in one
  --append-system-prompt TEXT|FILE  after it; may be repeated
  --skill PATH, --no-skills         add a skill; do not look for others
  --prompt-template PATH, --no-prompt-templates
  -nc, --no-context-files           ignore AGENTS.md and CLAUDE.md
  -                                 read the prompt from standard input, however long it takes

Extensions:
  -e, --extension SOURCE   load a file, a directory, npm:NAME or git:HOST/PATH; may be repeated
  -ne, --no-extensions     load only what -e names
  --NAME [VALUE]           a flag that an extension registers

Tools:
  -t, --tools LIST         of read, bash, edit, write, grep, find, ls; the first four are on
  -xt, --exclude-tools LIST
  -nt, --no-tools          no tools at all
  -nbt, --no-builtin-tools only those of extensions

Approvals:
  --approve ask|auto|deny  ask about tool calls, make all but denied ones, or only allowed ones
  --allow RULE             a tool, bash(COMMAND) or write(PATH); * is a wildcard; may be repeated
  --deny RULE              the same, and wins; may be repeated
  --clips LIST             commands of these clips of a hub as tools, such as todo,browser
  --hub URL                the hub they are on; without --clips, all of its clips
  --approve-timeout SECS   how long to wait for an answer; 300

Chat:
  --plain                  plain lines instead of a screen: for screen readers and simple terminals
  --theme dark|light       fits this background, instead of asking the terminal

Behaviour:
  --trust, --no-trust      trust or distrust this project's settings for this run
  --exit-on-eof            RPC: stop at the end of input instead of finishing the run
  --rpc-dialect NAME       early, classic or modern: the age of pi's protocol (classic)
  --multi-session          RPC: the client opens, closes and lists sessions; lines carry sessionId
  --no-coalesce            never merge deltas, however slow the reader
  --offline                fetch nothing while installing packages
  --verbose                accepted for compatibility
  -h, --help  -v, --version

Exit codes: 0 done, 1 failed, 2 wrong command line, 129/130/143 ended by SIGHUP/SIGINT/SIGTERM.
Called through a link named `pi`, it takes pi's command line.
";

pub(crate) const SESSIONS: &str = "\
What was said before.

Usage:
  pinion sessions list [--all] [--json]      sessions of this directory, or of all
  pinion sessions show PATH|ID               the conversation as text
  pinion sessions export PATH|ID [OUT.html]  the conversation as one web page

Examples:
  pinion sessions list
  pinion sessions show 73984c08
  pinion sessions export 73984c08 talk.html
";

pub(crate) const PACKAGES: &str = "\
Packages bring extensions, skills and prompt templates. They are named in the settings under \"packages\".

Usage:
  pinion install SOURCE [-l]     fetch a package and use it from now on
  pinion remove SOURCE [-l]      stop using it, and delete it if it was fetched
  pinion update [SOURCE]         fetch packages again that are not pinned, and those that are missing
  pinion list [--json]           the packages there are

  -l, --local   for this project (.pi/settings.json) instead of for you
  --offline     fetch nothing; the same as PI_OFFLINE=1

A SOURCE is one of
  npm:NAME[@VERSION]             fetched by npm, from the registry it is configured for
  git:HOST/PATH[@REF], https://…, ssh://…
                                 fetched by git; REF is a branch, a tag or a commit
  DIRECTORY or FILE.ts           used where it is
  FILE.tgz                       unpacked; needs neither npm nor git

No script of a package runs while it is installed. Its extensions run in every session afterwards, with your
permissions: install only what you trust.

Examples:
  pinion install npm:@someone/pi-tools@1.2.0
  pinion install git:git.example.org/someone/tools@v2 --local
  pinion install ./my-extensions
  pinion install ./someone-pi-tools-1.2.0.tgz
  pinion remove npm:@someone/pi-tools
  pinion update
";

pub(crate) const EXTENSIONS: &str = "\
The extensions a run in this directory loads, in order: where they come from, what they register, which
modules they import, how long it took, and why some cannot be loaded. They are loaded for it, without a session.

Usage:
  pinion extensions list [--json] [--no-load] [-e SOURCE]… [--no-extensions] [--trust|--no-trust]

  --json      one line of JSON per extension
  --no-load   only look for them; run nothing
Exit codes: 0, or 1 if one of them cannot be loaded.

They are looked for in this order; a file that is found twice is loaded once.
  1. what -e names
  2. \"extensions\" in .pi/settings.json, then .pi/extensions/, if the project is trusted
  3. \"extensions\" in the agent directory's settings.json, then its extensions/
  4. packages: the project's, then yours

Examples:
  pinion extensions list
  pinion extensions list --json -e ./new.ts
  pinion extensions list --no-load
";

pub(crate) const PROFILES: &str = "\
Profiles name an engine and its settings for `run-command`. They are written in configuration documents and in
registries: YAML files and SQLite databases.

Usage:
  pinion profiles list                the profiles there are; * is the one in use, d a registry's default
  pinion profiles show [PROFILE]      what it sets, with all it stacks on, and the settings of a run with it
  pinion profiles debug               documents, registries, the profile, the model, and who set what

  --profile NAME                use this one                        (PINOCCHIO_PROFILE)
  --profile-registries LIST     yaml:PATH, sqlite:PATH, a path, …   (PINOCCHIO_PROFILE_REGISTRIES)
  --config-file PATH            one more document, which goes before all others
  --trust, --no-trust           trust or distrust this project's documents for this run
  --json                        JSON also on a terminal; it is JSON anyway when piped

Documents, later ones win:
  /etc/pinocchio/config.yaml, ~/.pinocchio/config.yaml, ~/.config/pinocchio/config.yaml,
  .pinocchio.yml and .pinocchio.override.yml at the root of the repository, then in this directory (if it is
  trusted), --config-file.

Keys are never shown.

Examples:
  pinion profiles list
  pinion profiles show fast
  pinion profiles debug --profile fast | jq .engine
  PINOCCHIO_PROFILE_REGISTRIES=team.yaml pinion profiles list --json
";

pub(crate) const MODELS: &str = "\
Lists the models you have keys for: provider, id, context, longest answer, thinking, images.

Usage:
  pinion models [SEARCH…]   those whose provider, id or name holds every word of SEARCH

Examples:
  pinion models
  pinion models sonnet
";

pub(crate) const DOCTOR: &str = "\
Checks the set-up: directories, trust, settings, extensions, models, approvals.

Usage:
  pinion doctor

Exit codes: 0, or 1 if a problem was found.
";

pub(crate) const COMPLETIONS: &str = "\
Prints completions for a shell.

Usage:
  pinion completions bash|zsh|fish

Examples:
  pinion completions bash > ~/.local/share/bash-completion/completions/pinion
";

pub(crate) const HELP: &str = "\
Prints help: an overview, or that of a command.

Usage:
  pinion help [COMMAND]
";

pub(crate) const TRUST: &str = "\
Trusts a project. Until you trust it, pinion ignores its .pi/settings.json, its extensions, packages,
prompt templates, skills, SYSTEM.md, APPEND_SYSTEM.md and .pinocchio.yml, and reports each on stderr.
Context files (AGENTS.md, CLAUDE.md) are read in any case.

Usage:
  pinion trust [DIRECTORY]            trust it; the current directory if none is named
  pinion trust --revoke [DIRECTORY]   stop trusting it

Examples:
  pinion trust
  pinion trust --revoke ~/src/borrowed
";

pub(crate) const SCHEMA: &str = "\
The JSON Schema (2020-12) of every line of pi's protocol: what the program writes, and under $defs/input what a
client writes. It is made from the types that print and read the lines.

Usage:
  pinion schema pi [--dialect early|classic|modern]    classic if none is named
  pinion schema pi --multi-session                     what several sessions add
  pinion schema fleet                                  report.json and events.jsonl of `pinion fleet`

Examples:
  pinion schema pi --dialect modern > pi-modern.schema.json
  pinion schema pi | jq '.\"$defs\".command'
";

const RUN_COMMAND: &str = "\
Runs a prompt kept in a YAML file: its options and arguments fill the templates of its prompt, and a model answers.

Usage:
  pinion run-command FILE.yaml [options] [arguments]
  pinion run-command FILE.yaml --help        what this command takes
  pinion run-command FILE.yaml --long-help   every option there is

How the answer is told:
  --output text|json|yaml    for people and scripts
  --rpc, --output jsonl      a JSON frame per line, from hello to done
  --stdin-rpc                the same, for requests on standard input: submit, cancel, snapshot, shutdown
  --chat                     a conversation on the terminal, which the prompt begins
  --non-interactive          on a terminal, do not ask after the answer whether to go on in the chat
  --patch-mode snapshot|append
                             whether a patch repeats the text so far (the default) or adds to it
  --debug-events-jsonl FILE  frames in a file, beside whatever is printed
  --print-prompt             the rendered prompt, without asking anybody

What is kept:
  --session-id ID            the name of the conversation
  --turns-db FILE            what the model was told and said; --resume goes on from it
  --timeline-db FILE         what a client has seen
  --turns-dsn, --timeline-dsn DSN
                             the same in PostgreSQL: postgres://user@host/database

Which model answers:
  --model NAME               a model, as `pinion --model` takes it; offline/demo is built in and needs no key
  --profile NAME             a profile; without either, a model that has a key
  --tools read,bash          tools the model may call

Examples:
  pinion run-command greet.yaml --name Ada
  pinion run-command greet.yaml --rpc | jq -r 'select(.uiEvent.name==\"ChatTextSegmentFinished\").uiEvent.payload.content'
  printf '%s\\n' '{\"submit\":{\"prompt\":\"hello\"}}' | pinion run-command greet.yaml --stdin-rpc
  pinion run-command greet.yaml --rpc --turns-db turns.db --session-id notes --resume
  pinion run-command greet.yaml --chat --turns-db turns.db --timeline-db timeline.db --session-id notes
";

const COMMANDS: &str = "\
Prompts kept in YAML files, found in ~/.pinocchio/prompts and in the directories under app.repositories of the
configuration. A directory is a word of the command: code/go.yaml is run as `code go`.

Usage:
  pinion commands list [--json]         what there is
  pinion commands run WORDS… [options]  run one of them; through a link named pinocchio just `pinocchio WORDS…`
  pinion commands help WORDS…           what one of them takes; through the link `pinocchio help WORDS…`
  pinion commands help TOPIC | --list   a page that came with them; all pages

Examples:
  pinion commands list
  pinion commands run code go --help
";

pub(crate) const TURNS: &str = "\
What models were told and said, as `run-command --turns-db` keeps it. Nothing is changed, and no file is made.

Usage:
  pinion turns list   DATABASE [--session S] [--phase P] [--limit N] [--json]   what there is, the newest first
  pinion turns show   DATABASE [--session S] [--phase P] [--json | --yaml]      the newest final turn
  pinion turns export DATABASE [--session S] [--phase P] [--all] [--format F] [-o FILE]
  pinion turns check  DATABASE                                                  look for damage

DATABASE is --turns-db FILE or --turns-dsn DSN: file:PATH, or postgres://USER@HOST/NAME.
  --phase P      final (show and export take it unless told otherwise), failed, or another
  --limit N      at most N; list shows 200
  --all          export every turn that was saved, not just the newest of each session
  --format F     jsonl, markdown or html; else what the name of FILE says, else jsonl
  --json         one line of JSON per turn
Exit codes: 0, 1 if it failed or damage was found, 2 for a wrong command line.

Examples:
  pinion turns list --turns-db ~/.pinocchio/turns.db
  pinion turns show --turns-db turns.db --session project-notes
  pinion turns export --turns-db turns.db --session project-notes -o talk.html
  pinion turns export --turns-db turns.db | jq -r '.turn.blocks[] | select(.kind == \"user\") | .payload.text'
";

pub(crate) const TIMELINE: &str = "\
What was seen of conversations, as `run-command --timeline-db` keeps it: numbered events, and the messages and tool
calls they add up to. Nothing is changed, and no file is made.

Usage:
  pinion timeline list   DATABASE [--limit N] [--json]                       the sessions, last written first
  pinion timeline show   DATABASE [--session S] [--as-of N] [--events] [--json]
  pinion timeline export DATABASE [--session S] [--as-of N] [--format F] [-o FILE]
  pinion timeline check  DATABASE                                            look for damage

DATABASE is --timeline-db FILE or --timeline-dsn DSN: file:PATH, or postgres://USER@HOST/NAME.
  --session S    needed where there is more than one; export as jsonl takes all
  --as-of N      as it was after event N
  --events       show the events themselves
  --format F     jsonl (events, then entities), markdown or html; else what the name of FILE says, else jsonl
  --json         one line of JSON each
Exit codes: 0, 1 if it failed or damage was found, 2 for a wrong command line.

Examples:
  pinion timeline list --timeline-db timeline.db
  pinion timeline show --timeline-db timeline.db --session project-notes
  pinion timeline show --timeline-db timeline.db --session project-notes --as-of 12
  pinion timeline export --timeline-db timeline.db --session project-notes -o talk.md
  pinion timeline export --timeline-db timeline.db | jq -c 'select(.type == \"event\") | .name'
";
