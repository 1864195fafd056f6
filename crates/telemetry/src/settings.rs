//! The settings of traces: the standard variables of OpenTelemetry, and no others.

use std::time::Duration;

use pinion_text::percent;

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
const DEFAULT_SERVICE: &str = "pinion";
/// The only protocol that is spoken.
const PROTOCOL: &str = "http/protobuf";

/// The decision which traces are recorded. It is made at the root of a trace; its other spans follow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sampler {
    /// Every trace.
    AlwaysOn,
    /// No trace.
    AlwaysOff,
    /// This share of the traces, between 0 and 1.
    Ratio(f64),
}

impl Sampler {
    /// Decides about the root of a trace.
    pub(crate) fn samples(self, trace: &[u8; 16]) -> bool {
        match self {
            Self::AlwaysOn => true,
            Self::AlwaysOff => false,
            Self::Ratio(share) => {
                let random = trace[8..]
                    .iter()
                    .fold(0u64, |sum, &it| sum << 8 | u64::from(it));
                // The upper bits decide, as in other implementations, so that services agree about a trace.
                ((random >> 11) as f64) < share * (1u64 << 53) as f64
            }
        }
    }
}

/// The receiver of spans, and the description of this program that it gets.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The address that spans are posted to.
    pub endpoint: String,
    /// Further headers of each request; they may contain keys.
    pub headers: Vec<(String, String)>,
    /// Time limit of one request.
    pub timeout: Duration,
    /// Attributes of this program.
    pub resource: Vec<(String, String)>,
    pub sampler: Sampler,
}

/// The reason why traces stay off although an endpoint is set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    #[error(
        "{variable} is {value:?}, which is not an http or https address; write it like \"http://127.0.0.1:4318\""
    )]
    Endpoint {
        variable: &'static str,
        value: String,
    },
    #[error(
        "{variable} is {value:?}; pinion sends traces as \"http/protobuf\" only, usually to port 4318"
    )]
    Protocol {
        variable: &'static str,
        value: String,
    },
    #[error("{variable} is {value:?}, which is not a number of milliseconds")]
    Timeout {
        variable: &'static str,
        value: String,
    },
    #[error("{variable} is not a list like \"name=value,name=value\"")]
    List { variable: &'static str },
    #[error(
        "OTEL_TRACES_SAMPLER is {0:?}; use always_on, always_off, traceidratio, parentbased_always_on, \
         parentbased_always_off or parentbased_traceidratio"
    )]
    Sampler(String),
    #[error("OTEL_TRACES_SAMPLER_ARG is {0:?}, which is not a number between 0 and 1")]
    SamplerArgument(String),
    #[error("OTEL_TRACES_EXPORTER is {0:?}; use otlp or none")]
    Exporter(String),
    #[error("{variable} is {value:?}; pinion sends traces without compression")]
    Compression {
        variable: &'static str,
        value: String,
    },
}

impl Settings {
    /// Reads the variables. Returns `None` if no endpoint is set or traces are disabled.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, SettingsError> {
        let variable = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let is_disabled =
            variable("OTEL_SDK_DISABLED").is_some_and(|it| it.eq_ignore_ascii_case("true"));
        let Some(endpoint) = endpoint(&variable).filter(|_| !is_disabled) else {
            return Ok(None);
        };
        match variable("OTEL_TRACES_EXPORTER").as_deref() {
            None | Some("otlp") => {}
            Some("none") => return Ok(None),
            Some(other) => return Err(SettingsError::Exporter(other.to_owned())),
        }
        let endpoint = endpoint?;
        if let Some((variable, value)) =
            first(&variable, PROTOCOLS).filter(|(_, it)| it != PROTOCOL)
        {
            return Err(SettingsError::Protocol { variable, value });
        }
        if let Some((variable, value)) =
            first(&variable, COMPRESSIONS).filter(|(_, it)| it != "none")
        {
            return Err(SettingsError::Compression { variable, value });
        }
        let timeout = match first(&variable, TIMEOUTS) {
            None => DEFAULT_TIMEOUT,
            Some((variable, value)) => match value.trim().parse() {
                Ok(milliseconds) => Duration::from_millis(milliseconds),
                Err(_) => return Err(SettingsError::Timeout { variable, value }),
            },
        };
        let headers = match first(&variable, HEADERS) {
            None => Vec::new(),
            Some((variable, list)) => pairs(variable, &list)?,
        };
        Ok(Some(Self {
            endpoint,
            headers,
            timeout,
            resource: resource(&variable)?,
            sampler: sampler(&variable)?,
        }))
    }
}

