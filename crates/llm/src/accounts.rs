//! Signs users in to providers and out again, and stores their keys: the part that the command line and the chat share.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::StreamExt;
use pinion_logins::{
    Choice, Login, LoginConversation, LoginError, LoginMessage, LoginQuestion, RequestAccess,
    SignIn, not_offered,
};
use pinion_message::{Content, Mask, Message, Secret, StopReason, UserMessage, now_millis};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::credentials::{Environment, key_variables};
use crate::{
    Provider, Registry, Request, RequestOptions, StreamEvent, default_model, is_supported_api,
};

/// The output cap of the request that tests a key.
const TEST_TOKENS: u64 = 64;

/// A part of an entry that the user enters.
struct Field {
    /// `key`, or the name of a variable in `env`.
    member: &'static str,
    question: &'static str,
    hidden: bool,
}

/// One way to configure a provider with a key or with variables.
struct Setup {
    id: &'static str,
    label: &'static str,
    fields: &'static [Field],
}

const fn field(member: &'static str, question: &'static str) -> Field {
    Field {
        member,
        question,
        hidden: false,
    }
}

const KEY: Field = Field {
    member: "key",
    question: "API key",
    hidden: true,
};

const BEDROCK: &[Setup] = &[
    Setup {
        id: "key",
        label: "Bearer token (Amazon Bedrock API key)",
        fields: &[KEY],
    },
    Setup {
        id: "profile",
        label: "AWS profile",
        fields: &[field("AWS_PROFILE", "Name of the AWS profile")],
    },
    Setup {
        id: "chain",
        label: "Credentials that this machine already has",
        fields: &[],
    },
];

const VERTEX: &[Setup] = &[
    Setup {
        id: "key",
        label: "API key",
        fields: &[KEY],
    },
    Setup {
        id: "adc",
        label: "Application default credentials (gcloud)",
        fields: &[
            field("GOOGLE_CLOUD_PROJECT", "Google Cloud project"),
            field("GOOGLE_CLOUD_LOCATION", "Location, such as us-central1"),
        ],
    },
    Setup {
        id: "service-account",
        label: "Service account",
        fields: &[
            field("GOOGLE_CLOUD_PROJECT", "Google Cloud project"),
            field("GOOGLE_CLOUD_LOCATION", "Location, such as us-central1"),
            field(
                "GOOGLE_APPLICATION_CREDENTIALS",
                "File with the key of the service account",
            ),
        ],
    },
];

const CLOUDFLARE_WORKERS: &[Setup] = &[Setup {
    id: "key",
    label: "API key",
    fields: &[KEY, field("CLOUDFLARE_ACCOUNT_ID", "Cloudflare account id")],
}];

const CLOUDFLARE_GATEWAY: &[Setup] = &[Setup {
    id: "key",
    label: "API key",
    fields: &[
        KEY,
        field("CLOUDFLARE_ACCOUNT_ID", "Cloudflare account id"),
        field("CLOUDFLARE_GATEWAY_ID", "Cloudflare gateway id"),
    ],
}];

const PLAIN_KEY: &[Setup] = &[Setup {
    id: "key",
    label: "API key",
    fields: &[KEY],
}];

fn setups(provider: &str) -> &'static [Setup] {
    match provider {
        "amazon-bedrock" => BEDROCK,
        "google-vertex" => VERTEX,
        "cloudflare-workers-ai" => CLOUDFLARE_WORKERS,
        "cloudflare-ai-gateway" => CLOUDFLARE_GATEWAY,
        // It takes logins only, and the others have no server of their own.
        "openai-codex" | "offline" | "cassette" => &[],
        _ => PLAIN_KEY,
    }
}

/// The ways that a sign-in may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignInWay {
    /// The user chooses, if there are several.
    Any,
    /// A key or variables, never a login.
    Key,
}

