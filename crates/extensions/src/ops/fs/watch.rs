//! `fs.watch`: what inotify says about one directory entry or one directory.
//!
//! A thread per watcher waits for the kernel; it ends when its watch is removed.

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

use crate::ops::fault::{Fault, Outcome};
use crate::script::Shared;

/// Events a script has not asked for yet.
const BACKLOG: usize = 64;

struct Watcher {
    inotify: Arc<Inotify>,
    watch: WatchDescriptor,
    /// Absent while somebody waits for the next events.
    events: RefCell<Option<mpsc::Receiver<Vec<String>>>>,
    closed: Notify,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // The kernel tells the waiting thread, which ends. If the watched thing is gone, it already has.
        let _ = self.inotify.rm_watch(self.watch);
    }
}

impl Watcher {
    /// The next events; `None` when there will be no more.
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

pub(super) fn install<'js>(fs: &Object<'js>, host: &Shared) -> rquickjs::Result<()> {
    let watchers = Rc::new(RefCell::new(HashMap::<u32, Rc<Watcher>>::new()));
    let count = Cell::new(1_u32);

    let table = watchers.clone();
    fs.set(
        "watchOpen",
        Func::from(move |ctx: Ctx<'js>, path: String| {
            let watcher = open(&path).map_err(|fault| fault.throw(&ctx))?;
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
    let fail = |error: io::Error| Fault::new(error, "watch").at(path);
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
        let told: Vec<String> = events
            .into_iter()
            .filter(|event| !ignored(event))
            .map(|event| told(event, own_name))
            .collect();
        if (!told.is_empty() && sender.blocking_send(told).is_err()) || over {
            return;
        }
    }
}

/// `c` for a change or `r` for a name that came or went, then the name.
fn told(event: InotifyEvent, own_name: &str) -> String {
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
