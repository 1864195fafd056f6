//! Help texts of the clip commands.

pub(super) const GROUP: &str = "\
Clips: small programs that can do a few things for others, on a hub.

Usage:
  pinion clip add SOURCE                 install one, or another version of one
  pinion clip list                       what there is
  pinion clip show ALIAS                 what one can do
  pinion clip remove ALIAS               take one away
  pinion clip update ALIAS               get the latest version of one from its registry
  pinion clip logs ALIAS                 what one has said
  pinion clip data ALIAS read|write|…    the files one keeps
  pinion clip bind|unbind|bindings ALIAS which clips one calls
  pinion clip new NAME                   write one to begin with

Each has --help. On a terminal there are tables, otherwise, or with --json, there is JSON.

All but new call a hub: that of PINIX_URL, else the one client.json names, else the one that runs here.
  --server URL           another one
  --auth-token TOKEN     who you are: PINIX_TOKEN, else client.json's, else that of the hub that runs here
  --root DIR             where the hub's files are: ~/.pinion/hub, or PINION_HUB_DIR
  --timeout TIME         how long to wait: 30s, 5m
  --ca FILE              a hub with TLS: believe certificates signed by those in this file, and no others

Examples:
  pinion clip new hello --lang python
  pinion clip add ./hello
  pinion invoke hello count --to 3
";

pub(super) const ADD: &str = "\
Installs a clip. Under an alias it has already, another version is put in its place; its data stays.

Usage:
  pinion clip add SOURCE [flags]

Sources:
  ./DIRECTORY, ./ARCHIVE.tgz         on the machine of the hub
  @scope/name[@version]              from the registry that is configured, or --registry
  registry:URL#@scope/name[@version] from this one
  npm/NAME[@version]                 from npm
  github/USER/REPOSITORY[#branch]
  local/NAME --path DIRECTORY        the same as a directory, under another name
MCP servers are clips too; they are named in mcp.json in the hub's directory.

Flags:
  --alias ALIAS          what it is called here; else the name in its package
  --provider NAME        the runtime that is to run it
  --watch                stay, and install it anew whenever its directory changes
  --token SECRET         callers must know this (--clip-token)
  --registry URL         where packages come from: PINIX_REGISTRY, else client.json's
  --server, --auth-token, --root, --timeout, --json   as in `pinion clip --help`

Examples:
  pinion clip add ./todo --watch
  pinion clip add ./todo --alias work --token s3cret-for-callers
  pinion clip add @acme/search@1.2.0 --registry https://registry.example.org
";

pub(super) const LIST: &str = "\
Lists the clips you may see, with what they are doing.

Usage:
  pinion clip list [--server URL] [--auth-token TOKEN] [--json]

Examples:
  pinion clip list
  pinion clip list --json | jq -r '.[].name'
";

pub(super) const SHOW: &str = "\
What a clip says of itself: its commands and what they take. Starts it if it has not said so yet.

Usage:
  pinion clip show ALIAS [--server URL] [--auth-token TOKEN] [--json]

Examples:
  pinion clip show todo
  pinion clip show todo --json | jq '.commands[].name'
";

pub(super) const REMOVE: &str = "\
Takes a clip away. What it has kept stays, unless it is to go too.

Usage:
  pinion clip remove ALIAS [--purge] [--server URL] [--auth-token TOKEN]

Examples:
  pinion clip remove todo
  pinion clip remove todo --purge
";

pub(super) const UPDATE: &str = "\
Gets the latest version of a clip, or the one that is named, from its registry.

Usage:
  pinion clip update ALIAS [--version VERSION] [--registry URL]
  pinion clip update --all

Examples:
  pinion clip update search
  pinion clip update search --version 1.3.0
";

pub(super) const LOGS: &str = "\
What a clip, or the hub itself, has said.

Usage:
  pinion clip logs ALIAS [--tail 50] [-f] [--level warn] [--json]
  pinion clip logs --system

  -n, --tail COUNT       so many of the last lines
  -f, --follow           and those that come
  --level LEVEL          debug, info, warn or error, and what is worse
  --system               the hub's own log

Examples:
  pinion clip logs todo -f
  pinion clip logs --system --tail 200 --level warn
";

pub(super) const DATA: &str = "\
The files a clip keeps. The clip is not started for it.

Usage:
  pinion clip data ALIAS list [PATH]
  pinion clip data ALIAS read PATH              the bytes, on stdout
  pinion clip data ALIAS write PATH [flags]     from stdin, unless a flag says otherwise
  pinion clip data ALIAS stat|delete PATH

  --content TEXT         what to write
  --file FILE            where to read it
  --encoding base64      what was given is base64; utf-8 is as it is
  --mime TYPE            what it is

Examples:
  pinion clip data todo list
  pinion clip data todo read todo.json | jq .
  pinion clip data todo write notes/a.txt --content hello
";

pub(super) const BIND: &str = "\
Says which clip fills a slot of another.

Usage:
  pinion clip bind ALIAS SLOT [TARGET] [--clip-token SECRET]
  pinion clip bind ALIAS SLOT TARGET --hub URL [--hub-token TOKEN]
  pinion clip bind ALIAS [SLOT] --list

Without TARGET the slot's own name is the alias. The clip is started anew for it once it has nothing to do.
--list also shows which clips would fit: those of the package a slot wants, in a version it takes.

Examples:
  pinion clip bind notes store db
  pinion clip bind notes mail post --hub https://hub.example.org
";

pub(super) const UNBIND: &str = "\
Frees a slot of a clip.

Usage:
  pinion clip unbind ALIAS SLOT

Examples:
  pinion clip unbind notes store
";

pub(super) const BINDINGS: &str = "\
Which clips fill the slots of another.

Usage:
  pinion clip bindings ALIAS [--json]

Examples:
  pinion clip bindings notes
";

pub(super) const NEW: &str = "\
Writes a clip to begin with, into a directory of its name.

Usage:
  pinion clip new NAME [--lang ts|python|bash|rust] [--path DIRECTORY]

  -l, --lang LANGUAGE    ts (needs bun), python, bash (needs jq), rust (needs cargo)
  --path DIRECTORY       where, if not in ./NAME; must be empty or not there

Examples:
  pinion clip new hello --lang python
  pinion clip add ./hello && pinion invoke hello count --to 3
";
