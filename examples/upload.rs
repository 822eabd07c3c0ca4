//! An upload service that numbers documents: PROJ-9012-1001 and so on, each once, and each with a file.
//!
//!     bates serve & cargo run --example upload
//!     curl -H 'Idempotency-Key: order-4711' --data-binary @plan.pdf 127.0.0.1:3010/PROJ/9012

use axum::extract::{Path, State};
use axum::{Router, body::Bytes, http::HeaderMap, http::StatusCode, routing::get, routing::post};
use bates_client::{Client, Error};
use std::{path::Path as Folder, path::PathBuf, time::Duration};

type Uploads = State<(Client, PathBuf)>;

/// Reserves a number, saves the file under it, and confirms. The same key gets the same number and keeps its first
/// file; a number that is not confirmed within a minute becomes an explained gap.
async fn upload(
    State((bates, folder)): Uploads,
    Path((project, kind)): Path<(String, String)>,
    headers: HeaderMap,
    file: Bytes,
) -> Result<String, (StatusCode, String)> {
    let failed = |error: Error| (StatusCode::BAD_GATEWAY, format!("{error}\n"));
    let key = headers.get("Idempotency-Key").and_then(|key| key.to_str().ok());
    let key = key.ok_or((StatusCode::BAD_REQUEST, "send an Idempotency-Key\n".to_owned()))?;
    let series = bates.series("document").scope([("project", project), ("type", kind)]);
    let reserved = series.reserve_once(key, Duration::from_mins(1)).await.map_err(failed)?;
    match &*reserved.state {
        "reserved" => {}
        "confirmed" => return Ok(reserved.id + "\n"),
        late => return Err((StatusCode::GONE, format!("{} is {late}\n", reserved.id))),
    }
    if let Err(error) = save(&folder, &reserved.id, &file).await {
        bates.void(&reserved.token).await.map_err(failed)?;
        return Err((StatusCode::INSUFFICIENT_STORAGE, format!("{error}\n")));
    }
    bates.confirm(&reserved.token).await.map(|_| reserved.id + "\n").map_err(failed)
}

/// Writes to another name first, so that a reader never sees half a file. A number of this series has no slash.
async fn save(folder: &Folder, id: &str, file: &[u8]) -> std::io::Result<()> {
    let part = folder.join(format!("{id}.{}", uuid::Uuid::new_v4()));
    tokio::fs::write(&part, file).await?;
    tokio::fs::rename(part, folder.join(id)).await
}

async fn download(State((_, folder)): Uploads, Path(id): Path<String>) -> Result<Vec<u8>, StatusCode> {
    let is_plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    tokio::fs::read(folder.join(if is_plain { &id } else { "" })).await.map_err(|_| StatusCode::NOT_FOUND)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let argument = |nth, default: &str| std::env::args().nth(nth).unwrap_or_else(|| default.to_owned());
    let (bates, folder) = (Client::connect(argument(2, "http://127.0.0.1:8080"))?, argument(3, "uploads"));
    tokio::fs::create_dir_all(&folder).await?;
    let listener = tokio::net::TcpListener::bind(argument(1, "127.0.0.1:3010")).await?;
    println!("listening on {}", listener.local_addr()?);
    let routes = Router::new().route("/{project}/{type}", post(upload)).route("/{id}", get(download));
    Ok(axum::serve(listener, routes.with_state((bates, folder.into()))).await?)
}