/// A sign-in to a provider.
pub struct AccountSignIn<'a> {
    /// The provider.
    pub provider: &'a str,
    /// Talks to the user.
    pub conversation: &'a dyn LoginConversation,
    /// The identity of this installation, for providers that require one.
    pub device_id: &'a str,
    /// The ways that it may take.
    pub way: SignInWay,
    /// Sends one request with the new credential before it is stored.
    pub test_with: Option<&'a dyn Provider>,
}

impl std::fmt::Debug for AccountSignIn<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccountSignIn")
            .field("provider", &self.provider)
            .field("way", &self.way)
            .finish_non_exhaustive()
    }
}

/// The kind of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccountKind {
    /// A login in `auth.json`.
    Login,
    /// A key or variables in `auth.json`.
    Key,
    /// Variables of the process.
    Environment,
}

impl AccountKind {
    /// A stable word for programs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Login => "login",
            Self::Key => "key",
            Self::Environment => "environment",
        }
    }
}

/// A credential that is configured for a provider.
#[derive(Debug, Clone)]
pub struct Account {
    /// The provider.
    pub provider: String,
    /// The kind of the credential.
    pub kind: AccountKind,
    /// It can be used now, or after a renewal that pinion makes.
    pub usable: bool,
    /// The end of a login, in milliseconds since 1970; `None` if it has none.
    pub expires: Option<i64>,
    /// pinion renews it.
    pub renewed: bool,
    /// The variables that are set, for an account of the environment.
    pub variables: Vec<&'static str>,
}

impl Registry {
    /// Every configured credential: those of `auth.json` in the order of the providers, then those of the environment.
    pub fn accounts(&self) -> Vec<Account> {
        let mut accounts = Vec::new();
        let stored = self.stored_providers();
        for provider in &stored {
            let login = self.stored_login(provider);
            let expires = login.as_ref().map(Login::expires);
            accounts.push(Account {
                kind: if login.is_some() {
                    AccountKind::Login
                } else {
                    AccountKind::Key
                },
                usable: self.has_credentials(provider),
                // Logins without an end are stored with a number that is far away.
                expires: expires.filter(|&expires| expires < (1 << 53) - 1),
                renewed: login.is_some_and(|login| !login.refresh().is_empty())
                    && self.login_provider(provider).is_some(),
                provider: provider.clone(),
                variables: Vec::new(),
            });
        }
        let environment = self.environment("");
        for provider in self.providers() {
            let is_stored = stored.iter().any(|known| known == provider);
            if is_stored || !environment.has_credentials(provider) {
                continue;
            }
            let set = |name: &&&str| environment.get(name).is_some();
            accounts.push(Account {
                provider: provider.to_owned(),
                kind: AccountKind::Environment,
                usable: true,
                expires: None,
                renewed: false,
                variables: key_variables(provider)
                    .iter()
                    .filter(set)
                    .copied()
                    .collect(),
            });
        }
        accounts
    }

    /// The providers that [`Registry::sign_in`] knows: those with a sign-in first.
    pub fn sign_in_choices(&self) -> Vec<Choice> {
        let mut choices = Vec::new();
        let mut keys = Vec::new();
        for provider in self.providers() {
            let way = self
                .login_provider(provider)
                .filter(|way| way.can_sign_in());
            let choice = |label: String| Choice {
                id: provider.to_owned(),
                label,
            };
            match way {
                Some(way) => choices.push(choice(format!("{provider}: {}", way.name()))),
                None if setups(provider).is_empty() => {}
                None => keys.push(choice(format!("{provider}: API key"))),
            }
        }
        choices.extend(keys);
        choices
    }

