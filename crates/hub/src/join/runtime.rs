//! The stream on which another hub has clips installed and removed here.

use std::sync::Arc;

use jiff::Timestamp;
use pinion_clip::install::Purge;
use pinion_clip::logs::Level;
use pinion_connect::{Receiver, Sender};
use pinion_proto::Text;
use pinion_proto::hub::hub_runtime_message::Payload as Heard;
use pinion_proto::hub::runtime_message::Payload as Said;
use pinion_proto::hub::{
    ClipInfo, Heartbeat, HubRuntimeMessage, InstallCommand, InstallResult, RemoveCommand,
    RemoveResult, RuntimeMessage, RuntimeRegister,
};
use pinion_status::{Code, Failure};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::link::{Announce, News};
use super::{Lost, Shared, broken, classify, host_name, method};
use crate::convert::{clip_info_of, hub_error, text};
use crate::queue::Queue;

/// Installations and removals at a time; more wait.
const AT_A_TIME: usize = 4;

/// Serves the stream once, until that ends.
pub(super) async fn attend(shared: &Arc<Shared>) -> Lost {
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
        if let Err(failure) = sender.send(&message(Said::Register(register))).await {
            let why = receiver.next().await.err();
            return Err(classify(why.unwrap_or(failure)));
        }
        loop {
            let next = receiver.next().await.map_err(classify)?;
            match next.map(|message| message.payload) {
                Some(Some(Heard::RegisterResponse(answer))) if answer.accepted => break,
                Some(Some(Heard::RegisterResponse(answer))) => {
                    let message = format!("the hub refuses: {}", answer.message);
                    let failure = Failure::new(Code::FailedPrecondition, message);
                    return Err(Lost::Refused(failure));
                }
                Some(_) => {}
                None => return Err(Lost::Unreached(ended())),
            }
        }
        Ok((sender, receiver))
    };
    let opened = tokio::select! {
        () = shared.left.cancelled() => return Lost::Left,
        opened = tokio::time::timeout(2 * shared.limits.first_message, opening) => opened,
    };
    let (sender, receiver) = match opened {
        Ok(Ok(streams)) => streams,
        Ok(Err(lost)) => return lost,
        Err(_) => return Lost::Unreached(ended()),
    };
    let queue = Arc::new(Queue::new(&shared.limits));
    tokio::select! {
        () = shared.left.cancelled() => Lost::Left,
        failure = write(&queue, sender) => broken(failure),
        failure = read(shared, &queue, receiver) => broken(failure),
        () = greet(shared, &queue) => Lost::Left,
    }
}

fn ended() -> Failure {
    Failure::new(Code::Unavailable, "the hub has ended the stream")
}

fn message(said: Said) -> RuntimeMessage {
    RuntimeMessage {
        payload: Some(said),
    }
}

/// The architecture of this machine, as hubs name it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

async fn write(queue: &Queue<Said>, mut sender: Sender<RuntimeMessage>) -> Failure {
    while let Some(said) = queue.take().await {
        if let Err(failure) = sender.send(&message(said)).await {
            return failure;
        }
    }
    ended()
}

async fn greet(shared: &Shared, queue: &Queue<Said>) {
    loop {
        tokio::time::sleep(shared.limits.ping).await;
        let sent_at_unix_ms = Timestamp::now().as_millisecond();
        if !queue
            .put(Said::Ping(Heartbeat { sent_at_unix_ms }), 0)
            .await
        {
            return;
        }
    }
}

async fn read(
    shared: &Arc<Shared>,
    queue: &Arc<Queue<Said>>,
    mut receiver: Receiver<HubRuntimeMessage>,
) -> Failure {
    let room = Arc::new(tokio::sync::Semaphore::new(AT_A_TIME));
    let mut chores = JoinSet::new();
    loop {
        let next = match tokio::time::timeout(shared.limits.dead, receiver.next()).await {
            Ok(Ok(Some(next))) => next,
            Ok(Ok(None)) => return ended(),
            Ok(Err(failure)) => return failure,
            Err(_) => return ended(),
        };
        while chores.try_join_next().is_some() {}
        let (shared, queue, room) = (shared.clone(), queue.clone(), room.clone());
        match next.payload {
            Some(Heard::InstallCommand(command)) => {
                chores.spawn(async move {
                    let _turn = room.acquire().await;
                    let said = installed(&shared, command).await;
                    queue.put(said, 1024).await;
                });
            }
            Some(Heard::RemoveCommand(command)) => {
                chores.spawn(async move {
                    let _turn = room.acquire().await;
                    let said = removed(&shared, command).await;
                    queue.put(said, 1024).await;
                });
            }
            Some(Heard::RegisterResponse(_) | Heard::Pong(_)) | None => {}
        }
    }
}

async fn installed(shared: &Shared, command: InstallCommand) -> Said {
    let outcome = install(shared, &command).await;
    let (clip, error) = match outcome {
        Ok(clip) => (Some(clip), None),
        Err(failure) => {
            let message = format!("{} was not installed: {failure}", command.source);
            shared.say(Level::Warn, &message);
            (None, Some(hub_error(&failure)))
        }
    };
    Said::InstallResult(InstallResult {
        request_id: command.request_id,
        error,
        clip,
    })
}

async fn install(shared: &Shared, command: &InstallCommand) -> Result<ClipInfo, Failure> {
    // Nobody could be told of the clip otherwise.
    shared.announcer().ok_or_else(no_provider)?;
    let url = &shared.options.url;
    shared.say(
        Level::Info,
        &format!("{url} has {} installed", command.source),
    );
    let alias = shared
        .offer
        .install(command.alias.trim(), &command.source, &command.clip_token)
        .await?;
    announce(shared, &alias, &command.request_id, News::Installed).await?;
    let endpoint = shared
        .offer
        .get(&alias)
        .ok_or_else(|| Failure::no_clip(&alias))?;
    Ok(clip_info_of(&alias, text(&shared.options.name), &*endpoint))
}

async fn removed(shared: &Shared, command: RemoveCommand) -> Said {
    let outcome = remove(shared, &command).await;
    Said::RemoveResult(RemoveResult {
        request_id: command.request_id,
        error: outcome.err().as_ref().map(hub_error),
    })
}

async fn remove(shared: &Shared, command: &RemoveCommand) -> Result<(), Failure> {
    shared.announcer().ok_or_else(no_provider)?;
    let alias = command.alias.trim();
    if shared.offer.get(alias).is_none() {
        return Err(Failure::no_clip(alias));
    }
    let purge = match command.purge {
        true => Purge::Data,
        false => Purge::Nothing,
    };
    shared.offer.remove(alias, purge).await?;
    shared.say(
        Level::Info,
        &format!("{} had \"{alias}\" removed", shared.options.url),
    );
    announce(shared, alias, &command.request_id, News::Removed).await
}

fn no_provider() -> Failure {
    Failure::new(Code::Unavailable, "provider stream is not connected")
}

/// Tells the other hub of a clip on the other stream, before it is told here that the work is done.
async fn announce(shared: &Shared, alias: &str, request: &Text, news: News) -> Result<(), Failure> {
    let announcer = shared.announcer().ok_or_else(no_provider)?;
    let (sent, on_its_way) = oneshot::channel();
    let announce = Announce {
        alias: alias.to_owned(),
        request: request.to_string(),
        news,
        sent,
    };
    announcer.send(announce).await.map_err(|_| no_provider())?;
    on_its_way.await.map_err(|_| no_provider())
}
