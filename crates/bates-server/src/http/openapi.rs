//! `/openapi.json`, and a page at `/docs` that shows it and tries it. Both come out of the binary.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use axum::body::Bytes;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Redirect, Response};
use bates_core::{Code, Store};
use utoipa::OpenApi;
use utoipa_swagger_ui::Config;

use super::problem::Problem;
use super::routes::{Context, Path};

#[derive(OpenApi)]
#[openapi(
    info(title = "Bates", description = "A numbering machine: identifiers that are never repeated."),
    tags(
        (name = "numbers", description = "Take numbers, and look at what comes next"),
        (name = "documents", description = "Documents that are numbered and delivered, and reservations"),
        (name = "pools", description = "Lists of numbers in Redis, and taking from them"),
        (name = "gaps", description = "Which numbers nobody has, and why"),
        (name = "audit", description = "Who took which numbers"),
        (name = "identifiers", description = "What an identifier is"),
        (name = "series", description = "Which numberings there are"),
        (name = "openg2p", description = "The contract of the OpenG2P id-generator"),
        (name = "operations", description = "How the server is"),
    )
)]
struct Api;

/// The description without the paths and their schemas.
pub(super) fn outline() -> utoipa::openapi::OpenApi {
    use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
    let mut api = Api::openapi();
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    api.components.get_or_insert_default().add_security_scheme("secret", bearer);
    // A server on loopback may need none.
    api.security = Some(vec![SecurityRequirement::default(), SecurityRequirement::new("secret", [""; 0])]);
    api
}

pub(super) fn text(api: &utoipa::openapi::OpenApi) -> Bytes {
    api.to_pretty_json().expect("the description of the API has no keys that are not texts").into()
}

pub(super) async fn json<S: Store>(context: Context<S>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], context.description.clone()).into_response()
}

static PAGE: LazyLock<Arc<Config<'static>>> = LazyLock::new(|| Arc::new(Config::from("/openapi.json")));

pub(super) async fn page() -> Redirect {
    Redirect::permanent("/docs/")
}

pub(super) async fn index() -> Result<Response, Problem> {
    embedded("index.html")
}

pub(super) async fn file(Path(file): Path<String>) -> Result<Response, Problem> {
    embedded(&file)
}

/// Each file of the page is in memory once, however many clients read it slowly.
static FILES: LazyLock<Mutex<HashMap<String, (Bytes, HeaderValue)>>> = LazyLock::new(Mutex::default);

fn embedded(name: &str) -> Result<Response, Problem> {
    let known = FILES.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
    let (bytes, kind) = match known {
        Some(known) => known,
        None => {
            let found = utoipa_swagger_ui::serve(name, PAGE.clone()).ok().flatten();
            let file = found.ok_or_else(|| Problem::new(Code::NOT_FOUND, "nothing is at this path"))?;
            let kind = HeaderValue::from_str(&file.content_type);
            let kind = kind.unwrap_or(HeaderValue::from_static("application/octet-stream"));
            let file = (Bytes::from(file.bytes.into_owned()), kind);
            // About ten: unknown names never come here.
            FILES.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), file.clone());
            file
        }
    };
    Ok(([(header::CONTENT_TYPE, kind)], bytes).into_response())
}
