//! The verbs `run-command` and `commands`: run a file, run a command of a repository, list the commands there.

use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use pinion_cli::tables;
use pinion_commands::{
    BUILT_INS, Command, CommandLine, HelpLevel, HelpPage, Repository, World, commands_json,
    commands_table, leading_options, related_pages,
};
use pinion_run_command::{End, Job, Mode, Options, RedirectedStderr, RunHost};
use pinion_run_command::{built_ins, leading};
use pinion_text::nearest;

use super::host::CommandHost;
use super::pages;
use crate::commands::out;
use crate::failure::Failure;
use crate::program::Program;
use crate::verb::Line;

#[derive(Debug)]
pub(crate) enum Verb {
    /// Run the command in a file.
    RunCommand(Vec<String>),
    /// List, run or explain the commands of repositories.
    Commands(Vec<String>),
    /// Run a command of a repository by its words; options may precede them.
    Named(Vec<String>),
    /// Explain a command or a topic.
    Help(Vec<String>),
}

impl Verb {
    /// Reports whether this is `commands list`, which has flags as pinion's other commands do.
    pub fn lists_commands(&self) -> bool {
        matches!(self, Self::Commands(arguments) if arguments.first().is_some_and(|word| word == "list"))
    }
}

/// Runs a verb. A failure before anything runs has exit code 1, as in Pinocchio.
pub(crate) fn run(program: Program, verb: Verb) -> Result<ExitCode, Failure> {
    let done = match verb {
        Verb::RunCommand(arguments) => run_file(program, &arguments),
        // A wrong command line of pinion's own has pinion's exit code; running a command has Pinocchio's.
        Verb::Commands(arguments) if program == Program::Pinion && !runs(&arguments) => {
            return commands(program, &arguments);
        }
        Verb::Commands(arguments) => commands(program, &arguments),
        Verb::Named(words) => run_named(program, &words),
        Verb::Help(words) => pages::help(program, &words),
    };
    done.map_err(|failure| failure.for_program(Program::Pinocchio))
}

fn run_file(program: Program, arguments: &[String]) -> Result<ExitCode, Failure> {
    let Some((file, rest)) = arguments.split_first() else {
        let usage = "Usage: run-command FILE.yaml [options]\nThe file comes first; see `run-command --help`.";
        return Err(Failure::usage(usage).bare());
    };
    if file == "--help" || file == "-h" {
        return crate::commands::help(&crate::commands::place(program, &["run-command"]));
    }
    let host = CommandHost::read()?;
    let command = Command::load(host.cwd(), Path::new(file), BUILT_INS)?;
    let call = format!("{} run-command {file}", program.name());
    execute(host, &command, &CommandLine::new(rest), &call, &[])
}

fn run_named(program: Program, words: &[String]) -> Result<ExitCode, Failure> {
    let (options, words) = words.split_at(leading_options(words, &leading()));
    let host = CommandHost::read()?;
    let repository = Repository::load(&host.repositories(), BUILT_INS);
    match repository.find(words)? {
        Some(mut found) => {
            let call = format!("{} {}", program.name(), found.path.join(" "));
            found.line.words.splice(0..0, options.iter().cloned());
            let related = repository.related_pages(&found.path);
            execute(host, found.command, &found.line, &call, &related)
        }
        None if options.iter().any(|option| option == "--version") && words.is_empty() => {
            crate::commands::version_number()
        }
        None if words.is_empty() => {
            crate::commands::help(&crate::commands::place(program, &["run-command"]))
        }
        None => Err(unknown(&repository, words)),
    }
}

/// The error for words that name no command, with the commands that exist instead.
fn unknown(repository: &Repository, words: &[String]) -> Failure {
    let below = repository.below(words);
    let shown = words.join(" ");
    if below.is_empty() {
        let hint = "`commands list` shows what there is; a file is run with `run-command FILE`.";
        return Failure::failed(format!("there is no command \"{shown}\".")).hint(hint);
    }
    let below = below.join(", ");
    Failure::failed(format!("\"{shown}\" is a group of commands: {below}"))
}

