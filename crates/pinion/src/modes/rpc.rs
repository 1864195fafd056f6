//! One session for one client, over lines of JSON.

use std::process::ExitCode;
use std::sync::Arc;

use pinion_agent::Listener;
use pinion_extensions::InputSource;
use pinion_jsonl::{DEFAULT_LINE_LIMIT, Queue, Writer, read_lines, stdio};
use pinion_pi::{Dialect, Out, PiListener};

use super::serving::Serving;
use super::{End, coalesce, conclude, projection, records, refuse_files, room, the_engine};
use crate::cli::Flags;
use crate::engine::{Basis, Shared};
use crate::extensions::Audience;
use crate::failure::Failure;
use crate::program::Program;
use crate::signals::Ending;
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
            ..Audience::none()
        },
        Dialect::Classic | Dialect::Modern => Audience {
            records: records(queue.clone()),
            has_room: room(queue.clone()),
            has_ui: true,
            source: InputSource::Rpc,
        },
    };
    let shared = Shared::new(&basis.dirs);
    let input = read_lines(std::io::stdin(), DEFAULT_LINE_LIMIT);
    let engine = the_engine(
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
    let writer = Writer::spawn(stdout, projection(dialect, &engine), queue.clone())?;
    let mut ending = Ending::listen(&runtime)?;
    let end = runtime.block_on(async {
        let interrupted = async {
            tokio::select! {
                () = reader::gone(watched) => End::Output,
                () = queue.broken() => End::Output,
                code = ending.signalled() => End::Signal(code),
            }
        };
        let serving = Serving::start(engine, dialect, queue.clone());
        serving.live(input, on_eof, interrupted).await
    });
    Ok(conclude(
        runtime,
        ending,
        &shared.preferences,
        &queue,
        writer,
        end,
    ))
}
