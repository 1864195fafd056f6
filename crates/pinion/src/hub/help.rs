//! Help texts of the hub commands.

pub(super) const GROUP: &str = "\
A hub: clips, providers and their callers meet in it.

Usage:
  pinion hub [serve] [flags]             run a hub in the foreground
  pinion hub status                      whether one is running, and where
  pinion hub stop                        end it
  pinion hub info                        what a hub says of itself
  pinion hub join URL                    offer the clips here to a hub elsewhere, without being one
  pinion hub token create|list|revoke    who may call it
  pinion hub login, logout, whoami       use a hub elsewhere: keep its address and your token there

Each has --help. The hub's files are in ~/.pinion/hub; --root or PINION_HUB_DIR name another place.
Clips are looked after with `pinion clip`, called with `pinion invoke`.

Examples:
  pinion hub serve
  pinion hub serve --port 0 --root ./hub
  pinion hub status
";

pub(super) const SERVE: &str = "\
Runs a hub in the foreground until it gets SIGTERM or SIGINT.

Usage:
  pinion hub serve [flags]

Where:
  --port PORT            9000; 0 takes any that is free
  --bind ADDRESS         127.0.0.1; others need TLS or --insecure-bind
  --insecure-bind        listen on other addresses without TLS
  --tls-cert FILE, --tls-key FILE   speak TLS, with these in PEM
  --root DIR             where everything is kept: ~/.pinion/hub, or PINION_HUB_DIR
  --pid FILE             where to say which process it is: pinixd.pid in that directory

Who may call:
  --auth token           everybody needs a token (this is what happens without the flag)
  --auth manage          without one: list and call, but change nothing
  --auth none            everybody on this machine may do everything; loopback only
  --super-token TOKEN    one more token that may do everything, of 16 letters at least; other users of the
                         machine see it: prefer --super-token-file FILE or PINION_SUPER_TOKEN
  --jwt-issuer URL       also take JWTs that this issuer signed, as hub tokens of the user they name
  --jwt-audience NAME    only those that are meant for NAME
  --jwt-manage           let their bearers install, remove and bind what they own
  --origin URL           web pages of others that may call; may be repeated; * is all of them
  --trust-provider-pages web pages of remote providers may act for whoever looks at them

What it does:
  --hub-only             run no clips of its own
  --call-timeout TIME    how long a single answer may take: 5m; 0 is as long as it takes
  --silence TIME         how long a stream may say nothing: 5m; 0 is as long as it likes
  --join URL             also offer the clips installed here to another hub, with --hub-token TOKEN, --name NAME and
                         --accept-installs as in `pinion hub join --help`; --offer-all offers all it has
  --import-pinix DIR     take over the clips, data and super token of a Pinix directory; it stays as it is
  --bun FILE             the bun that runs TypeScript clips, if it is not on the path
  --model MODEL, --provider NAME, --thinking LEVEL   for agents that do not say
  --agent-dir DIR        where tools of the agent work: the directory it was started in
  --no-agent             without the clip `agent`
  --no-scheduler         without the clip `scheduler`
  --log-level LEVEL      what is shown on stderr: debug, info, warn, error

On stdout there is one line, \"Listening on URL\". SIGHUP reads the tokens again. Nothing it has started outlives it.

Examples:
  pinion hub serve
  pinion hub serve --port 0 --root ./hub --log-level warn
  pinion hub serve --bind 0.0.0.0 --tls-cert hub.pem --tls-key hub.key
  pinion hub serve --jwt-issuer https://login.example --jwt-audience hub
";

pub(super) const STATUS: &str = "\
Says whether a hub is running, and where. The exit code is 1 if none is.

Usage:
  pinion hub status [--root DIR | --pid FILE] [--json]

Examples:
  pinion hub status
  pinion hub status --json | jq -r .hubURL
";

pub(super) const STOP: &str = "\
Ends the hub: it stops taking calls, ends its clips and exits. After 15 s it is killed.

Usage:
  pinion hub stop [--root DIR | --pid FILE]

