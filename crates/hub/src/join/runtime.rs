//! The runtime stream, on which another hub installs and removes clips here.

use std::sync::Arc;

use jiff::Timestamp;
use pinion_clip::install::Purge;
use pinion_clip::logs::Level;
use pinion_connect::{Receiver, Sender};
use pinion_proto::Text;
use pinion_proto::hub::hub_runtime_message::Payload as FromHub;
use pinion_proto::hub::runtime_message::Payload as ToHub;
use pinion_proto::hub::{
    ClipInfo, Heartbeat, HubRuntimeMessage, InstallCommand, InstallResult, RemoveCommand,
    RemoveResult, RuntimeMessage, RuntimeRegister,
};
use pinion_status::{Code, Failure};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::link::{Announcement, ClipChange};
use super::{JoinContext, StreamEnd, broken, classify, host_name, method};
use crate::convert::{clip_info_of, hub_error, text};
use crate::queue::Queue;

/// The most simultaneous installations and removals; further ones wait.
const MAX_CONCURRENT: usize = 4;

/// Opens the stream once and serves it until it ends.
pub(super) async fn run_stream(shared: &Arc<JoinContext>) -> StreamEnd {
    let client = match shared.options.client() {
        Ok(client) => client,
        Err(failure) => return classify(failure),
    };
    let opening = async {
        let stream = client.bidi(&method("RuntimeStream"), None).await;
        let (mut sender, mut receiver): (Sender<RuntimeMessage>, Receiver<HubRuntimeMessage>) =
            stream.map_err(classify)?;
        let register = RuntimeRegister {
            name: text(&shared.options.name),
            hostname: host_name().into(),
            os: std::env::consts::OS.into(),
            arch: architecture().into(),
            supported_runtimes: shared.options.runtimes.iter().map(|it| text(it)).collect(),
        };
        if let Err(failure) = sender.send(&message(ToHub::Register(register))).await {
            let why = receiver.next().await.err();
            return Err(classify(why.unwrap_or(failure)));
        }
        loop {
            let next = receiver.next().await.map_err(classify)?;
            match next.map(|message| message.payload) {
                Some(Some(FromHub::RegisterResponse(answer))) if answer.accepted => break,
                Some(Some(FromHub::RegisterResponse(answer))) => {
                    let message = format!("the hub refused the registration: {}", answer.message);
                    let failure = Failure::new(Code::FailedPrecondition, message);
                    return Err(StreamEnd::Refused(failure));
                }
                Some(_) => {}
                None => return Err(StreamEnd::Unreached(ended())),
            }
        }
        Ok((sender, receiver))
    };
    let opened = tokio::select! {
        () = shared.left.cancelled() => return StreamEnd::Left,
        opened = tokio::time::timeout(2 * shared.limits.first_message_timeout, opening) => opened,
    };
    let (sender, receiver) = match opened {
        Ok(Ok(streams)) => streams,
        Ok(Err(lost)) => return lost,
        Err(_) => return StreamEnd::Unreached(ended()),
    };
    let queue = Arc::new(Queue::new(&shared.limits));
    tokio::select! {
        () = shared.left.cancelled() => StreamEnd::Left,
        failure = write(&queue, sender) => broken(failure),
        failure = read(shared, &queue, receiver) => broken(failure),
        () = send_pings(shared, &queue) => StreamEnd::Left,
    }
}

fn ended() -> Failure {
    Failure::new(Code::Unavailable, "the hub has ended the stream")
}

fn message(reply: ToHub) -> RuntimeMessage {
    RuntimeMessage {
        payload: Some(reply),
    }
}

/// Returns the architecture of this machine in the words that hubs use.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

async fn write(queue: &Queue<ToHub>, mut sender: Sender<RuntimeMessage>) -> Failure {
    while let Some(reply) = queue.take().await {
        if let Err(failure) = sender.send(&message(reply)).await {
            return failure;
        }
    }
    ended()
}

async fn send_pings(shared: &JoinContext, queue: &Queue<ToHub>) {
    loop {
        tokio::time::sleep(shared.limits.ping_interval).await;
        let sent_at_unix_ms = Timestamp::now().as_millisecond();
        if !queue
            .put(ToHub::Ping(Heartbeat { sent_at_unix_ms }), 0)
            .await
        {
            return;
        }
    }
}

