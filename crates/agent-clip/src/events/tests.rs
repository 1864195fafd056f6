use super::*;

/// Returns an event that is due at `next`, with an id and a creation time made of `number`.
fn event(number: u32, kind: Recurrence, next: &str) -> Event {
    Event {
        id: format!("event-{number}"),
        agent_id: "default".into(),
        topic_id: None,
        kind,
        schedule: match kind {
            Recurrence::Once => next.into(),
            Recurrence::Daily => "09:00".into(),
        },
        timezone: "UTC".into(),
        prompt: "Hello".into(),
        status: Status::Active,
        last_run_at: None,
        next_run_at: Some(time(next)),
        last_topic_id: None,
        last_run_id: None,
        last_error: None,
        owner: "super".into(),
        scope: None,
        created_at: format!("{number:04}"),
        updated_at: String::new(),
    }
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn ids(taken: &[Taken]) -> Vec<&str> {
    taken.iter().map(|taken| taken.event.id.as_str()).collect()
}

const NINE: &str = "2026-03-01T09:00:00Z";

#[test]
fn events_are_taken_at_their_time_and_not_before() {
    let place = tempfile::tempdir().unwrap();
    let (events, _) = Events::open(place.path()).unwrap();
    events.add(event(1, Recurrence::Once, NINE)).unwrap();
    events.add(event(2, Recurrence::Daily, NINE)).unwrap();
    let (taken, next) = events.take_due(time("2026-03-01T08:59:59Z"));
    assert!(taken.is_empty());
    assert_eq!(next, Some(time(NINE)));

    let now = time("2026-03-01T09:00:00.2Z");
    let (taken, next) = events.take_due(now);
    assert_eq!(ids(&taken), ["event-1", "event-2"]);
    assert_eq!(next, Some(time("2026-03-02T09:00:00Z")));
    // Their due time was removed.
    assert!(events.take_due(now).0.is_empty());
    events.note("event-1", |event| event.end(None)).unwrap();
    events
        .note("event-2", |event| event.end(Some("no".into())))
        .unwrap();
    let all = events.all(&Principal::Super);
    assert_eq!(
        (all[0].status, all[1].status),
        (Status::Done, Status::Active)
    );
    assert_eq!((all[0].last_run_at, all[0].next_run_at), (Some(now), None));
    assert_eq!(all[1].last_error.as_deref(), Some("no"));
}

#[test]
fn events_of_one_topic_run_one_after_the_other() {
    let place = tempfile::tempdir().unwrap();
    let (events, _) = Events::open(place.path()).unwrap();
    for (number, at) in [(1, "2026-03-01T09:00:01Z"), (2, NINE)] {
        let mut event = event(number, Recurrence::Once, at);
        event.topic_id = Some("topic".into());
        events.add(event).unwrap();
    }
    let now = time("2026-03-01T09:00:02Z");
    let (first, next) = events.take_due(now);
    assert_eq!(ids(&first), ["event-2"]);
    assert_eq!(next, None);
    assert!(events.take_due(now).0.is_empty());
    drop(first);
    assert_eq!(ids(&events.take_due(now).0), ["event-1"]);
}

#[test]
fn only_so_many_run_at_a_time_and_none_is_forgotten() {
    let place = tempfile::tempdir().unwrap();
    let (events, _) = Events::open(place.path()).unwrap();
    let many = u32::try_from(MAX_EVENT_RUNS).unwrap() + 2;
    for number in 0..many {
        events.add(event(number, Recurrence::Once, NINE)).unwrap();
    }
    let (first, _) = events.take_due(time(NINE));
    assert_eq!(first.len(), MAX_EVENT_RUNS);
    drop(first);
    assert_eq!(events.take_due(time(NINE)).0.len(), 2);
}

#[test]
fn a_single_time_that_was_missed_is_made_up_for_within_a_day() {
    let place = tempfile::tempdir().unwrap();
    let (events, _) = Events::open(place.path()).unwrap();
    events.add(event(1, Recurrence::Once, NINE)).unwrap();
    events
        .add(event(2, Recurrence::Once, "2026-03-01T10:00:00Z"))
        .unwrap();
    let (taken, _) = events.take_due(time("2026-03-02T09:30:00Z"));
    let runs: Vec<bool> = taken.iter().map(|taken| taken.mark.is_some()).collect();
    assert_eq!(runs, [false, true]);
    let missed = events.get(&Principal::Super, "event-1").unwrap();
    assert_eq!(missed.status, Status::Cancelled);
    assert!(missed.last_error.unwrap().starts_with("missed"));
}

#[test]
fn after_a_restart_daily_times_wait_and_what_was_cut_short_is_not_begun_again() {
    let place = tempfile::tempdir().unwrap();
    let now = Timestamp::now();
    {
        let (events, _) = Events::open(place.path()).unwrap();
        events.add(event(1, Recurrence::Daily, NINE)).unwrap();
        let mut cut_short = event(2, Recurrence::Once, NINE);
        cut_short.next_run_at = None;
        events.add(cut_short).unwrap();
        let mut paused = event(3, Recurrence::Daily, NINE);
        (paused.status, paused.next_run_at) = (Status::Paused, None);
        events.add(paused).unwrap();
        events.add(event(4, Recurrence::Once, NINE)).unwrap();
    }
    std::fs::write(place.path().join("events/broken.json"), "{").unwrap();
    let (events, left_out) = Events::open(place.path()).unwrap();
    assert_eq!(left_out.len(), 1);
    let all = events.all(&Principal::Super);
    let statuses: Vec<Status> = all.iter().map(|event| event.status).collect();
    let (active, done) = (Status::Active, Status::Done);
    assert_eq!(statuses, [active, done, Status::Paused, active]);
    assert!(all[0].next_run_at.unwrap() > now);
    let why = all[1].last_error.as_deref();
    assert_eq!(why, Some("the hub ended before the run did"));
    assert_eq!(all[2].next_run_at, None);
    assert_eq!(all[3].next_run_at, Some(time(NINE)));
}

#[test]
fn an_event_runs_in_the_name_of_who_made_it() {
    let scope: Scope = "@me".parse().unwrap();
    for caller in [
        Principal::Super,
        Principal::Hub {
            scope: scope.clone(),
            manage: false,
            id: TokenId::from("event"),
        },
        Principal::Clip {
            alias: "todo".into(),
            owner: Some(scope.clone()),
        },
    ] {
        let mut event = event(1, Recurrence::Once, NINE);
        event.owner = caller.to_string();
        event.scope = match &caller {
            Principal::Clip { owner, .. } => owner.clone(),
            _ => None,
        };
        let read: Event = serde_json::from_str(&serde_json::to_string(&event).unwrap()).unwrap();
        assert_eq!(read.caller(), caller);
    }
}

#[test]
fn events_go_with_what_they_belong_to_and_old_ones_give_way() {
    let place = tempfile::tempdir().unwrap();
    let (events, _) = Events::open(place.path()).unwrap();
    for number in 0..3 {
        let mut event = event(number, Recurrence::Once, NINE);
        event.topic_id = Some(format!("topic-{number}"));
        events.add(event).unwrap();
    }
    let goes = |event: &Event| event.topic_id.as_deref() == Some("topic-1");
    events.forget(goes).unwrap();
    let files = std::fs::read_dir(place.path().join("events")).unwrap();
    assert_eq!(files.count(), 2);
    // An event that is removed during its run is not written again.
    events.note("event-1", |event| event.end(None)).unwrap();
    assert_eq!(events.all(&Principal::Super).len(), 2);
    assert!(events.get(&Principal::Guest, "event-0").is_err());

    let over = |event: &mut Event| event.status = Status::Done;
    events.note("event-2", over).unwrap();
    let filler = (3..).map(|number| event(number, Recurrence::Once, NINE));
    events.events().extend(filler.take(MOST - 2));
    events.add(event(5000, Recurrence::Once, NINE)).unwrap();
    assert!(events.get(&Principal::Super, "event-2").is_err());
    let full = events.add(event(5001, Recurrence::Once, NINE)).unwrap_err();
    assert_eq!(full.code, Code::ResourceExhausted);
}
