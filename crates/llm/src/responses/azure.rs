//! The address and the deployment of a model on Azure, both from the environment of the request.

use crate::request::Request;

fn variable(request: &Request, name: &str) -> Option<String> {
    let value = request.options.environment.get(name);
    value.filter(|value| !value.trim().is_empty())
}

/// The deployment that serves the model, from `AZURE_OPENAI_DEPLOYMENT_NAME_MAP` (`id=name,…`).
pub(super) fn azure_deployment(request: &Request) -> String {
    let model = &request.model;
    let map = variable(request, "AZURE_OPENAI_DEPLOYMENT_NAME_MAP").unwrap_or_default();
    let named = map.split(',').filter_map(|pair| pair.split_once('='));
    let found = named
        .map(|(id, name)| (id.trim(), name.trim()))
        .find(|(id, _)| *id == model.id);
    found.map_or_else(|| model.id.clone(), |(_, name)| name.to_owned())
}

pub(super) fn azure_url(request: &Request) -> Result<String, String> {
    let model = &request.model;
    let resource = variable(request, "AZURE_OPENAI_RESOURCE_NAME")
        .map(|name| format!("https://{name}.openai.azure.com/openai/v1"));
    let base = variable(request, "AZURE_OPENAI_BASE_URL").or(resource);
    let base = base.unwrap_or_else(|| model.base_url.clone());
    if base.is_empty() {
        let provider = &model.provider;
        return Err(format!(
            "The address of the Azure resource is not known. Set AZURE_OPENAI_BASE_URL or AZURE_OPENAI_RESOURCE_NAME in \
             the environment, or in \"env\" of the entry \"{provider}\" in auth.json."
        ));
    }
    let mut base = pinion_http::Url::parse(&base)
        .map_err(|_| format!("The Azure base URL {base:?} is not a URL. Write it like \"https://NAME.openai.azure.com\"."))?;
    let host = base.host_str().unwrap_or_default();
    let azure = [
        ".openai.azure.com",
        ".cognitiveservices.azure.com",
        ".ai.azure.com",
    ];
    if azure.iter().any(|domain| host.ends_with(domain)) {
        base.set_query(None);
        let path = base.path().trim_end_matches('/');
        if matches!(path, "" | "/openai" | "/openai/v1/responses") {
            base.set_path("/openai/v1");
        }
    }
    let version = variable(request, "AZURE_OPENAI_API_VERSION").unwrap_or_else(|| "v1".to_owned());
    let path = format!("{}/responses", base.path().trim_end_matches('/'));
    base.set_path(&path);
    base.query_pairs_mut().append_pair("api-version", &version);
    Ok(base.into())
}