/// The variables of one setting; that for traces comes first.
type Names = [&'static str; 2];

const PROTOCOLS: Names = [
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    "OTEL_EXPORTER_OTLP_PROTOCOL",
];
const COMPRESSIONS: Names = [
    "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION",
    "OTEL_EXPORTER_OTLP_COMPRESSION",
];
const TIMEOUTS: Names = [
    "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
    "OTEL_EXPORTER_OTLP_TIMEOUT",
];
const HEADERS: Names = [
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    "OTEL_EXPORTER_OTLP_HEADERS",
];
const ENDPOINTS: Names = [
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
];

fn first(
    variable: &impl Fn(&str) -> Option<String>,
    names: Names,
) -> Option<(&'static str, String)> {
    let mut set = names.into_iter().map(|name| Some((name, variable(name)?)));
    set.find_map(|it| it)
}

/// Returns the address for traces: the one that is set, or the general one with the standard path.
fn endpoint(variable: &impl Fn(&str) -> Option<String>) -> Option<Result<String, SettingsError>> {
    let (name, value) = first(variable, ENDPOINTS)?;
    let written = value.trim();
    let is_http = |text: &str| {
        let url = pinion_http::Url::parse(text);
        url.is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
    };
    if !is_http(written) {
        return Some(Err(SettingsError::Endpoint {
            variable: name,
            value,
        }));
    }
    Some(Ok(if name == ENDPOINTS[0] {
        written.to_owned()
    } else {
        format!("{}/v1/traces", written.trim_end_matches('/'))
    }))
}

/// Parses `name=value,name=value`, whose values may have percent escapes. The error does not show them: they may be
/// keys.
fn pairs(variable: &'static str, list: &str) -> Result<Vec<(String, String)>, SettingsError> {
    let parts = list
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty());
    let pair = |part: &str| {
        let (name, value) = part.split_once('=')?;
        let value = percent::decode_strictly(value.trim().as_bytes())?;
        Some((name.trim().to_owned(), String::from_utf8(value).ok()?))
    };
    parts
        .map(|part| pair(part).ok_or(SettingsError::List { variable }))
        .collect()
}

