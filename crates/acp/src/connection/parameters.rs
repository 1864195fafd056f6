//! Changes of the options of a session.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Shared;
use crate::error::AcpError;
use crate::host::SessionHost;
use crate::rpc::Params;
use crate::session::OpenSession;

/// A requested change of an option.
pub(super) struct Change {
    session: Arc<OpenSession>,
    form: ChangeForm,
}

/// The request that makes a change; it decides about the answer and about what else is sent.
enum ChangeForm {
    Option { id: String, value: String },
    Mode(String),
    Model(String),
}

impl<H: SessionHost> Shared<H> {
    /// Reads a request.
    pub(super) fn change(&self, method: &str, params: &Params) -> Result<Change, AcpError> {
        let text = |name: &str| params.text(name).map(str::to_owned);
        let id = text("sessionId")?;
        let form = match method {
            "session/set_mode" => ChangeForm::Mode(text("modeId")?),
            "session/set_model" => ChangeForm::Model(text("modelId")?),
            _ => ChangeForm::Option {
                id: text("configId")?,
                value: text("value")?,
            },
        };
        let session = self.session(&id)?;
        Ok(Change { session, form })
    }
}

impl Change {
    /// Makes the change and answers the request.
    pub async fn make<H: SessionHost>(self, request: Value, shared: Arc<Shared<H>>) {
        let Self { session, form } = self;
        let order = session.order();
        let _order = order.lock().await;
        let (changed, answer) = match &form {
            ChangeForm::Option { id, value } => {
                let changed = session.set_option(id, value).await;
                (changed, json!({"configOptions": session.options()}))
            }
            ChangeForm::Mode(mode) => (session.set_mode(mode, "mode"), json!({})),
            ChangeForm::Model(model) => (session.set_option("model", model).await, json!({})),
        };
        let is_changed = changed.is_ok();
        shared.common.respond(&request, &changed.map(|()| answer));
        if !is_changed {
            return;
        }
        match form {
            ChangeForm::Option { id, .. } if id == "mode" => session.send_mode(),
            ChangeForm::Option { .. } => {}
            ChangeForm::Mode(_) | ChangeForm::Model(_) => session.send_options(),
        }
    }
}