Examples:
  pinion hub stop
";

pub(super) const INFO: &str = "\
What a hub says of itself. Needs no token.

Usage:
  pinion hub info [--server URL] [--json]

Examples:
  pinion hub info
  pinion hub info --server https://hub.example.org
";

pub(super) const TOKEN: &str = "\
Who may call the hub.

Usage:
  pinion hub token create --scope @NAME [--manage] [--expires 90d|never] [--label TEXT]
  pinion hub token create --kind clip --alias ALIAS
  pinion hub token create --kind super
  pinion hub token list
  pinion hub token revoke ID

They work on the files of the hub in ~/.pinion/hub or --root, whether it runs or not. With --server URL, PINIX_URL or
after `pinion hub login` they ask that hub, which requires a super token.

Examples:
  pinion hub token create --scope @ann --expires 30d --label \"Ann's laptop\"
  pinion hub token revoke k3v9q2mz
";

pub(super) const TOKEN_CREATE: &str = "\
Makes a token. It is shown once; only its hash is kept.

Usage:
  pinion hub token create [flags]

  --kind hub             for a user: call what they see (this is what happens without the flag)
  --kind clip            for a program that is a clip
  --kind super           may do everything
  --scope @NAME          who the user is
  --alias ALIAS          which clip it is
  --manage               the user may also install, remove and bind
  --expires TIME         when it expires: after 12h, 30d or 2w, or never; 90d without the flag (--ttl is the same)
  --label TEXT           what it is for, shown in lists
  --root DIR, --server URL, --auth-token TOKEN, --json

Examples:
  pinion hub token create --scope @ann --manage --expires 30d
  PINIX_TOKEN=$(pinion hub token create --scope @ci | jq -r .token)
";

pub(super) const TOKEN_LIST: &str = "\
Lists tokens: what they are called, whose they are, until when they are good. Not the tokens themselves.

Usage:
  pinion hub token list [--root DIR | --server URL] [--json]

Examples:
  pinion hub token list
  pinion hub token list --json | jq -r '.[].id'
";

pub(super) const TOKEN_REVOKE: &str = "\
Ends a token for good. A running hub heeds it within a second; what was begun with it ends within five.

Usage:
  pinion hub token revoke ID [--root DIR | --server URL]

Examples:
  pinion hub token revoke k3v9q2mz
";

pub(super) const LOGIN: &str = "\
Keeps the address of a hub and your token for it in client.json. Later commands call that hub with that token.

Usage:
  pinion hub login --server URL [--token TOKEN]
  pinion hub whoami                      print @name; exit code 1 without a login
  pinion hub logout                      forget the token

  --server URL   the hub, else PINIX_URL, else the hub of the last login
  --token TOKEN  the token that the owner of the hub made for you with `pinion hub token create`. Without the
                 flag, pinion asks for it or reads it from standard input; other users see command lines
  --root DIR     where client.json is: ~/.pinion/hub, or PINION_HUB_DIR

The hub checks the token first. It is sent over https only, or to this machine.

Examples:
  pinion hub login --server https://hub.example.org
  pinion hub login --server https://hub.example.org < token.txt
";

pub(super) const JOIN: &str = "\
Offers the clips installed here to a hub elsewhere, for as long as it runs. What is lost is joined again.

Usage:
  pinion hub join URL [flags]

  --hub-token TOKEN      who we are there: PINIX_HUB_TOKEN, else client.json's
  --name NAME            what we are called there; else pinixd-HOST-PORT
  --port PORT            the number in that name; else one made from the directory. Nothing listens on it
  --accept-installs      whoever may manage that hub may also install and remove clips here
  --root DIR             where the clips are: ~/.pinion/hub, or PINION_HUB_DIR
  --pid FILE, --bun FILE, --log-level LEVEL

A hub of one's own that also does this is started with `pinion hub serve --join URL`.

Examples:
  pinion hub join https://hub.example.org --hub-token pnx_…
  pinion hub serve --join http://192.168.1.5:9000
";