async fn read(
    shared: &Arc<JoinContext>,
    queue: &Arc<Queue<ToHub>>,
    mut receiver: Receiver<HubRuntimeMessage>,
) -> Failure {
    let permits = Arc::new(tokio::sync::Semaphore::new(MAX_CONCURRENT));
    let mut tasks = JoinSet::new();
    loop {
        let next = match tokio::time::timeout(shared.limits.ping_timeout, receiver.next()).await {
            Ok(Ok(Some(next))) => next,
            Ok(Ok(None)) => return ended(),
            Ok(Err(failure)) => return failure,
            Err(_) => return ended(),
        };
        while tasks.try_join_next().is_some() {}
        let (shared, queue, permits) = (shared.clone(), queue.clone(), permits.clone());
        match next.payload {
            Some(FromHub::InstallCommand(command)) => {
                tasks.spawn(async move {
                    let _permit = permits.acquire().await;
                    let reply = installed(&shared, command).await;
                    queue.put(reply, 1024).await;
                });
            }
            Some(FromHub::RemoveCommand(command)) => {
                tasks.spawn(async move {
                    let _permit = permits.acquire().await;
                    let reply = removed(&shared, command).await;
                    queue.put(reply, 1024).await;
                });
            }
            Some(FromHub::RegisterResponse(_) | FromHub::Pong(_)) | None => {}
        }
    }
}

async fn installed(shared: &JoinContext, command: InstallCommand) -> ToHub {
    let outcome = install(shared, &command).await;
    let (clip, error) = match outcome {
        Ok(clip) => (Some(clip), None),
        Err(failure) => {
            let message = format!("{} was not installed: {failure}", command.source);
            shared.write_log(Level::Warn, &message);
            (None, Some(hub_error(&failure)))
        }
    };
    ToHub::InstallResult(InstallResult {
        request_id: command.request_id,
        error,
        clip,
    })
}

async fn install(shared: &JoinContext, command: &InstallCommand) -> Result<ClipInfo, Failure> {
    // Without the provider stream the clip could not be announced.
    shared.announcer().ok_or_else(no_provider)?;
    let url = &shared.options.url;
    shared.write_log(
        Level::Info,
        &format!("{url} has {} installed", command.source),
    );
    let alias = shared
        .offer
        .install(command.alias.trim(), &command.source, &command.clip_token)
        .await?;
    announce(shared, &alias, &command.request_id, ClipChange::Installed).await?;
    let endpoint = shared
        .offer
        .get(&alias)
        .ok_or_else(|| Failure::no_clip(&alias))?;
    Ok(clip_info_of(&alias, text(&shared.options.name), &*endpoint))
}

async fn removed(shared: &JoinContext, command: RemoveCommand) -> ToHub {
    let outcome = remove(shared, &command).await;
    ToHub::RemoveResult(RemoveResult {
        request_id: command.request_id,
        error: outcome.err().as_ref().map(hub_error),
    })
}

async fn remove(shared: &JoinContext, command: &RemoveCommand) -> Result<(), Failure> {
    shared.announcer().ok_or_else(no_provider)?;
    let alias = command.alias.trim();
    if shared.offer.get(alias).is_none() {
        return Err(Failure::no_clip(alias));
    }
    let purge = if command.purge {
        Purge::Data
    } else {
        Purge::Nothing
    };
    shared.offer.remove(alias, purge).await?;
    shared.write_log(
        Level::Info,
        &format!("{} had \"{alias}\" removed", shared.options.url),
    );
    announce(shared, alias, &command.request_id, ClipChange::Removed).await
}

fn no_provider() -> Failure {
    Failure::new(Code::Unavailable, "provider stream is not connected")
}

/// Announces a change on the provider stream and waits until the message was sent. The result on this stream must
/// follow it.
async fn announce(
    shared: &JoinContext,
    alias: &str,
    request: &Text,
    change: ClipChange,
) -> Result<(), Failure> {
    let announcer = shared.announcer().ok_or_else(no_provider)?;
    let (sent, on_its_way) = oneshot::channel();
    let announce = Announcement {
        alias: alias.to_owned(),
        request: request.to_string(),
        change,
        sent,
    };
    announcer.send(announce).await.map_err(|_| no_provider())?;
    on_its_way.await.map_err(|_| no_provider())
}
