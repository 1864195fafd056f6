//! Where Azure serves a model: the address and the deployment, both from the environment.

use pinion_message::Model;

fn environment(name: &str) -> Option<String> {
    std::env::var(name)
        .ok()
        .filter(|value| !value.trim().is_empty())
}

/// The deployment that serves the model, from `AZURE_OPENAI_DEPLOYMENT_NAME_MAP` (`id=name,…`).
pub(super) fn azure_deployment(model: &Model) -> String {
    let map = environment("AZURE_OPENAI_DEPLOYMENT_NAME_MAP").unwrap_or_default();
    let named = map.split(',').filter_map(|pair| pair.split_once('='));
    let found = named
        .map(|(id, name)| (id.trim(), name.trim()))
        .find(|(id, _)| *id == model.id);
    found.map_or_else(|| model.id.clone(), |(_, name)| name.to_owned())
}

pub(super) fn azure_url(model: &Model) -> Result<String, String> {
    let resource = environment("AZURE_OPENAI_RESOURCE_NAME")
        .map(|name| format!("https://{name}.openai.azure.com/openai/v1"));
    let base = environment("AZURE_OPENAI_BASE_URL").or(resource);
    let base = base.unwrap_or_else(|| model.base_url.clone());
    if base.is_empty() {
        let name = "Set AZURE_OPENAI_BASE_URL or AZURE_OPENAI_RESOURCE_NAME";
        return Err(format!(
            "The address of the Azure resource is not known. {name}."
        ));
    }
    let mut base = reqwest::Url::parse(&base)
        .map_err(|_| format!("The Azure base URL {base:?} is not a URL. Write it like \"https://NAME.openai.azure.com\"."))?;
    let host = base.host_str().unwrap_or_default();
    let azure = [".openai.azure.com", ".cognitiveservices.azure.com"];
    if azure.iter().any(|domain| host.ends_with(domain)) {
        base.set_query(None);
        if matches!(base.path().trim_end_matches('/'), "" | "/openai") {
            base.set_path("/openai/v1");
        }
    }
    let version = environment("AZURE_OPENAI_API_VERSION").unwrap_or_else(|| "v1".to_owned());
    let path = format!("{}/responses", base.path().trim_end_matches('/'));
    base.set_path(&path);
    base.query_pairs_mut().append_pair("api-version", &version);
    Ok(base.into())
}
