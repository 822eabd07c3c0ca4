//! `/openapi.json`, and the Swagger UI at `/docs`. Both are served from the binary.

mod details;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use axum::body::Bytes;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Redirect, Response};
use bates_core::{ErrorCode, Store};
use utoipa::OpenApi;
use utoipa_swagger_ui::Config;

use super::problem::{Problem, Result};
use super::routes::Context;

#[derive(OpenApi)]
#[openapi(
    info(title = "Bates", description = "A numbering machine: issues identifiers that never repeat."),
    tags(
        (name = "numbers", description = "Take numbers, and see which come next"),
        (name = "documents", description = "Number and deliver documents, and reserve numbers"),
        (name = "pools", description = "Lists of numbers in Redis"),
        (name = "gaps", description = "Which numbers are missing, and why"),
        (name = "audit", description = "Who took which numbers"),
        (name = "identifiers", description = "Validate and trace identifiers"),
        (name = "series", description = "List, create, change and retire series"),
        (name = "openg2p", description = "The contract of the OpenG2P id-generator"),
        (name = "operations", description = "Health and metrics of the server"),
    )
)]
struct Api;

/// The document without paths and schemas, which the router adds.
pub(super) fn base_document() -> utoipa::openapi::OpenApi {
    use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
    let mut api = Api::openapi();
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    api.components.get_or_insert_default().add_security_scheme("secret", bearer);
    api.security = Some(vec![SecurityRequirement::new("secret", [""; 0])]);
    api
}

pub(super) fn to_json(api: &utoipa::openapi::OpenApi) -> Bytes {
    let mut document = serde_json::to_value(api).expect("all keys of the document are strings");
    details::add(&mut document);
    serde_json::to_vec_pretty(&document).expect("all keys of the document are strings").into()
}

pub(super) async fn serve_document<S: Store>(context: Context<S>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], context.openapi_json.clone()).into_response()
}

static UI_CONFIG: LazyLock<Arc<Config<'static>>> = LazyLock::new(|| Arc::new(Config::from("/openapi.json")));

pub(super) async fn redirect_to_ui() -> Redirect {
    Redirect::permanent("/docs/")
}

/// Files of the UI that were requested. Each is in memory once, even while many slow clients download it.
static UI_FILES: LazyLock<Mutex<HashMap<String, (Bytes, HeaderValue)>>> = LazyLock::new(Mutex::default);

pub(super) fn serve_ui_file(name: &str) -> Result<Response> {
    let cached = UI_FILES.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
    let (bytes, content_type) = match cached {
        Some(file) => file,
        None => {
            let unknown = || Problem::new(ErrorCode::NOT_FOUND, "there is nothing at this path");
            let file =
                utoipa_swagger_ui::serve(name, UI_CONFIG.clone()).ok().flatten().ok_or_else(unknown)?;
            let content_type = HeaderValue::from_str(&file.content_type);
            let content_type = content_type.unwrap_or(HeaderValue::from_static("application/octet-stream"));
            let file = (Bytes::from(file.bytes.into_owned()), content_type);
            // Bounded: the UI has about ten files, and unknown names are refused above.
            UI_FILES.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), file.clone());
            file
        }
    };
    Ok(([(header::CONTENT_TYPE, content_type)], bytes).into_response())
}
