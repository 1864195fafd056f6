//! One session for one client, over lines of JSON.

use std::process::ExitCode;
use std::sync::Arc;

use pinion_agent::Listener;
use pinion_extensions::{InputSource, Mode};
use pinion_jsonl::{DEFAULT_LINE_LIMIT, Queue, Writer, read_stdin_lines, stdio};
use pinion_pi::{Dialect, Out, PiListener, Projection, Serving, ServingEnd};

use super::{build_engine, coalesce, conclude, refuse_files};
use crate::cli::Flags;
use crate::engine::{Basis, Engine, Shared};
use crate::extensions::Audience;
use crate::failure::Failure;
use crate::program::Program;
use crate::signals::ShutdownSignals;
use crate::{reader, runtime};

/// Serves a client over lines of JSON until it closes its end.
pub(crate) fn rpc(program: Program, flags: Box<Flags>) -> Result<ExitCode, Failure> {
    refuse_files(&flags)?;
    let stdout = stdio::claim_stdout()?;
    let queue: Queue<Out> = Queue::new(coalesce(&flags));
    let basis = Basis::read(&flags)?;
    let dialect = basis.dialect;
    let listener: Arc<dyn Listener> = Arc::new(PiListener::new(queue.clone(), dialect));
    let runtime = runtime::build()?;
    let audience = match dialect {
        // The early protocol has no dialogs.
        Dialect::Early => Audience {
            source: InputSource::Rpc,
            ..Audience::none(Mode::Rpc)
        },
        Dialect::Classic | Dialect::Modern => Audience {
            records: {
                let queue = queue.clone();
                Arc::new(move |record| queue.push(Out::line(record)))
            },
            has_room: {
                let queue = queue.clone();
                Arc::new(move || queue.has_room())
            },
            has_ui: true,
            source: InputSource::Rpc,
            mode: Mode::Rpc,
        },
    };
    let shared = Shared::new(&basis.dirs);
    let input = runtime.block_on(async { read_stdin_lines(DEFAULT_LINE_LIMIT) });
    let engine = build_engine(
        &runtime,
        program,
        &flags,
        basis,
        vec![listener],
        audience,
        &shared,
    )?;
    let on_eof = flags.on_eof;
    drop(flags);
    let watched = stdout.try_clone()?;
    let Engine {
        config, companions, ..
    } = engine;
    let projection = Projection::new(dialect, companions.additions()).quiet();
    let writer =
        runtime.block_on(async { Writer::spawn_on_runtime(stdout, projection, queue.clone()) })?;
    let mut signals = ShutdownSignals::listen(&runtime)?;
    let end = runtime.block_on(async {
        let interrupted = async {
            tokio::select! {
                () = reader::gone(watched) => ServingEnd::Output,
                () = queue.broken() => ServingEnd::Output,
                code = signals.received() => ServingEnd::Signal(code),
            }
        };
        let serving = Serving::start(config, companions, dialect, queue.clone());
        serving.serve(input, on_eof, interrupted).await
    });
    Ok(conclude(
        runtime,
        signals,
        &shared.preferences,
        &queue,
        writer,
        end,
    ))
}
