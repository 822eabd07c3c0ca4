//! A chat room with several server processes: Bates says which message comes where, so everybody sees the same order.
//!
//!     bates serve     # and in another terminal:
//!     cargo run --example chat -- 127.0.0.1:3001 & cargo run --example chat -- 127.0.0.1:3002 &
//!     curl -d 'hello' 127.0.0.1:3001/lobby; curl -d 'hi there' 127.0.0.1:3002/lobby; curl 127.0.0.1:3001/lobby

use axum::{Router, extract::Path, extract::State, http::StatusCode, routing::get};
use redis::{AsyncCommands as _, aio::ConnectionManager};
use tokio::fs;

/// What the processes share: Bates, and a folder, where a message is a file that is named after its number.
#[derive(Clone)]
struct Chat {
    bates: ConnectionManager,
    folder: String,
}

/// A message that was answered before another was sent has the lower number, and no two have the same.
async fn post(mut chat: State<Chat>, room: Path<String>, text: String) -> Result<String, StatusCode> {
    let folder = room_of(&chat, &room)?;
    let number: u64 = chat.bates.incr(format!("seq:{}", *room), 1).await.map_err(failed)?;
    fs::create_dir_all(&folder).await.map_err(failed)?;
    // Under another name first: whoever reads sees a whole message or none.
    fs::write(format!("{folder}/{number}.new"), text.replace('\n', " ")).await.map_err(failed)?;
    fs::rename(format!("{folder}/{number}.new"), format!("{folder}/{number}")).await.map_err(failed)?;
    Ok(format!("{number}\n"))
}

/// All messages by their numbers. One that is still being written comes to its own place, never to another's.
async fn show(chat: State<Chat>, room: Path<String>) -> Result<String, StatusCode> {
    let mut messages = std::collections::BTreeMap::new();
    let Ok(mut files) = fs::read_dir(room_of(&chat, &room)?).await else { return Ok(String::new()) };
    while let Some(file) = files.next_entry().await.map_err(failed)? {
        let Ok(number) = file.file_name().to_string_lossy().parse::<u64>() else { continue };
        let text = fs::read_to_string(file.path()).await.map_err(failed)?;
        messages.insert(number, format!("{number} {text}\n"));
    }
    Ok(messages.into_values().collect())
}

/// The name of a room leads nowhere else.
fn room_of(chat: &Chat, name: &str) -> Result<String, StatusCode> {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_plain.then(|| format!("{}/{name}", chat.folder)).ok_or(StatusCode::NOT_FOUND)
}

fn failed<E>(_: E) -> StatusCode {
    StatusCode::BAD_GATEWAY
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let said = |nth, otherwise: &str| std::env::args().nth(nth).unwrap_or_else(|| otherwise.to_owned());
    let listener = tokio::net::TcpListener::bind(said(1, "127.0.0.1:3001")).await?;
    let redis = redis::Client::open(said(2, "redis://127.0.0.1:6380"))?;
    let chat = Chat { bates: redis.get_connection_manager().await?, folder: said(3, "chat") };
    println!("listening on {}", listener.local_addr()?);
    Ok(axum::serve(listener, Router::new().route("/{room}", get(show).post(post)).with_state(chat)).await?)
}
