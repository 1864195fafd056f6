//! Messages that extensions send from their handlers, and their places in the run.

use serde_json::Value;

use crate::stage::Stage;

/// `/at <event> <how>`: the next handler of the event sends a message.
const SAYS: &str = r#"
  const SAYINGS = {
    user: (pi) => pi.sendUserMessage("SAY user"),
    steer: (pi) => pi.sendUserMessage("SAY steer", { deliverAs: "steer" }),
    followUp: (pi) => pi.sendUserMessage("SAY followUp", { deliverAs: "followUp" }),
    message: (pi) => pi.sendMessage({ customType: "x", content: "SAY message", display: true }),
    trigger: (pi) => pi.sendMessage({ customType: "x", content: "SAY trigger", display: true }, { triggerTurn: true }),
    after: (pi) => pi.sendMessage({ customType: "x", content: "SAY after", display: true }, { deliverAs: "followUp", triggerTurn: true }),
  };
  export default (pi) => {
    let when, how;
    pi.registerCommand("at", { handler: (words) => { [when, how] = words.split(" "); } });
    for (const name of ["before_agent_start", "agent_start", "turn_start", "message_start", "message_end", "turn_end", "agent_end"]) {
      pi.on(name, (event) => {
        if (name !== when || (event.message && event.message.role !== "assistant")) return;
        when = undefined;
        SAYINGS[how](pi);
      });
    }
  };"#;

/// Returns a short form of the client's lines of one run in which a message is sent at `event`.
async fn said_at(event: &str, how: &str) -> String {
    let mut stage = Stage::new(SAYS).await;
    stage.say(&format!("/at {event} {how}")).await;
    in_short(&stage.live("SAY q").await)
}

fn in_short(lines: &[Value]) -> String {
    let words = lines.iter().filter_map(|line| match line {
        Value::String(event) => Some(event.replace("agent_", "run_")),
        line if line["error"].is_string() => Some(format!("refused:{}", line["event"].as_str()?)),
        line if line["queued"].is_array() => Some(format!("queued:{}", line["queued"])),
        line => {
            let role = line["message_end"][0].as_str()?;
            let text = line["message_end"][1].as_str()?;
            Some(format!("{role}:{}", text.trim_start_matches("SAY ")))
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn messages_before_the_first_request_are_part_of_it() {
    for event in ["agent_start", "turn_start"] {
        let lines = said_at(event, "message").await;
        let expected =
            "run_start turn_start user:q custom:message assistant:message turn_end run_end";
        assert_eq!(lines, expected, "{event}");
        let lines = said_at(event, "after").await;
        let expected = "run_start turn_start user:q assistant:q turn_end \
                        turn_start custom:after assistant:after turn_end run_end";
        assert_eq!(lines, expected, "{event}");
    }
    assert_eq!(
        said_at("turn_start", "steer").await,
        "run_start queued:[1,0] turn_start user:q queued:[0,0] user:steer assistant:steer \
         turn_end run_end"
    );
}

#[tokio::test]
async fn a_message_at_the_end_of_a_turn_continues_the_run() {
    for event in ["message_end", "turn_end"] {
        for how in ["message", "trigger", "after"] {
            let expected = format!(
                "run_start turn_start user:q assistant:q turn_end \
                 turn_start custom:{how} assistant:{how} turn_end run_end"
            );
            assert_eq!(said_at(event, how).await, expected, "{event}");
        }
    }
    for (how, queued) in [("steer", "[1,0]"), ("followUp", "[0,1]")] {
        let expected = format!(
            "run_start turn_start user:q assistant:q queued:{queued} turn_end \
             turn_start queued:[0,0] user:{how} assistant:{how} turn_end run_end"
        );
        assert_eq!(said_at("turn_end", how).await, expected);
    }
}

#[tokio::test]
async fn user_messages_need_a_delivery_mode_until_the_run_ends() {
    let refused = "refused:send_user_message";
    assert_eq!(
        said_at("message_end", "user").await,
        format!("run_start turn_start user:q {refused} assistant:q turn_end run_end")
    );
    assert_eq!(
        said_at("turn_end", "user").await,
        format!("run_start turn_start user:q assistant:q {refused} turn_end run_end")
    );
    assert_eq!(
        said_at("agent_end", "user").await,
        format!("run_start turn_start user:q assistant:q turn_end {refused} run_end")
    );
}

#[tokio::test]
async fn messages_queued_after_the_run_wait_for_the_next_one() {
    for (how, queued) in [("steer", "[1,0]"), ("followUp", "[0,1]")] {
        let mut stage = Stage::new(SAYS).await;
        stage.say(&format!("/at agent_end {how}")).await;
        assert_eq!(
            in_short(&stage.live("SAY q").await),
            format!("run_start turn_start user:q assistant:q turn_end queued:{queued} run_end")
        );
        let next = in_short(&stage.live("SAY r").await);
        assert!(next.contains(&format!("user:{how}")), "{next}");
    }
}

#[tokio::test]
async fn messages_before_a_run_are_not_part_of_it() {
    assert_eq!(
        said_at("before_agent_start", "message").await,
        "custom:message run_start turn_start user:q assistant:q turn_end run_end"
    );
}
