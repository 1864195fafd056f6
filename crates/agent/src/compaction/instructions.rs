//! The prompts for summaries.

use crate::command::BranchSummary;

/// The system prompt of a request for a summary.
pub(super) const SYSTEM_PROMPT: &str = "You write summaries of conversations between a user and a coding agent. \
You read the conversation you are given and write the summary you are asked for, and nothing else. \
You do not continue the conversation and you do not answer questions found in it.";

const SECTIONS: &str = "Write it in this form:

## Goal
What the user wants to achieve; several goals if there are several.

## Constraints & Preferences
- What the user demanded, forbade or prefers; `(none)` if nothing.

## Progress
### Done
- [x] Finished work and changes.

### In Progress
- [ ] What is being worked on now.

### Blocked
- What stands in the way, if anything.

## Key Decisions
- **Decision**: why it was made.

## Next Steps
1. What comes next, in order.

";

const CRITICAL_CONTEXT: &str = "## Critical Context
- Data, examples and references needed to go on; `(none)` if nothing.

";

const BREVITY: &str =
    "Be brief. Keep file paths, names of functions and error messages exactly as they are.";

/// Returns the prompt for a summary of whole turns.
pub(super) fn history(
    conversation: &str,
    previous_summary: Option<&str>,
    focus: Option<&str>,
) -> String {
    let mut prompt = format!("<conversation>\n{conversation}\n</conversation>\n\n");
    match previous_summary {
        Some(previous) => {
            prompt.push_str(&format!(
                "<previous-summary>\n{previous}\n</previous-summary>\n\n"
            ));
            prompt.push_str(
                "The conversation above goes on where the previous summary ends. Bring the summary up \
to date: keep everything that is still true, add what is new, move finished work to Done, revise the \
next steps, and leave out what no longer matters.\n\n",
            );
        }
        None => prompt.push_str(
            "Summarise the conversation above so that another model can take over the work from \
the summary alone.\n\n",
        ),
    }
    prompt.push_str(SECTIONS);
    prompt.push_str(CRITICAL_CONTEXT);
    prompt.push_str(BREVITY);
    if let Some(focus) = focus {
        prompt.push_str(&format!("\n\nAdditional focus: {focus}"));
    }
    prompt
}

/// Returns the prompt for a summary of the beginning of a turn whose end is kept.
pub(super) fn turn_prefix(conversation: &str) -> String {
    format!(
        "<conversation>\n{conversation}\n</conversation>\n\n\
This is the beginning of one long turn. Its end is kept as it is and follows your summary. Summarise \
the beginning so that the end can be understood:

## Original Request
What the user asked for in this turn.

## Early Progress
- What was decided and done.

## Context for What Follows
- What one must know to understand the part that is kept.

Be brief."
    )
}

/// Returns the prompt for a summary of an abandoned branch.
pub(super) fn branch(conversation: &str, wanted: &BranchSummary) -> String {
    let mut prompt = format!("<conversation>\n{conversation}\n</conversation>\n\n");
    match wanted {
        BranchSummary::Replaced(instructions) => prompt.push_str(instructions),
        BranchSummary::Default | BranchSummary::Focused(_) => {
            prompt.push_str(
                "Summarise this branch of a conversation. The user returns to an earlier point and \
may need to know what was tried here and what came of it.\n\n",
            );
            prompt.push_str(SECTIONS);
            prompt.push_str(BREVITY);
        }
    }
    if let BranchSummary::Focused(focus) = wanted {
        prompt.push_str(&format!("\n\nAdditional focus: {focus}"));
    }
    prompt
}