    /// Signs in to a provider, or asks for its key, and stores the result. Returns a sentence about it.
    ///
    /// # Errors
    ///
    /// When the user cancels or the provider refuses. Nothing is stored then.
    pub async fn sign_in(&self, sign_in: AccountSignIn<'_>) -> Result<String, LoginError> {
        let provider = sign_in.provider;
        let way = self.login_provider(provider);
        let way = way.filter(|way| way.can_sign_in() && sign_in.way == SignInWay::Any);
        let is_known = self.providers().contains(&provider);
        let setups = if is_known { setups(provider) } else { &[] };
        if sign_in.way == SignInWay::Any
            && !setups.is_empty()
            && let Some(why) = not_offered(provider)
        {
            let why = LoginMessage::Progress(why.to_owned());
            sign_in.conversation.show(why);
        }
        let mut choices: Vec<Choice> = Vec::new();
        choices.extend(way.as_ref().map(|way| Choice {
            id: "login".to_owned(),
            label: format!("Sign in: {}", way.name()),
        }));
        choices.extend(setups.iter().map(|setup| Choice {
            id: setup.id.to_owned(),
            label: setup.label.to_owned(),
        }));
        let chosen = match choices.as_slice() {
            [] => {
                let why = not_offered(provider).map(str::to_owned);
                let why =
                    why.unwrap_or_else(|| format!("{provider} needs neither a login nor a key."));
                return Err(LoginError::Failed(why));
            }
            [only] => only.id.clone(),
            _ => {
                let question = LoginQuestion::Select {
                    message: format!("Credential for {provider}"),
                    choices,
                };
                let answer = sign_in.conversation.ask(question).await;
                answer.ok_or(LoginError::Cancelled)?
            }
        };
        if let Some(way) = way.filter(|_| chosen == "login") {
            let previous = self.stored_login(provider);
            let flow = SignIn {
                conversation: sign_in.conversation,
                device_id: sign_in.device_id,
                previous: previous.as_ref(),
            };
            let login = way.sign_in(flow).await?;
            for secret in login.secrets() {
                Mask::of_process().learn(&secret);
            }
            if let Some(tester) = sign_in.test_with {
                let access = way.access(&login, None).await?;
                self.test(provider, access, BTreeMap::new(), tester).await?;
            }
            self.store_beside(provider, login.entry()).await?;
            return Ok(format!("Signed in to {provider}."));
        }
        let setup = setups.iter().find(|setup| setup.id == chosen);
        let setup =
            setup.ok_or_else(|| LoginError::Failed(format!("unknown choice {chosen:?}")))?;
        self.set_up(&sign_in, setup).await
    }

    /// Asks for the parts of an entry and stores it.
    async fn set_up(
        &self,
        sign_in: &AccountSignIn<'_>,
        setup: &Setup,
    ) -> Result<String, LoginError> {
        let provider = sign_in.provider;
        let mut access = RequestAccess::default();
        let mut env: BTreeMap<String, Secret> = BTreeMap::new();
        let mut entry = json!({"type": "api_key"});
        for field in setup.fields {
            let question = LoginQuestion::Text {
                message: format!("{} for {provider}", field.question),
                placeholder: None,
                hidden: field.hidden,
            };
            let answer = sign_in
                .conversation
                .ask(question)
                .await
                .ok_or(LoginError::Cancelled)?;
            let answer = answer.trim();
            if answer.is_empty() {
                let what = field.question;
                return Err(LoginError::Failed(format!(
                    "{what} is missing; nothing was stored."
                )));
            }
            if answer.chars().any(char::is_control) {
                let what = field.question;
                return Err(LoginError::Failed(format!(
                    "{what} contains control characters; nothing was stored."
                )));
            }
            if field.hidden {
                Mask::of_process().learn(&Secret::from(answer));
            }
            match field.member {
                "key" => {
                    // A stored text may name a variable or a command; what the user typed is the key itself.
                    let literal = answer.replace('$', "$$");
                    let literal = match literal.strip_prefix('!') {
                        Some(rest) => format!("$!{rest}"),
                        None => literal,
                    };
                    entry["key"] = literal.into();
                    access.api_key = Some(Secret::from(answer));
                }
                name => {
                    entry["env"][name] = answer.into();
                    env.insert(name.to_owned(), Secret::from(answer));
                }
            }
        }
        if let Some(tester) = sign_in.test_with {
            if access.api_key.is_none() {
                let why = "only keys and logins can be tested; store it without a test and send a prompt.";
                return Err(LoginError::Failed(why.to_owned()));
            }
            self.test(provider, access, env, tester).await?;
        }
        self.store_beside(provider, entry).await?;
        let what = if setup.fields.iter().any(|field| field.member == "key") {
            "key"
        } else {
            "configuration"
        };
        Ok(format!("Stored the {what} of {provider}."))
    }

