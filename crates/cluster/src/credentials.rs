//! The credentials of a program at the servers: a file of NATS, or a name and a password.

use std::fmt;
use std::path::Path;

use pinion_status::Failure;

use crate::servers::Login;

/// The largest file of credentials, in bytes.
const MAX_FILE_SIZE: u64 = 64 << 10;
const JWT: [&str; 2] = [
    "-----BEGIN NATS USER JWT-----",
    "------END NATS USER JWT------",
];
const SEED: [&str; 2] = [
    "-----BEGIN USER NKEY SEED-----",
    "------END USER NKEY SEED------",
];

/// A program's proof of its identity.
#[derive(Clone)]
pub enum Credentials {
    None,
    /// A name and a password.
    Login(Login),
    /// The seed of an nkey.
    Seed(Seed),
    /// A `.creds` file: a JWT and the seed that signs for it.
    Jwt {
        jwt: String,
        seed: Seed,
    },
}

/// The private half of an nkey.
#[derive(Clone)]
pub struct Seed(String);

impl fmt::Debug for Seed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Seed")
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::None => "None",
            Self::Login(_) => "Login",
            Self::Seed(_) => "Seed",
            Self::Jwt { .. } => "Jwt",
        })
    }
}

impl Credentials {
    /// Reads a file: `.creds` with JWT and seed, the seed of an nkey, or one line `user:password`.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let bytes = pinion_files::read_named(path, MAX_FILE_SIZE)
            .map_err(|error| Failure::io(path.display(), &error))?;
        let text = String::from_utf8(bytes).map_err(|_| wrong_file(path, "it is not UTF-8"))?;
        Self::parse(&text).map_err(|why| wrong_file(path, why))
    }

    fn parse(text: &str) -> Result<Self, &'static str> {
        if let Some(jwt) = between(text, JWT) {
            let seed = between(text, SEED).ok_or("the seed behind the JWT is missing")?;
            let (jwt, seed) = (jwt.to_owned(), Seed::parse(seed)?);
            return Ok(Self::Jwt { jwt, seed });
        }
        let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
        let mut seeds = lines().filter(|line| line.starts_with("SU"));
        if let Some(seed) = seeds.next() {
            return Ok(Self::Seed(Seed::parse(seed)?));
        }
        let mut lines = lines();
        match (
            lines.next().and_then(|line| line.split_once(':')),
            lines.next(),
        ) {
            (Some((user, password)), None) if !user.is_empty() => Ok(Self::Login(Login {
                user: user.to_owned(),
                password: password.to_owned(),
            })),
            _ => {
                Err("it is neither a .creds file nor the seed of an nkey nor a line user:password")
            }
        }
    }

    /// Returns what the library sends in answer to a server's nonce.
    pub(crate) fn answer(&self, nonce: &[u8]) -> Result<async_nats::Auth, async_nats::AuthError> {
        let mut auth = async_nats::Auth::new();
        match self {
            Self::None => {}
            Self::Login(login) => {
                auth.username = Some(login.user.clone());
                auth.password = Some(login.password.clone());
            }
            Self::Seed(seed) => {
                let (public, signature) = seed.sign(nonce)?;
                auth.nkey = Some(public);
                auth.signature = Some(signature);
            }
            Self::Jwt { jwt, seed } => {
                let (_, signature) = seed.sign(nonce)?;
                auth.jwt = Some(jwt.clone());
                auth.signature = Some(signature);
            }
        }
        Ok(auth)
    }
}

impl Seed {
    fn parse(text: &str) -> Result<Self, &'static str> {
        match nkeys::KeyPair::from_seed(text) {
            Ok(_) => Ok(Self(text.to_owned())),
            Err(_) => Err("the seed of its nkey is damaged"),
        }
    }

    fn sign(&self, nonce: &[u8]) -> Result<(String, Vec<u8>), async_nats::AuthError> {
        let signed = nkeys::KeyPair::from_seed(&self.0)
            .and_then(|pair| Ok((pair.public_key(), pair.sign(nonce)?)));
        signed.map_err(|error| async_nats::AuthError::new(error.to_string()))
    }
}

fn between<'a>(text: &'a str, [open, close]: [&str; 2]) -> Option<&'a str> {
    let (_, rest) = text.split_once(open)?;
    let (inner, _) = rest.split_once(close)?;
    Some(inner.trim())
}

fn wrong_file(path: &Path, why: &str) -> Failure {
    let path = path.display();
    Failure::invalid(format!("{path} has no credentials of NATS: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_credentials_are_recognised_by_their_content() {
        let pair = nkeys::KeyPair::new_user();
        let seed = pair.seed().unwrap();
        let creds = format!(
            "{}\nabc.def\n{}\n\nwords\n{}\n{seed}\n{}\n",
            JWT[0], JWT[1], SEED[0], SEED[1]
        );
        assert!(
            matches!(Credentials::parse(&creds), Ok(Credentials::Jwt { jwt, .. }) if jwt == "abc.def")
        );
        let answered = Credentials::parse(&seed).unwrap().answer(b"nonce").unwrap();
        assert_eq!(answered.nkey, Some(pair.public_key()));
        pair.verify(b"nonce", &answered.signature.unwrap()).unwrap();
        assert!(matches!(
            Credentials::parse("ann:secret\n"),
            Ok(Credentials::Login(_))
        ));
        for bad in ["", "ann", ":x", "a:b\nc:d", "SUBROKEN", JWT[0]] {
            assert!(Credentials::parse(bad).is_err(), "{bad}");
        }
    }
}