fn resource(
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<Vec<(String, String)>, SettingsError> {
    const ATTRIBUTES: &str = "OTEL_RESOURCE_ATTRIBUTES";
    let mut resource = match variable(ATTRIBUTES) {
        Some(list) => pairs(ATTRIBUTES, &list)?,
        None => Vec::new(),
    };
    if let Some(name) = variable("OTEL_SERVICE_NAME") {
        resource.retain(|(known, _)| known != "service.name");
        resource.push(("service.name".to_owned(), name));
    }
    for (name, value) in [
        ("service.name", DEFAULT_SERVICE.to_owned()),
        ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("process.pid", std::process::id().to_string()),
        ("telemetry.sdk.language", "rust".to_owned()),
        ("telemetry.sdk.name", "pinion".to_owned()),
        (
            "telemetry.sdk.version",
            env!("CARGO_PKG_VERSION").to_owned(),
        ),
    ] {
        if !resource.iter().any(|(known, _)| known == name) {
            resource.push((name.to_owned(), value));
        }
    }
    Ok(resource)
}

fn sampler(variable: &impl Fn(&str) -> Option<String>) -> Result<Sampler, SettingsError> {
    let Some(name) = variable("OTEL_TRACES_SAMPLER") else {
        return Ok(Sampler::AlwaysOn);
    };
    // Spans with a parent follow its decision under every sampler.
    match name.trim() {
        "always_on" | "parentbased_always_on" => Ok(Sampler::AlwaysOn),
        "always_off" | "parentbased_always_off" => Ok(Sampler::AlwaysOff),
        "traceidratio" | "parentbased_traceidratio" => {
            let Some(argument) = variable("OTEL_TRACES_SAMPLER_ARG") else {
                return Ok(Sampler::Ratio(1.0));
            };
            let share = argument
                .trim()
                .parse()
                .ok()
                .filter(|share| (0.0..=1.0).contains(share));
            share
                .map(Sampler::Ratio)
                .ok_or(SettingsError::SamplerArgument(argument))
        }
        other => Err(SettingsError::Sampler(other.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(set: &[(&str, &str)]) -> Result<Option<Settings>, SettingsError> {
        Settings::read(|name| {
            let mut set = set.iter();
            set.find(|(known, _)| *known == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn traces_are_off_without_an_endpoint() {
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]), Ok(None));
        let disabled = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:4318"),
            ("OTEL_SDK_DISABLED", "True"),
        ];
        assert_eq!(read(&disabled), Ok(None));
        let none = [disabled[0], ("OTEL_TRACES_EXPORTER", "none")];
        assert_eq!(read(&none), Ok(None));
    }

    #[test]
    fn the_general_endpoint_gets_the_standard_path() {
        let endpoint = |set: &[(&str, &str)]| read(set).unwrap().unwrap().endpoint;
        let general = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:4318/");
        assert_eq!(endpoint(&[general]), "http://h:4318/v1/traces");
        let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://h/in");
        assert_eq!(endpoint(&[general, own]), "https://h/in");
    }

    #[test]
    fn headers_and_attributes_are_lists_with_escapes() {
        let settings = read(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h"),
            (
                "OTEL_EXPORTER_OTLP_HEADERS",
                "authorization=Bearer%20x, a=b=c,",
            ),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=old,team=me"),
            ("OTEL_SERVICE_NAME", "bot"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "1500"),
        ]);
        let settings = settings.unwrap().unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            settings.headers,
            [pair("authorization", "Bearer x"), pair("a", "b=c")]
        );
        assert!(settings.resource.contains(&pair("team", "me")));
        assert!(settings.resource.contains(&pair("service.name", "bot")));
        assert!(!settings.resource.contains(&pair("service.name", "old")));
        assert_eq!(settings.timeout, Duration::from_millis(1500));
    }

    #[test]
    fn samplers_decide_by_share() {
        let sampler = |name, argument| {
            let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h");
            let set = [
                endpoint,
                ("OTEL_TRACES_SAMPLER", name),
                ("OTEL_TRACES_SAMPLER_ARG", argument),
            ];
            read(&set).map(|settings| settings.unwrap().sampler)
        };
        assert_eq!(sampler("always_off", ""), Ok(Sampler::AlwaysOff));
        assert_eq!(sampler("traceidratio", "0.25"), Ok(Sampler::Ratio(0.25)));
        assert!(sampler("traceidratio", "2").is_err());
        assert!(sampler("sometimes", "").is_err());
        let (low, high) = ([0; 16], [0xff; 16]);
        assert!(Sampler::Ratio(0.5).samples(&low) && !Sampler::Ratio(0.5).samples(&high));
        assert!(Sampler::Ratio(1.0).samples(&high) && !Sampler::Ratio(0.0).samples(&low));
    }

    #[test]
    fn what_cannot_be_done_is_reported() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h");
        for (set, part) in [
            (
                vec![("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318")],
                "not an http",
            ),
            (
                vec![endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")],
                "\"grpc\"",
            ),
            (
                vec![endpoint, ("OTEL_EXPORTER_OTLP_TIMEOUT", "1s")],
                "milliseconds",
            ),
            (
                vec![endpoint, ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")],
                "compression",
            ),
            (
                vec![endpoint, ("OTEL_TRACES_EXPORTER", "zipkin")],
                "otlp or none",
            ),
        ] {
            let message = read(&set).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
        let secret = [endpoint, ("OTEL_EXPORTER_OTLP_HEADERS", "s3cret")];
        assert!(!read(&secret).unwrap_err().to_string().contains("s3cret"));
    }
}
