//! The user's side of a sign-in: what the program shows, and what it asks.

use futures_util::future::BoxFuture;

/// A code that the user enters on another device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceCode {
    /// The code to enter.
    pub user_code: String,
    /// The page on which it is entered.
    pub verification_uri: String,
    /// Seconds until the code expires, if they are known.
    pub expires_in: Option<u64>,
}

/// A message to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginMessage {
    /// The address to open in a browser.
    Open {
        /// The address.
        url: String,
        /// Advice that belongs to it.
        instructions: Option<String>,
    },
    /// The code to enter on another device.
    Device(DeviceCode),
    /// The sign-in makes progress.
    Progress(String),
}

/// One answer of [`LoginQuestion::Select`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The answer that is returned.
    pub id: String,
    /// The text that is shown.
    pub label: String,
}

/// A question to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginQuestion {
    /// A text. Hidden texts are not shown while they are typed.
    Text {
        /// The question.
        message: String,
        /// An example.
        placeholder: Option<String>,
        /// The text is a secret.
        hidden: bool,
    },
    /// One of several answers.
    Select {
        /// The question.
        message: String,
        /// The answers.
        choices: Vec<Choice>,
    },
    /// The address, or the code in it, to which a browser on another machine returned.
    PastedAnswer {
        /// The question.
        message: String,
        /// The beginning of the address.
        placeholder: Option<String>,
    },
}

/// Talks to the user during a sign-in.
pub trait LoginConversation: Send + Sync {
    /// Shows a message.
    fn show(&self, message: LoginMessage);

    /// Asks a question; `None` if the user cancels. Dropping the future withdraws the question. A program without a user
    /// never answers [`LoginQuestion::PastedAnswer`].
    fn ask(&self, question: LoginQuestion) -> BoxFuture<'_, Option<String>>;
}

/// A conversation without a user: every question is cancelled, except the one that runs beside a callback.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl LoginConversation for Silent {
    fn show(&self, _message: LoginMessage) {}

    fn ask(&self, question: LoginQuestion) -> BoxFuture<'_, Option<String>> {
        match question {
            LoginQuestion::PastedAnswer { .. } => Box::pin(std::future::pending()),
            _ => Box::pin(std::future::ready(None)),
        }
    }
}

/// Asks the user to paste the answer of a browser on another machine; never returns if nothing is pasted.
pub(crate) async fn pasted(
    conversation: &dyn LoginConversation,
    placeholder: &str,
) -> Option<String> {
    let question = LoginQuestion::PastedAnswer {
        message:
            "If the browser runs on another machine, paste the address that it shows at the end"
                .to_owned(),
        placeholder: Some(placeholder.to_owned()),
    };
    conversation.ask(question).await
}
