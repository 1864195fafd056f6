//! `fs.watch`: the inotify events of one directory entry or one directory.
//!
//! A thread per watcher waits for the kernel. It ends when its watch is removed.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};
use rquickjs::prelude::{Async, Func};
use rquickjs::{Ctx, Object};
use tokio::sync::{Notify, mpsc};

use crate::ops::syscall_error::{Outcome, SyscallError};
use crate::script::Host;

/// The most batches of events that wait for the script.
const BACKLOG: usize = 64;

struct Watcher {
    inotify: Arc<Inotify>,
    watch: WatchDescriptor,
    /// Absent while an operation waits for the next events.
    events: RefCell<Option<mpsc::Receiver<Vec<String>>>>,
    closed: Notify,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // The kernel wakes the waiting thread, which ends. If the watched file is gone, the thread has ended already.
        let _ = self.inotify.rm_watch(self.watch);
    }
}

impl Watcher {
    /// Returns the next events; `None` when there will be no more.
    async fn next(&self) -> Option<Vec<String>> {
        let mut events = self.events.take()?;
        let next = tokio::select! {
            biased;
            () = self.closed.notified() => None,
            next = events.recv() => next,
        };
        self.events.replace(Some(events));
        next
    }
}

pub(super) fn install<'js>(fs: &Object<'js>, host: &Host) -> rquickjs::Result<()> {
    let watchers = Rc::new(RefCell::new(HashMap::<u32, Rc<Watcher>>::new()));
    let count = Cell::new(1_u32);

    let table = watchers.clone();
    fs.set(
        "watchOpen",
        Func::from(move |ctx: Ctx<'js>, path: String| {
            let watcher = open(&path).map_err(|syscall_error| syscall_error.throw(&ctx))?;
            let id = count.replace(count.get() + 1);
            table.borrow_mut().insert(id, Rc::new(watcher));
            rquickjs::Result::Ok(id)
        }),
    )?;

    let table = watchers.clone();
    let closed = host.closed().clone();
    fs.set(
        "watchNext",
        Func::from(Async(move |id: u32| {
            let watcher = table.borrow().get(&id).cloned();
            let closed = closed.clone();
            async move {
                tokio::select! {
                    biased;
                    () = closed.cancelled() => None,
                    next = next_of(watcher) => next,
                }
            }
        })),
    )?;

    fs.set(
        "watchClose",
        Func::from(move |id: u32| {
            if let Some(watcher) = watchers.borrow_mut().remove(&id) {
                watcher.closed.notify_one();
            }
        }),
    )
}

async fn next_of(watcher: Option<Rc<Watcher>>) -> Option<Vec<String>> {
    watcher?.next().await
}

fn open(path: &str) -> Outcome<Watcher> {
    let fail = |error: io::Error| SyscallError::new(error, "watch").at(path);
    let inotify =
        Arc::new(Inotify::init(InitFlags::IN_CLOEXEC).map_err(|error| fail(error.into()))?);
    let flags = AddWatchFlags::IN_ATTRIB
        | AddWatchFlags::IN_CREATE
        | AddWatchFlags::IN_MODIFY
        | AddWatchFlags::IN_DELETE
        | AddWatchFlags::IN_DELETE_SELF
        | AddWatchFlags::IN_MOVE_SELF
        | AddWatchFlags::IN_MOVED_FROM
        | AddWatchFlags::IN_MOVED_TO;
    let watch = inotify
        .add_watch(path, flags)
        .map_err(|error| fail(error.into()))?;
    let name = Path::new(path).file_name().unwrap_or_default();
    let name = name.to_string_lossy().into_owned();
    let (sender, events) = mpsc::channel(BACKLOG);
    let source = inotify.clone();
    std::thread::Builder::new()
        .name("watch".into())
        .spawn(move || listen(&source, &name, &sender))
        .map_err(fail)?;
    Ok(Watcher {
        inotify,
        watch,
        events: RefCell::new(Some(events)),
        closed: Notify::new(),
    })
}

fn listen(inotify: &Inotify, own_name: &str, sender: &mpsc::Sender<Vec<String>>) {
    loop {
        let events = match inotify.read_events() {
            Ok(events) => events,
            Err(nix::Error::EINTR) => continue,
            Err(_) => return,
        };
        let ignored = |event: &InotifyEvent| event.mask.contains(AddWatchFlags::IN_IGNORED);
        let over = events.iter().any(ignored);
        let event_text: Vec<String> = events
            .into_iter()
            .filter(|event| !ignored(event))
            .map(|event| event_text(event, own_name))
            .collect();
        if (!event_text.is_empty() && sender.blocking_send(event_text).is_err()) || over {
            return;
        }
    }
}

/// Returns `c` for a change or `r` for an added or removed name, followed by the name.
fn event_text(event: InotifyEvent, own_name: &str) -> String {
    let plain = AddWatchFlags::IN_MODIFY | AddWatchFlags::IN_ATTRIB;
    let kind = if event.mask.intersects(plain) {
        'c'
    } else {
        'r'
    };
    match event.name {
        Some(name) => format!("{kind}{}", name.to_string_lossy()),
        None => format!("{kind}{own_name}"),
    }
}