fn execute(
    host: CommandHost,
    command: &Command,
    line: &CommandLine,
    call: &str,
    related: &[&HelpPage],
) -> Result<ExitCode, Failure> {
    host.check_sandbox()?;
    for warning in &command.warnings {
        eprintln!("Warning: {warning}");
    }
    let mut world = World::new(host.cwd())
        .with_environment(|name| std::env::var(name).ok())
        .with_stdin(std::io::stdin());
    let built_ins = built_ins(command);
    let parsed = command.parse(line, &built_ins, &mut world)?;
    let values = &parsed.builtin;
    if values.flag("long-help") {
        let page = command.help(call, HelpLevel::Long, &built_ins);
        return out(&(page + &related_pages(related)));
    }
    if values.flag("help") {
        let page = command.help(call, HelpLevel::Short, &built_ins);
        return out(&(page + &related_pages(related)));
    }
    if values.flag("version") {
        return crate::commands::version_number();
    }
    if values.flag("print-yaml") {
        return out(&command.origin.text);
    }
    if values.flag("print-schema") {
        return out(&format!("{:#}\n", command.schema()));
    }
    if values.flag("print-parsed-fields") {
        return out(&command.parsed_fields(&parsed, &built_ins));
    }
    if let Some(name) = values.optional("create-alias") {
        let path: Vec<String> = call.split(' ').skip(1).map(str::to_owned).collect();
        return out(&command.alias_file(name, &path, &parsed));
    }
    if let Some(name) = values.optional("create-command") {
        return out(&command.command_file(name, &parsed)?);
    }
    let options = Options::read(values)?;
    let _redirected = RedirectedStderr::requested(values)?;
    let rendered = command.render(&parsed, &world)?;
    let mode = options.mode;
    if mode == Mode::PrintPrompt {
        return out(&rendered.transcript());
    }
    let job = Job::prepare(Box::new(host), command, rendered, values, options)?;
    match mode {
        Mode::Run(mode) => Ok(exit_code(job.run(mode)?)),
        Mode::PrintSettings | Mode::PrintPrompt => out(&job.settings()),
    }
}

fn exit_code(end: End) -> ExitCode {
    ExitCode::from(match end {
        End::Done => 0,
        End::Failed | End::Unread => 1,
        End::Signal(code) => code,
    })
}

const VERBS: [&str; 3] = ["list", "run", "help"];

/// Reports whether the arguments of `commands` run one.
fn runs(arguments: &[String]) -> bool {
    arguments.first().is_some_and(|word| word == "run")
}

fn commands(program: Program, arguments: &[String]) -> Result<ExitCode, Failure> {
    let Some((word, rest)) = arguments.split_first() else {
        let problem = "name what to do: commands list, run or help.";
        return Err(Failure::usage(problem).hint("See `commands --help`."));
    };
    let asks_help = rest
        .first()
        .is_some_and(|word| word == "--help" || word == "-h");
    match word.as_str() {
        "--help" | "-h" => crate::commands::help(&crate::commands::place(program, &["commands"])),
        "run" | "help" if asks_help || rest.is_empty() => {
            crate::commands::help(&crate::commands::place(program, &["commands"]))
        }
        "list" => LIST.run(rest),
        "run" => run_named(program, rest),
        "help" => pages::help(program, rest),
        other => {
            let hint = match nearest(other, VERBS) {
                Some(nearest) => format!("Did you mean `commands {nearest}`?"),
                None => "See `commands --help`.".to_owned(),
            };
            let problem = format!("unknown command `commands {other}`.");
            Err(Failure::usage(problem).hint(hint))
        }
    }
}

const LIST: crate::verb::Verb =
    crate::verb::Verb::new("pinion commands", &tables::prompts::COMMANDS_LIST, list);

fn list(line: &Line) -> Result<ExitCode, Failure> {
    let [] = line.exactly()?;
    let as_json = line.has("--json") || !std::io::stdout().is_terminal();
    let directories = CommandHost::read()?.repositories();
    let repository = Repository::load(&directories, BUILT_INS);
    for failure in repository.failures() {
        eprintln!("Warning: {}: {}", failure.path.display(), failure.reason);
    }
    let listed = repository.list();
    if as_json {
        return out(&format!("{:#}\n", commands_json(&listed)));
    }
    if listed.is_empty() {
        eprintln!(
            "No commands. Put YAML files into ~/.pinocchio/prompts, or name directories under app.repositories in ~/.pinocchio/config.yaml."
        );
    }
    out(&commands_table(&listed))
}