    async fn store_beside(&self, provider: &str, entry: Value) -> Result<(), LoginError> {
        let (registry, name) = (self.clone(), provider.to_owned());
        let stored = tokio::task::spawn_blocking(move || registry.store_entry(&name, entry)).await;
        let failed = |error: String| {
            LoginError::Failed(format!(
                "Credential store modify failed for {provider}: {error}"
            ))
        };
        let stored = stored.map_err(|error| failed(error.to_string()))?;
        stored.map_err(|error| failed(error.to_string()))
    }

    /// Sends one short request with a credential that is not stored yet.
    async fn test(
        &self,
        provider: &str,
        access: RequestAccess,
        env: BTreeMap<String, Secret>,
        tester: &dyn Provider,
    ) -> Result<(), LoginError> {
        let model = default_model(self, provider).filter(|model| is_supported_api(&model.api));
        let Some(model) = model else {
            let why = format!("{provider} has no model to test the key with; nothing was stored.");
            return Err(LoginError::Failed(why));
        };
        use secrecy::ExposeSecret;
        let headers = access.headers.iter();
        let headers = headers.map(|(name, value)| (name.clone(), value.expose_secret().to_owned()));
        let message = Message::User(UserMessage {
            content: Content::Text("Reply with the word ok.".to_owned()),
            timestamp: now_millis(),
            attachments: None,
        });
        let environment = self.environment(provider);
        let request = Request {
            options: RequestOptions {
                api_key: access.api_key,
                headers: headers.collect(),
                base_url: access.base_url,
                environment: Environment::Overlay(env, Box::new(environment)),
                max_tokens: Some(TEST_TOKENS),
                ..RequestOptions::default()
            },
            model: Arc::clone(&model),
            system_prompt: None,
            messages: vec![Arc::new(message)],
            tools: Arc::new([]),
            cancel: CancellationToken::new(),
        };
        let mut events = tester.stream(request);
        while let Some(event) = events.next().await {
            if let StreamEvent::End(message) = event {
                if message.stop_reason != StopReason::Error {
                    return Ok(());
                }
                let reason = message.error_message.unwrap_or_default();
                let reason = Mask::of_process().text(&reason).into_owned();
                return Err(LoginError::Failed(format!(
                    "{provider} refused a request to {} with it: {reason}\nNothing was stored.",
                    model.id
                )));
            }
        }
        Err(LoginError::Failed(format!(
            "{provider} gave no answer; nothing was stored."
        )))
    }

    /// Removes the stored credential of a provider. Returns a sentence about it; environment and `models.json` stay.
    ///
    /// # Errors
    ///
    /// When the file cannot be changed.
    pub fn sign_out(&self, provider: &str) -> Result<String, LoginError> {
        let removed = self.remove_entry(provider).map_err(|error| {
            LoginError::Failed(format!(
                "Credential store delete failed for {provider}: {error}"
            ))
        })?;
        let mut text = if removed {
            format!("Removed the stored credential of {provider}.")
        } else {
            format!("There is no stored credential of {provider}.")
        };
        if self.has_credentials(provider) {
            text += " It still has one from the environment or from models.json.";
        }
        Ok(text)
    }

    /// The providers of `auth.json`, in the order of [`Registry::providers`], then unknown ones.
    pub fn stored_providers(&self) -> Vec<String> {
        let stored = self.stored_names();
        let known = self.providers();
        let mut names: Vec<String> = known
            .iter()
            .filter(|name| stored.iter().any(|stored| stored == *name))
            .map(|name| (*name).to_owned())
            .collect();
        let mut others: Vec<String> = stored
            .into_iter()
            .filter(|name| !known.contains(&name.as_str()))
            .collect();
        others.sort();
        names.append(&mut others);
        names
    }
}
