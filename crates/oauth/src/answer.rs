//! The answer of an authorization server, as the browser carries it back or the user pastes it.

use url::Url;
use url::form_urlencoded;

/// The parameters of an answer.
#[derive(Clone, PartialEq, Eq)]
pub struct AuthorizationAnswer {
    /// The code to exchange for tokens.
    pub code: String,
    /// The state of the request; `None` if the answer has none.
    pub state: Option<String>,
    /// The client that the server issued for this sign-in.
    pub client_id: Option<String>,
}

/// The code is a secret.
impl std::fmt::Debug for AuthorizationAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthorizationAnswer")
            .finish_non_exhaustive()
    }
}

impl AuthorizationAnswer {
    /// Reads the parameters of the address to which the browser returned.
    ///
    /// # Errors
    ///
    /// When the server refused the request or there is no code. The error completes "the sign-in …".
    pub fn from_url(url: &Url) -> Result<Self, String> {
        let pairs = url.query_pairs().into_owned().collect::<Vec<_>>();
        Self::from_pairs(&pairs)
    }

    fn from_pairs(pairs: &[(String, String)]) -> Result<Self, String> {
        let value = |name: &str| {
            let found = pairs.iter().find(|(known, _)| known == name);
            found
                .map(|(_, value)| value.clone())
                .filter(|value| !value.is_empty())
        };
        if let Some(error) = value("error") {
            let text = value("error_description").unwrap_or(error);
            return Err(format!(
                "was refused: {}",
                pinion_text::harmless_line(&text)
            ));
        }
        Ok(Self {
            code: value("code").ok_or("has no code in its answer")?,
            state: value("state"),
            client_id: value("client_id"),
        })
    }

    /// Fails if the answer has a state that belongs to another request.
    ///
    /// # Errors
    ///
    /// The error completes "the sign-in …".
    pub fn check_state(&self, expected: &str) -> Result<(), String> {
        match &self.state {
            Some(state) if state != expected => {
                Err("got an answer that belongs to another sign-in; try again".into())
            }
            _ => Ok(()),
        }
    }
}

/// Reads an answer that the user pasted: the whole address, `code#state`, `code=…&state=…` or the bare code.
///
/// # Errors
///
/// When it contains no code. The error completes "the sign-in …".
pub fn pasted_answer(text: &str) -> Result<AuthorizationAnswer, String> {
    let text = text.trim();
    if let Ok(url) = Url::parse(text)
        && matches!(url.scheme(), "http" | "https")
    {
        return AuthorizationAnswer::from_url(&url);
    }
    if text.contains("code=") {
        let pairs: Vec<(String, String)> =
            form_urlencoded::parse(text.trim_start_matches('?').as_bytes())
                .into_owned()
                .collect();
        return AuthorizationAnswer::from_pairs(&pairs);
    }
    let (code, state) = match text.split_once('#') {
        Some((code, state)) => (
            code,
            Some(state.to_owned()).filter(|state| !state.is_empty()),
        ),
        None => (text, None),
    };
    if code.is_empty() || code.contains(char::is_whitespace) {
        return Err(
            "has no code in the pasted text; paste the whole address of the browser".into(),
        );
    }
    Ok(AuthorizationAnswer {
        code: code.to_owned(),
        state,
        client_id: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_pasted_answer_is_read() {
        for (text, code, state) in [
            ("http://127.0.0.1:1/cb?code=C&state=S", "C", Some("S")),
            (" code=C&state=S \n", "C", Some("S")),
            ("?code=C%20D", "C D", None),
            ("C#S", "C", Some("S")),
            ("C", "C", None),
            ("C#", "C", None),
        ] {
            let answer = pasted_answer(text).unwrap();
            assert_eq!(
                (answer.code.as_str(), answer.state.as_deref()),
                (code, state),
                "{text}"
            );
        }
        for text in ["", "two words", "http://127.0.0.1:1/cb?state=S", "code="] {
            let error = pasted_answer(text).unwrap_err();
            assert!(error.contains("has no code"), "{text}: {error}");
        }
        let refused =
            pasted_answer("http://x/cb?error=access_denied&error_description=No%0Aaccess")
                .unwrap_err();
        assert!(
            refused.starts_with("was refused: No") && !refused.contains('\n'),
            "{refused}"
        );
    }

    #[test]
    fn a_state_of_another_request_is_refused_and_an_absent_one_is_not() {
        let answer = |text| pasted_answer(text).unwrap();
        assert!(answer("C#S").check_state("S").is_ok());
        assert!(answer("C").check_state("S").is_ok());
        assert!(answer("C#T").check_state("S").is_err());
        assert!(
            !format!("{:?}", answer("C#T")).contains('C'),
            "a code is a secret"
        );
    }
}
